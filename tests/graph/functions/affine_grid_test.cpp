#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

// Takes (x, y) to (x + 10, 2 * y).
const Tensor kMatrix = floats({1, 2, 3}, {1, 0, 10, 0, 2, 0});

TEST(AffineGrid, MovesPixelsFromTheirCentres) {
  const Tensor found = run_op("AffineGrid", {kMatrix, Ints{1, 3, 1, 2}});
  EXPECT_EQ(found.shape(), (Ints{1, 1, 2, 2}));
  EXPECT_EQ(values_of(found), (V{9.5, 0, 10.5, 0}));
}

TEST(AffineGrid, MovesPixelsFromTheCornersWhereTheyAreAligned) {
  const Tensor found =
      run_op("AffineGrid", {kMatrix, Ints{1, 3, 2, 3}}, {{"align_corners", int64_t{1}}});
  EXPECT_EQ(values_of(found), (V{9, -2, 10, -2, 11, -2, 9, 2, 10, 2, 11, 2}));
}

TEST(AffineGrid, HasThreeDimensionsToo) {
  const Tensor identity = floats({1, 3, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0});
  EXPECT_EQ(values_of(run_op("AffineGrid", {identity, Ints{1, 1, 2, 1, 2}})),
            (V{-0.5, 0, -0.5, 0.5, 0, -0.5, -0.5, 0, 0.5, 0.5, 0, 0.5}));
  EXPECT_EQ(
      refusal("AffineGrid", {identity, Ints{1, 1, 2, 1}}),
      "node \"it\": matrices of 1x3x4 for a size of 4 extents, expected [batch, 2, 3] and 4 or "
      "[batch, 3, 4] and 5");
}

}  // namespace
}  // namespace pruner
