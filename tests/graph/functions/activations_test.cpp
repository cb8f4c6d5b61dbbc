#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

TEST(CastLike, TakesTheTypeOfItsSecondInput) {
  const Tensor found = run_op("CastLike", {floats({2}, {1.75, -2}), integers({1}, {7})});
  EXPECT_EQ(found.dtype(), DType::kInt64);
  EXPECT_EQ(values_of(found), (V{1, -2}));
}

TEST(Activations, AreWhatOnnxDefines) {
  const Tensor x = floats({4}, {-3, -0.25, 0.25, 3});
  expect_near(run_op("Celu", {x}, {{"alpha", 2.0}}),
              floats({4}, {2 * std::expm1(-1.5), 2 * std::expm1(-0.125), 0.25, 3}));
  EXPECT_EQ(values_of(run_op("Shrink", {x}, {{"lambd", 1.0}, {"bias", 0.5}})),
            (V{-2.5, 0, 0, 2.5}));
  expect_near(run_op("Swish", {x}, {{"alpha", 2.0}}),
              floats({4},
                     {-3 / (1 + std::exp(6)),
                      -0.25 / (1 + std::exp(0.5)),
                      0.25 / (1 + std::exp(-0.5)),
                      3 / (1 + std::exp(-6))}));
  EXPECT_EQ(values_of(run_op("ThresholdedRelu", {x}, {{"alpha", 0.25}})), (V{0, 0, 0, 3}));
}

TEST(SwiGlu, GatesItsSecondInput) {
  const Tensor gate = floats({2}, {1, -2}), x = floats({2}, {3, 5});
  expect_near(run_op("SwiGLU", {gate, x}, {{"alpha", 2.0}}),
              floats({2}, {3 / (1 + std::exp(-2)), -10 / (1 + std::exp(4))}));
}

TEST(Mean, IsOfAllInputsThatBroadcast) {
  EXPECT_EQ(values_of(run_op("Mean", {floats({2}, {1, 2}), floats({1}, {4}), floats({2}, {1, 6})})),
            (V{2, 4}));
}

TEST(Function, NamesTheCallAndTheNodeOfItsBodyThatFails) {
  EXPECT_EQ(refusal("Celu", {integers({2}, {1, 2})}),
            "node \"it\": node \"it\": Expm1 of int64, expected a floating-point type");
  EXPECT_EQ(refusal("Celu", {floats({1}, {1}), floats({1}, {1})}),
            "node \"it\": Celu takes 1 to 1 inputs, found 2");
}

}  // namespace
}  // namespace pruner
