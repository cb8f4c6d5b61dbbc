#include "space/perfect_tile.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

namespace pruner {
namespace {

TEST(SamplePerfectTile, DividesTheAxisUpToTheInnermostLimit) {
  Rng rng(0);
  for (const int64_t extent : {1, 7, 48, 97, 1000, 3136}) {
    for (const size_t tiles : {size_t{2}, size_t{4}, size_t{5}}) {
      for (int i = 0; i < 100; ++i) {
        const std::vector<int64_t> drawn = sample_perfect_tile(extent, tiles, 64, rng);
        ASSERT_EQ(drawn.size(), tiles);
        EXPECT_EQ(std::accumulate(drawn.begin(), drawn.end(), int64_t{1}, std::multiplies<>()),
                  extent);
        EXPECT_LE(drawn.back(), 64);
      }
    }
  }
}

// 2^3 in 3 tiles: 10 ways; 2 * 3: 3 * 3 ways.
TEST(SamplePerfectTile, DrawsAllDivisionsOfAPowerAlike) {
  Rng rng(1);
  for (const auto& [extent, ways] : {std::pair{8, 10}, {6, 9}}) {
    std::map<std::vector<int64_t>, int> drawn;
    constexpr int kDraws = 9000;
    for (int i = 0; i < kDraws; ++i) ++drawn[sample_perfect_tile(extent, 3, 64, rng)];
    EXPECT_EQ(drawn.size(), static_cast<size_t>(ways));
    for (const auto& [tiles, count] : drawn)
      EXPECT_NEAR(count, kDraws / ways, 0.15 * kDraws / ways) << tiles[0] << " " << tiles[1];
  }
}

}  // namespace
}  // namespace pruner
