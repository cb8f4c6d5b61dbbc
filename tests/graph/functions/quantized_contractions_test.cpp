#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

Tensor u8(std::vector<int64_t> shape, Ints values) {
  return integers(std::move(shape), std::move(values), DType::kUInt8);
}
Tensor s8(std::vector<int64_t> shape, Ints values) {
  return integers(std::move(shape), std::move(values), DType::kInt8);
}
Tensor s32(std::vector<int64_t> shape, Ints values) {
  return integers(std::move(shape), std::move(values), DType::kInt32);
}
Tensor real(double value) { return floats({}, {value}); }

TEST(MatMulInteger, SubtractsZeroPointsAndAddsUpInInt32) {
  const Tensor a = u8({2, 2}, {255, 255, 0, 1}), b = s8({2, 2}, {127, -128, 127, 1});
  const Tensor found = run_op("MatMulInteger", {a, b});
  EXPECT_EQ(found.dtype(), DType::kInt32);
  EXPECT_EQ(values_of(found), (V{64770, -32385, 127, 1}));
  EXPECT_EQ(values_of(run_op("MatMulInteger", {a, b, u8({}, {1}), s8({2}, {1, -1})})),
            (V{64008, -31750, -126, 127}));
  // One for each row of a.
  EXPECT_EQ(values_of(run_op("MatMulInteger", {a, b, u8({2}, {255, 0})})), (V{0, 0, 127, 1}));
}

// 254 + 4 = 258 steps of 0.5 * 2, in steps of 4: 64.5, which is 64, and the zero point.
TEST(QLinearMatMul, RoundsTheSumInStepsOfTheResult) {
  const Tensor a = u8({1, 2}, {129, 6}), b = u8({2, 2}, {5, 3, 7, 3});
  const std::vector<Operand> operands = {
      a, real(0.5), u8({}, {2}), b, floats({2}, {2, 4}), u8({2}, {3, 3}), real(4), u8({}, {1})};
  const Tensor found = run_op("QLinearMatMul", operands);  // 127 * 2 + 4 * 4 = 270; 0
  EXPECT_EQ(found.dtype(), DType::kUInt8);
  EXPECT_EQ(values_of(found), (V{std::nearbyint(270 * 0.25) + 1, 1}));
}

TEST(ConvInteger, PadsWithTheZeroPoint) {
  const Tensor x = u8({1, 1, 2, 2}, {2, 3, 4, 5}), w = u8({1, 1, 2, 2}, {1, 1, 1, 2});
  EXPECT_EQ(values_of(run_op(
                "ConvInteger", {x, Operand::weight(w), u8({}, {1})}, {{"pads", Ints{0, 0, 1, 1}}})),
            (V{1 + 2 + 3 + 8, 2 + 4, 3 + 4, 4}));
}

TEST(QLinearConv, HasAScaleForEachOutputChannelAndABiasInItsSteps) {
  const std::vector<Operand> operands = {u8({1, 1, 1, 2}, {11, 14}),
                                         real(0.5),
                                         u8({}, {10}),
                                         Operand::weight(s8({2, 1, 1, 1}, {3, -3})),
                                         floats({2}, {1, 2}),
                                         s8({2}, {0, 0}),
                                         real(1),
                                         u8({}, {100}),
                                         s32({2}, {2, 1})};
  // (3 + 2) / 2 = 2.5 and (12 + 2) / 2; (-3 + 1) * 1 and (-12 + 1) * 1.
  EXPECT_EQ(values_of(run_op("QLinearConv", operands)), (V{102, 107, 98, 89}));
  EXPECT_EQ(refusal("QLinearConv",
                    {operands[0],
                     operands[1],
                     operands[2],
                     operands[3],
                     operands[4],
                     operands[5],
                     Operand::weight(real(0)),
                     operands[7]}),
            "node \"it\": the scale, input 6, is 0 at element 0");
}

TEST(QGemm, TransposesAndGivesRealsWithoutAScaleOfTheResult) {
  const std::vector<Operand> operands = {u8({2, 1}, {3, 5}),
                                         real(0.5),
                                         u8({}, {1}),
                                         s8({1, 2}, {2, -1}),
                                         real(2),
                                         s8({}, {0}),
                                         s32({1}, {10})};
  // 2 * 2 - 4 + 10 = 10 steps of 3 * 0.5 * 2.
  const Attributes attributes = {{"alpha", 3.0}, {"transA", int64_t{1}}, {"transB", int64_t{1}}};
  EXPECT_EQ(values_of(run_op("com.microsoft::QGemm", operands, attributes)), (V{30}));
  EXPECT_EQ(
      refusal("com.microsoft::QGemm",
              {u8({2}, {3, 5}), real(1), u8({}, {0}), u8({2, 1}, {1, 1}), real(1), u8({}, {0})}),
      "node \"it\": operands 2 and 2x1 have to be matrices");
}

TEST(MatMulIntegerToFloat, ScalesColumnsAndAddsABias) {
  EXPECT_EQ(values_of(run_op("com.microsoft::MatMulIntegerToFloat",
                             {u8({1, 2}, {3, 5}),
                              u8({2, 2}, {1, 2, 3, 4}),
                              real(0.5),
                              floats({2}, {1, 2}),
                              u8({}, {1}),
                              u8({2}, {0, 1}),
                              floats({2}, {0.25, -1})})),
            (V{(2 + 12) * 0.5 + 0.25, 2 + 12 - 1}));
}

TEST(DynamicQuantizeMatMul, QuantizesTheLeftMatrixByItsRange) {
  // A range of [0, 255]: steps of 1.
  EXPECT_EQ(values_of(run_op("com.microsoft::DynamicQuantizeMatMul",
                             {floats({1, 2}, {255, 2.5}), s8({2, 1}, {1, -1}), real(0.5)})),
            (V{(255 - 2) * 0.5}));
}

}  // namespace
}  // namespace pruner
