#include "support/hash.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

TEST(Hash64, IsTheSameOnEveryMachine) {
  EXPECT_EQ(hash64(""), 0x2d06800538d394c2ULL);
  EXPECT_NE(hash64("a"), hash64("b"));
}

TEST(HashHex, HasThirtyTwoLowerCaseDigits) {
  EXPECT_EQ(hash_hex(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash_hex("pruner").size(), 32u);
}

}  // namespace
}  // namespace pruner
