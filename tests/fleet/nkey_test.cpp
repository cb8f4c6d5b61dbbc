#include "fleet/nkey.h"

#include "fleet/broker.h"
#include "golden.h"

namespace pruner {
namespace {

TEST(NKey, IsThatOfTheDocumentation) {
  if (!has_broker()) GTEST_SKIP() << "this build has no fleets";
  // docs.nats.io, "NKeys".
  const Result<NKey> key = nkey_of("SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY");
  ASSERT_TRUE(key.ok()) << key.error().message();
  EXPECT_EQ(key->public_key, "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4");
}

TEST(NKey, IsAnotherEachTimeAndReadAgain) {
  if (!has_broker()) GTEST_SKIP() << "this build has no fleets";
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

}  // namespace
}  // namespace pruner
