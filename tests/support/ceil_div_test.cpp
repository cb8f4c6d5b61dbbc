#include "support/ceil_div.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace pruner {
namespace {

TEST(CeilDiv, CountsThePartsThatCoverALength) {
  EXPECT_EQ(ceil_div(0, 4), 0);
  EXPECT_EQ(ceil_div(1, 4), 1);
  EXPECT_EQ(ceil_div(4, 4), 1);
  EXPECT_EQ(ceil_div(5, 4), 2);
  EXPECT_EQ(ceil_div(7, 1), 7);
}

TEST(CeilDiv, CountsInTheTypeOfTheLength) {
  EXPECT_EQ(ceil_div(int64_t{1} << 40, 3), 366503875926);
  EXPECT_EQ(ceil_div(size_t{9}, 8), size_t{2});
}

}  // namespace
}  // namespace pruner
