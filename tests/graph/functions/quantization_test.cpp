#include <limits>

#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

Tensor bytes(std::vector<int64_t> shape, Ints values, DType dtype = DType::kUInt8) {
  return integers(std::move(shape), std::move(values), dtype);
}

TEST(QuantizeLinear, RoundsHalvesToEvenBeforeTheZeroPointAndSaturates) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor x = floats({8}, {0.5, 1.5, -0.5, -3.5, 300, -300, infinity, -infinity});
  const Tensor found = run_op("QuantizeLinear", {x, floats({}, {1}), bytes({}, {3})});
  EXPECT_EQ(found.dtype(), DType::kUInt8);
  EXPECT_EQ(values_of(found), (V{3, 5, 3, 0, 255, 0, 255, 0}));
  EXPECT_EQ(values_of(run_op("QuantizeLinear", {x, floats({}, {1}), bytes({}, {3}, DType::kInt8)})),
            (V{3, 5, 3, -1, 127, -128, 127, -128}));
}

TEST(QuantizeLinear, MakesTheLeastOfWhatIsNoNumber) {
  const Tensor x = floats({2}, {std::nan(""), 1});
  EXPECT_EQ(values_of(run_op("QuantizeLinear", {x, floats({}, {1}), bytes({}, {3}, DType::kInt8)})),
            (V{-128, 4}));
}

// Many quotients are halfway between two numbers, and products with the reciprocal beside it.
TEST(QuantizeLinear, DividesByTheScale) {
  const float step = 0.1F;
  Tensor x(DType::kFloat32, {200});
  V expected;
  for (int i = 0; i < 200; ++i) {
    const float value = (static_cast<float>(i) + 0.5F) * step;
    x.set(i, value);
    expected.push_back(std::nearbyint(value / step));
  }
  const Operand scale = Operand::weight(floats({}, {step}));
  EXPECT_EQ(values_of(run_op("QuantizeLinear", {x, scale})), expected);
}

TEST(QuantizeLinear, HasAScaleForEachIndexOrBlockOfAnAxis) {
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor by_row = run_op(
      "QuantizeLinear", {x, floats({2}, {1, 2}), bytes({2}, {0, 10})}, {{"axis", int64_t{0}}});
  EXPECT_EQ(values_of(by_row), (V{1, 2, 3, 12, 12, 13}));
  const Tensor by_block = run_op("QuantizeLinear",
                                 {x, floats({2, 2}, {1, 0.5, 2, 3}), bytes({2, 2}, {0, 1, 2, 3})},
                                 {{"axis", int64_t{-1}}, {"block_size", int64_t{2}}});
  EXPECT_EQ(values_of(by_block), (V{1, 2, 7, 4, 4, 5}));
}

TEST(QuantizeLinear, TakesItsTypeFromOutputDtype) {
  const Tensor found = run_op("QuantizeLinear",
                              {floats({2}, {-1, 200}), floats({}, {1})},
                              {{"output_dtype", int64_t{3}}});  // ONNX's number of int8
  EXPECT_EQ(found.dtype(), DType::kInt8);
  EXPECT_EQ(values_of(found), (V{-1, 127}));
}

TEST(QuantizeLinear, MakesFloatsOfAByteOrLess) {
  const Tensor x = floats({5}, {0.5, 2.25, -7, 2000, -2000});
  const auto to = [&](DType dtype, Attributes attributes) {
    const Tensor zero(dtype, {});
    const Tensor found = run_op("QuantizeLinear", {x, floats({}, {2}), zero}, attributes);
    EXPECT_EQ(found.dtype(), dtype);
    return values_of(run_op("Cast", {found}, {{"to", std::string("float32")}}));
  };
  EXPECT_EQ(to(DType::kFloat8E4M3FN, {}), (V{0.25, 1.125, -3.5, 448, -448}));
  EXPECT_EQ(to(DType::kFloat8E5M2, {}), (V{0.25, 1, -3.5, 1024, -1024}));
  EXPECT_EQ(to(DType::kFloat4E2M1, {}), (V{0, 1, -4, 6, -6}));
  EXPECT_TRUE(std::isnan(to(DType::kFloat8E4M3FN, {{"saturate", int64_t{0}}})[3]));
}

TEST(QuantizeLinear, MakesIntegersOfFourBitsThatAreReadBack) {
  const Tensor x = floats({5}, {-40, -3, 0, 2.25, 40});
  const auto there_and_back = [&](DType dtype, int64_t zero) {
    const Tensor step = floats({}, {0.5}), shift = bytes({}, {zero}, dtype);
    const Tensor found = run_op("QuantizeLinear", {x, step, shift});
    EXPECT_EQ(found.dtype(), dtype);
    return values_of(run_op("DequantizeLinear", {found, step, shift}));
  };
  EXPECT_EQ(there_and_back(DType::kInt4, -1), (V{-3.5, -3, 0, 2, 4}));
  EXPECT_EQ(there_and_back(DType::kUInt4, 7), (V{-3.5, -3, 0, 2, 4}));
}

