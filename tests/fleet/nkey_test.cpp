#include "fleet/nkey.h"

#include "fleet/nats_broker.h"
#include "golden.h"

namespace pruner {
namespace {

TEST(NKey, IsThatOfTheDocumentation) {
  if (!has_nats()) GTEST_SKIP() << "this build has no fleets";
  // docs.nats.io, "NKeys".
  const Result<NKey> key = nkey_of("SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY");
  ASSERT_TRUE(key.ok()) << key.error().message();
  EXPECT_EQ(key->public_key, "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4");
}

TEST(NKey, IsAnotherEachTimeAndReadAgain) {
  if (!has_nats()) GTEST_SKIP() << "this build has no fleets";
  const Result<NKey> one = make_nkey(), two = make_nkey();
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE(one->seed, two->seed);
  const Result<NKey> again = nkey_of(one->seed);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->public_key, one->public_key);
  for (size_t i = 0; i < one->seed.size(); ++i) {
    std::string other = one->seed;
    other[i] = other[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(nkey_of(other).ok()) << i;
  }
  EXPECT_ERROR(nkey_of("SUA"), "no seed of a user's nkey");
}

TEST(NKey, SignsWhatNobodyElseCan) {
  if (!has_nats()) GTEST_SKIP() << "this build has no fleets";
  const NKey key = *make_nkey(), other = *make_nkey();
  const Result<std::string> signature = sign(key, "some bytes");
  ASSERT_TRUE(signature.ok()) << signature.error().message();
  EXPECT_EQ(signature->size(), 128u);
  EXPECT_TRUE(is_signed_by(key.public_key, "some bytes", *signature));
  EXPECT_FALSE(is_signed_by(other.public_key, "some bytes", *signature));
  EXPECT_FALSE(is_signed_by(key.public_key, "some byte", *signature));
  EXPECT_FALSE(is_signed_by("", "some bytes", *signature));
  EXPECT_FALSE(is_signed_by(key.seed, "some bytes", *signature));
  EXPECT_FALSE(is_signed_by(key.public_key, "some bytes", ""));
  for (const std::string bad : {"zz", "+1"}) {
    const std::string changed = bad + signature->substr(bad.size());
    EXPECT_FALSE(is_signed_by(key.public_key, "some bytes", changed)) << bad;
  }
  EXPECT_FALSE(sign({key.public_key, "no seed"}, "some bytes").ok());
}

}  // namespace
}  // namespace pruner
