#include "support/hash.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

TEST(Hash64, IsTheSameOnEveryMachine) {
  EXPECT_EQ(hash64(""), 0x2d06800538d394c2ULL);
  EXPECT_NE(hash64("a"), hash64("b"));
}

TEST(Hasher64, IsHash64OfTheParts) {
  Hasher64 hasher;
  EXPECT_EQ(hasher.hash(), hash64(""));
  const std::string text(1000, 'x');
  for (size_t at = 0; at < text.size(); at += 7) hasher.add(std::string_view(text).substr(at, 7));
  EXPECT_EQ(hasher.hash(), hash64(text));
}

TEST(HashHex, HasThirtyTwoLowerCaseDigits) {
  EXPECT_EQ(hash_hex(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash_hex("pruner").size(), 32u);
}

}  // namespace
}  // namespace pruner
