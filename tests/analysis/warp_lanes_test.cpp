#include "analysis/warp_lanes.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

WarpLanes lanes_of_stride(int64_t stride, int width = 1) {
  WarpLanes lanes(kWarpLanes);
  for (int i = 0; i < kWarpLanes; ++i) lanes.elements[static_cast<size_t>(i)] = i * stride;
  lanes.width = width;
  return lanes;
}

TEST(WarpLanes, NeighboursShareSectors) {
  EXPECT_EQ(sectors(lanes_of_stride(1), 4), 4);
  EXPECT_EQ(sectors(lanes_of_stride(0), 4), 1);
  EXPECT_EQ(sectors(lanes_of_stride(8), 4), 32);
  EXPECT_EQ(sectors(lanes_of_stride(4, 4), 4), 16);  // 16 bytes a lane
  EXPECT_EQ(sectors(lanes_of_stride(-1), 4), 5);     // the first one ends a sector
}

TEST(WarpLanes, LanesOfOneBankWaitForEachOther) {
  EXPECT_EQ(bank_cycles(lanes_of_stride(1), 4), 1);
  EXPECT_EQ(bank_cycles(lanes_of_stride(0), 4), 1);  // one word for all
  EXPECT_EQ(bank_cycles(lanes_of_stride(3), 4), 1);
  EXPECT_EQ(bank_cycles(lanes_of_stride(8), 4), 8);
  EXPECT_EQ(bank_cycles(lanes_of_stride(32), 4), 32);
  EXPECT_EQ(bank_cycles(lanes_of_stride(4, 4), 4), 4);
}

TEST(WarpLanes, KnowsWhatADeviceMovesAtOnce) {
  EXPECT_TRUE(is_vector(4, 4, 64));
  EXPECT_FALSE(is_vector(3, 4, 63));
  EXPECT_FALSE(is_vector(16, 4, 64));
  EXPECT_FALSE(is_vector(4, 4, 30));
}

}  // namespace
}  // namespace pruner