// A pruned channel has zeros and a scale of 0.
TEST(QuantizeLinear, TakesAScaleOfZero) {
  const Tensor x = floats({2, 2}, {0, 1, 0, 2}), scale = floats({2}, {0, 0.5});
  const Tensor found = run_op("QuantizeLinear", {x, Operand::weight(scale), bytes({2}, {0, 0})});
  EXPECT_EQ(values_of(run_op("DequantizeLinear", {found, scale})), (V{0, 1, 0, 2}));
}

TEST(QuantizeLinear, RefusesWhatDoesNotFit) {
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto says = [&](const std::vector<Operand>& operands, Attributes attributes = {}) {
    return refusal("QuantizeLinear", operands, std::move(attributes));
  };
  EXPECT_EQ(says({x, floats({2}, {1, 1})}),
            "node \"it\": a scale of shape 2 does not fit data of shape 2x3 along axis 1");
  EXPECT_EQ(says({x, floats({3}, {1, 1, 1}), bytes({2}, {0, 0})}),
            "node \"it\": the zero point is of shape 2, the scale 3");
  EXPECT_EQ(says({x, floats({2, 1}, {1, 1})}, {{"block_size", int64_t{2}}}),
            "node \"it\": blocks of 2 along axis 1 of data of shape 2x3 need a scale of shape 2x2, "
            "found 2x1");
  EXPECT_EQ(says({x, floats({3}, {1, 1, 1})}, {{"axis", int64_t{2}}}),
            "node \"it\": axis 2 is not one of the input's 2 dimensions");
  EXPECT_EQ(says({x, floats({}, {1}), bytes({}, {0})}, {{"output_dtype", int64_t{3}}}),
            "node \"it\": the zero point is uint8, output_dtype is int8");
  EXPECT_EQ(says({x, floats({}, {1})}, {{"output_dtype", int64_t{1}}}),
            "node \"it\": quantization to float32 is not supported");
}

TEST(DequantizeLinear, TakesTheZeroPointOffAndMultiplies) {
  const Tensor q = bytes({4}, {0, 3, 128, 255});
  EXPECT_EQ(values_of(run_op("DequantizeLinear", {q, floats({}, {2}), bytes({}, {128})})),
            (V{-256, -250, 0, 254}));
  EXPECT_EQ(values_of(run_op("DequantizeLinear",
                             {bytes({2, 2}, {-1, -2, 3, 4}, DType::kInt8), floats({2}, {1, 0.5})},
                             {{"axis", int64_t{1}}})),
            (V{-1, -1, 3, 2}));
  EXPECT_EQ(values_of(run_op("DequantizeLinear",
                             {bytes({2}, {-100000, 7}, DType::kInt32), floats({}, {0.5})})),
            (V{-50000, 3.5}));
}

TEST(DequantizeLinear, WantsIntegersAndAZeroPointOfTheirType) {
  EXPECT_EQ(refusal("DequantizeLinear", {floats({1}, {1}), floats({}, {1})}),
            "node \"it\": dequantization of float32 is not supported");
  EXPECT_EQ(
      refusal("DequantizeLinear", {bytes({1}, {1}), floats({}, {1}), bytes({}, {1}, DType::kInt8)}),
      "node \"it\": the zero point is int8, the data are uint8");
}

// The range [-1, 4] has 255 steps of 5 / 255, and 0 is 51 of them above its start.
TEST(DynamicQuantizeLinear, FindsScaleAndZeroPoint) {
  Graph graph;
  for (const char* name : {"x", "y", "scale", "zero"})
    graph.values.push_back({name, DType::kFloat32, {3}, std::nullopt});
  graph.inputs = {ValueId{0}};
  graph.outputs = {ValueId{1}, ValueId{2}, ValueId{3}};
  const Node call{"DynamicQuantizeLinear", "it", graph.inputs, graph.outputs, {}};
  ASSERT_TRUE(append_call(graph, call).ok());
  const std::vector<Tensor> found = run_graph(graph, {floats({3}, {-1, 0, 4})});
  EXPECT_EQ(values_of(found[0]), (V{0, 51, 255}));
  EXPECT_EQ(values_of(found[1]), (V{5.0F / 255}));
  EXPECT_EQ(values_of(found[2]), (V{51}));
  const std::vector<Tensor> nothing = run_graph(graph, {floats({3}, {0, 0, 0})});
  EXPECT_EQ(values_of(nothing[0]), (V{0, 0, 0}));
  EXPECT_EQ(values_of(nothing[1]), (V{1}));
}

}  // namespace
}  // namespace pruner
