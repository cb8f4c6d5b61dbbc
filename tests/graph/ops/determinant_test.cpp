#include <gmock/gmock.h>

#include "graph/small_graph.h"

namespace pruner {
namespace {

using testing::HasSubstr;

TEST(Det, IsOfEachMatrix) {
  const Tensor x = floats({3, 3, 3}, {0, 2, 1, 1,  0, 3, 2, 1, 0, 1, 2, 3, 4, 5,
                                      6, 7, 8, 10, 1, 1, 1, 1, 1, 1, 0, 2, 3});
  const Tensor found = run_op("Det", {x});
  EXPECT_EQ(found.shape(), Ints{3});
  EXPECT_NEAR(found.get(0), 13, 1e-5);
  EXPECT_NEAR(found.get(1), -3, 1e-5);
  EXPECT_EQ(found.get(2), 0);
  EXPECT_EQ(values_of(run_op("Det", {floats({2, 2}, {1, 2, 3, 4})})), (std::vector<double>{-2}));
  EXPECT_THAT(refusal("Det", {floats({2, 3}, {1, 2, 3, 4, 5, 6})}),
              HasSubstr("data of shape 2x3 are no square matrices"));
}

// The pivot is not on the diagonal.
TEST(Inverse, IsOfEachMatrix) {
  const Tensor x = floats({2, 2, 2}, {0, 2, 3, 4, 2, 0, 0, 4});
  expect_near(run_op("com.microsoft::Inverse", {x}),
              floats({2, 2, 2}, {-2.0 / 3, 1.0 / 3, 0.5, 0, 0.5, 0, 0, 0.25}));
  EXPECT_THAT(refusal("com.microsoft::Inverse", {floats({2}, {1, 2})}),
              HasSubstr("data of shape 2 are no square matrices"));
}

}  // namespace
}  // namespace pruner
