#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

Tensor u8(std::vector<int64_t> shape, Ints values) {
  return integers(std::move(shape), std::move(values), DType::kUInt8);
}
Tensor real(double value) { return floats({}, {value}); }
Operand no_shift() { return Operand::weight(u8({}, {0})); }

Tensor run(const std::string& op,
           const std::vector<Operand>& operands,
           Attributes attributes = {}) {
  return run_op("com.microsoft::" + op, operands, std::move(attributes));
}

// (7 + 4 * 2) / 2 + 1 = 8.5, which is even at 8: the zero point is added before rounding.
TEST(QLinearAdd, RoundsTheSumWithTheZeroPoint) {
  const Tensor a = u8({3}, {17, 0, 255}), b = u8({3}, {5, 0, 255});
  EXPECT_EQ(
      values_of(run("QLinearAdd",
                    {a, real(1), u8({}, {10}), b, real(2), u8({}, {1}), real(2), u8({}, {1})})),
      (V{8, 0, 255}));
}

// 3 * 5 * 0.5 = 7.5, and 1 more is 8.5.
TEST(QLinearMul, RoundsTheProductWithTheZeroPoint) {
  EXPECT_EQ(values_of(run("QLinearMul",
                          {u8({2}, {4, 0}),
                           real(1),
                           u8({}, {1}),
                           u8({1}, {5}),
                           real(1),
                           no_shift(),
                           real(2),
                           u8({}, {1})})),
            (V{8, 0}));
}

TEST(QLinearActivations, AreThoseOfTheRealsThatAreMeant) {
  const Tensor x = u8({3}, {0, 128, 255});
  const Operand scale = real(0.0625), zero = u8({}, {128});  // -8, 0, 7.9375
  EXPECT_EQ(values_of(run("QLinearSigmoid", {x, scale, zero, real(1.0 / 256), u8({}, {0})})),
            (V{std::nearbyint(256 / (1 + std::exp(8))), 128, 255}));
  EXPECT_EQ(
      values_of(run(
          "QLinearLeakyRelu", {x, scale, zero, real(0.0625), u8({}, {128})}, {{"alpha", 0.25}})),
      (V{96, 128, 255}));
}

TEST(QLinearAveragePool, RoundsTheMeanWithTheZeroPoint) {
  const Tensor x = u8({1, 1, 2, 2}, {1, 2, 3, 4});  // a mean of 2.5
  const Operand scale = real(1), odd = u8({}, {3});
  const Attributes attributes = {{"kernel_shape", Ints{2, 2}}};
  EXPECT_EQ(values_of(run("QLinearAveragePool", {x, scale, no_shift(), scale, odd}, attributes)),
            (V{6}));
  EXPECT_EQ(values_of(run("QLinearGlobalAveragePool",
                          {x, scale, no_shift(), scale, odd},
                          {{"channels_last", int64_t{0}}})),
            (V{5}));
  EXPECT_EQ(refusal("com.microsoft::QLinearGlobalAveragePool",
                    {u8({2, 2}, {1, 2, 3, 4}), scale, no_shift(), scale, odd}),
            "node \"it\": data of shape 2x2 need 3 dimensions or more");
}

TEST(QLinearConcat, QuantizesEachPartAnew) {
  EXPECT_EQ(values_of(run("QLinearConcat",
                          {real(2),
                           u8({}, {1}),
                           u8({2}, {0, 9}),
                           real(1),
                           u8({}, {4}),
                           u8({1}, {7}),
                           real(4),
                           u8({}, {0})})),
            (V{0, 3, 15}));  // -2 + 1 below 0; 2.5 to 2, and 1; 14 and 1
  EXPECT_EQ(refusal("com.microsoft::QLinearConcat",
                    {real(2), u8({}, {1}), u8({2}, {0, 9}), real(1), u8({}, {4}), u8({1}, {7})}),
            "node \"it\": takes 2 inputs and 3 for each part, found 6");
}

// The softmax of 0 and log(3) is a fourth and three fourths.
TEST(QLinearSoftmax, IsInStepsOfTheResult) {
  EXPECT_EQ(
      values_of(
          run("QLinearSoftmax",
              {u8({1, 2}, {10, 11}), real(std::log(3)), u8({}, {0}), real(1.0 / 256), u8({}, {1})},
              {{"opset", int64_t{13}}})),
      (V{65, 193}));
}

// The chosen elements are rounded to steps of the result: 2 and 8 in steps of 0.5, 3 and 5 of 1.
TEST(QLinearWhere, QuantizesBothAnew) {
  EXPECT_EQ(values_of(run("QLinearWhere",
                          {integers({2}, {1, 0}, DType::kBool),
                           u8({2}, {2, 8}),
                           real(0.5),
                           u8({}, {0}),
                           u8({2}, {3, 5}),
                           real(1),
                           u8({}, {1}),
                           real(1),
                           u8({}, {4})})),
            (V{5, 8}));
}

}  // namespace
}  // namespace pruner
