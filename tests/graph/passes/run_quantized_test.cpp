#include <algorithm>
#include <limits>

#include "graph/small_graph.h"

namespace pruner {
namespace {

Tensor bytes(std::vector<int64_t> shape, int64_t first, int64_t step, DType dtype) {
  Tensor tensor(dtype, std::move(shape));
  const int64_t least = least_int(dtype), numbers = greatest_int(dtype) - least + 1;
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.set_int(i, least + (first + i * step) % numbers);
  return tensor;
}

Tensor real(double value) { return floats({}, {value}); }
Tensor whole(int64_t value, DType dtype = DType::kUInt8) { return integers({}, {value}, dtype); }

/// A QDQ network, written down as files have it.
class Network {
 public:
  ValueId input(std::vector<int64_t> shape) {
    const ValueId id = value("x");
    graph[id].dtype = DType::kFloat32;
    graph[id].shape = std::move(shape);
    graph.inputs.push_back(id);
    return id;
  }
  ValueId constant(Tensor tensor) {
    const ValueId id = value("constant");
    graph[id].dtype = tensor.dtype();
    graph[id].shape = tensor.shape();
    graph[id].constant = std::move(tensor);
    return id;
  }
  ValueId node(const std::string& op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    const ValueId out = value(op);
    const Result<Unit> made =
        append_call(graph, {op, op, std::move(inputs), {out}, std::move(attributes)});
    EXPECT_TRUE(made.ok()) << made.error().message();
    return out;
  }
  /// Through bytes and back, as between any two operators of a QDQ file.
  ValueId quantize(ValueId x, double scale, Tensor zero) {
    const ValueId s = constant(real(scale)), z = constant(std::move(zero));
    return node("QuantizeLinear", {x, s, z});
  }
  ValueId through(ValueId x, double scale, const Tensor& zero) {
    return dequantize(quantize(x, scale, zero), real(scale), zero);
  }
  ValueId dequantize(ValueId q, Tensor scale, Tensor zero, int64_t axis = 0) {
    return node("DequantizeLinear",
                {q, constant(std::move(scale)), constant(std::move(zero))},
                {{"axis", axis}});
  }
  /// A weight of signed bytes with a scale for each of `n` indices of an axis.
  ValueId weight(std::vector<int64_t> shape, int64_t axis, int64_t n) {
    Tensor scale(DType::kFloat32, {n});
    for (int64_t i = 0; i < n; ++i) scale.set(i, 0.01 + 0.001 * static_cast<double>(i));
    const Tensor q = bytes(std::move(shape), 3, 37, DType::kInt8);
    return dequantize(constant(q), scale, Tensor(DType::kInt8, {n}), axis);
  }
  ValueId bias(int64_t n, double x_scale) {
    Tensor scale(DType::kFloat32, {n});
    for (int64_t i = 0; i < n; ++i)
      scale.set(
          i,
          static_cast<float>(x_scale) * static_cast<float>(0.01 + 0.001 * static_cast<double>(i)));
    Tensor q(DType::kInt32, {n});
    for (int64_t i = 0; i < n; ++i) q.set_int(i, 100 * i - 150);
    return dequantize(constant(q), scale, Tensor(DType::kInt32, {n}));
  }
  Graph finish(ValueId output) {
    graph.outputs = {output};
    return graph;
  }

  Graph graph;

 private:
  ValueId value(const std::string& name) {
    graph.values.push_back({name + std::to_string(graph.values.size()), {}, {}, std::nullopt});
    return ValueId{static_cast<int32_t>(graph.values.size()) - 1};
  }
};

Tensor run(const Graph& graph, const Tensor& input) {
  const Result<std::vector<Tensor>> outputs = interpret_graph(graph, std::vector{input});
  EXPECT_TRUE(outputs.ok());
  return (*outputs)[0];
}

Graph passed(const Graph& graph, Numerics numerics) {
  return run_quantized(graph, {.numerics = numerics});
}

// The least and the most by which results of the pass differ from the network as it stands, which
// rounds float32 sums: nothing on most elements, else `step`. The other passes change nothing.
std::string quantized(const Graph& graph,
                      double step,
                      bool exact = false,
                      Numerics numerics = Numerics::kOnnx) {
  const Graph after = passed(graph, numerics);
  const Tensor input = waves(graph[graph.inputs[0]].shape);
  const Tensor expected = run(graph, input), found = run(after, input);
  EXPECT_EQ(found.dtype(), expected.dtype());
  EXPECT_EQ(found.shape(), expected.shape());
  int64_t differ = 0;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double apart = std::abs(found.get(i) - expected.get(i));
    EXPECT_LE(apart, step * 1.001) << "element " << i;
    differ += apart > step * 0.01 ? 1 : 0;
  }
  EXPECT_LE(differ, exact ? 0 : 1 + expected.num_elements() / 50);
  EXPECT_EQ(values_of(run(run_graph_passes(graph, {.numerics = numerics}), input)),
            values_of(found));
  return operators(simplify(after));
}

// A stem of 3 channels, asymmetric data, padding, Relu, and a result as floats again.
Graph convolution(Attributes attributes, std::vector<int64_t> weight, bool tail, DType dtype) {
  Network n;
  const int64_t channels =
      weight[1] * OpCall{n.graph, Node{"", "", {}, {}, attributes}}.integer("group", 1);
  const int64_t outputs = weight[0];
  const ValueId x = n.through(
      n.input({1, channels, 7, 6}), 1.0 / 100, whole(dtype == DType::kInt8 ? 9 : 131, dtype));
  const ValueId y = n.node(
      "Conv", {x, n.weight(weight, 0, outputs), n.bias(outputs, 1.0 / 100)}, std::move(attributes));
  return n.finish(tail ? n.through(n.node("Relu", {y}), 0.05, whole(10)) : y);
}

TEST(RunQuantized, AConvolutionAddsUpProductsOfBytes) {
  const Attributes padded = {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 1}}};
  EXPECT_EQ(quantized(convolution(padded, {8, 4, 3, 3}, true, DType::kUInt8), 0.05),
            "Quantize Conv Cast Mul Quantize Clip Dequantize");
  // Channels are filled up to what an instruction adds; a sum needs no Quantize behind it.
  EXPECT_EQ(quantized(convolution(padded, {8, 3, 3, 3}, false, DType::kUInt8), 1e-3),
            "Quantize Pad Conv Add Dequantize");
  EXPECT_EQ(quantized(convolution(padded, {8, 4, 3, 3}, true, DType::kInt8), 0.05),
            "Quantize BitCast Add Conv Cast Mul Quantize Clip Dequantize");
}

// A product of zero weights and a bias of 10 steps of `bias_step`, which is a constant of real
// numbers or bytes and their scale.
Graph bias_alone(bool conv, bool codes, double bias_step, bool tail) {
  Network n;
  const ValueId x = n.through(n.input(conv ? Ints{1, 4, 2, 2} : Ints{2, 4}), 0.1, whole(0));
  const Ints shape = conv ? Ints{1, 4, 1, 1} : Ints{4, 1};
  const ValueId w =
      n.dequantize(n.constant(Tensor(DType::kInt8, shape)), real(80), whole(0, DType::kInt8));
  const ValueId bias = codes ? n.dequantize(n.constant(integers({1}, {10}, DType::kInt32)),
                                            real(bias_step),
                                            whole(0, DType::kInt32))
                             : n.constant(floats({1}, {10 * bias_step}));
  const ValueId y = n.node(conv ? "Conv" : "Gemm", {x, w, bias});
  return n.finish(tail ? n.through(y, 1, whole(0)) : y);
}

// Products are of steps of 0.1 * 80 = 8. The values with --numerics ort are those of onnxruntime
// 1.31.1, which rounds a bias of real numbers where a Quantize follows, and takes a Gemm's codes.
TEST(RunQuantized, ABiasIsOnnxRuntimesWhereItIsAskedFor) {
  for (const bool conv : {true, false}) {
    for (const bool codes : {true, false}) {
      for (const bool tail : {true, false}) {
        const Graph graph = bias_alone(conv, codes, 10, tail);
        const Tensor input = waves(graph[graph.inputs[0]].shape);
        const double ort = codes ? (conv ? 100 : 80) : tail ? 96 : 100;
        const Graph onnx = passed(graph, Numerics::kOnnx);
        const Graph other = passed(graph, Numerics::kOnnxRuntime);
        for (const double value : values_of(run(onnx, input))) EXPECT_EQ(value, 100);
        for (const double value : values_of(run(other, input)))
          EXPECT_EQ(value, ort) << conv << codes << tail;
      }
    }
  }
}

// Products are of steps of 0.1 * 80 = 8: a bias of 100 lies between 96 and 104.
TEST(RunQuantized, ABiasThatIsNoWholeNumberOfStepsIsAddedToReals) {
  for (const bool conv : {true, false}) {
    for (const double bias : {104.0, 100.0}) {
      Network n;
      const ValueId x = n.through(n.input(conv ? Ints{1, 4, 2, 2} : Ints{2, 4}), 0.1, whole(0));
      const Ints shape = conv ? Ints{1, 4, 1, 1} : Ints{4, 1};
      const ValueId w =
          n.dequantize(n.constant(Tensor(DType::kInt8, shape)), real(80), whole(0, DType::kInt8));
      const ValueId y = n.node(conv ? "Conv" : "Gemm", {x, w, n.constant(floats({1}, {bias}))});
      const Graph graph = n.finish(n.through(y, 1, whole(0)));
      const Tensor input = waves(graph[graph.inputs[0]].shape);
      const Graph after = run_quantized(graph, {});
      EXPECT_EQ(std::ranges::count(after.nodes, conv ? "Conv" : "Gemm", &Node::op), conv ? 1 : 0);
      const bool bytes = std::ranges::any_of(
          after.nodes, [](const Node& node) { return node.attributes.contains("sums"); });
      EXPECT_TRUE(bytes) << operators(after);
      for (const double value : values_of(run(after, input))) EXPECT_EQ(value, bias);
    }
  }
}

TEST(RunQuantized, AConvolutionOfManyGroupsAddsUpWholeFloats) {
  const Attributes groups = {{"pads", Ints{1, 1, 1, 1}}, {"group", int64_t{6}}};
  EXPECT_EQ(quantized(convolution(groups, {6, 1, 3, 3}, true, DType::kUInt8), 0.05),
            "Quantize Conv Mul Quantize Clip Dequantize");
  EXPECT_EQ(quantized(convolution(groups, {12, 2, 3, 3}, true, DType::kUInt8), 0.05),
            "Quantize Conv Mul Quantize Clip Dequantize");
}

TEST(RunQuantized, MatricesToo) {
  Network n;
  const ValueId x = n.through(n.input({3, 8}), 0.02, whole(100));
  const ValueId y =
      n.node("Gemm", {x, n.weight({5, 8}, 0, 5), n.bias(5, 0.02)}, {{"transB", int64_t{1}}});
  EXPECT_EQ(quantized(n.finish(n.through(y, 0.1, whole(128))), 0.1),
            "Quantize MatMul Add Add Cast Mul Quantize Dequantize");
  Network m;
  const ValueId a = m.through(m.input({2, 3, 8}), 0.02, whole(100));
  const ValueId b = m.node("MatMul", {a, m.weight({8, 4}, 1, 4)});
  EXPECT_EQ(quantized(m.finish(b), 1e-3), "Quantize MatMul Add Cast Mul");
}

// If both matrices are computed, sums are exact in float32 up to 258 products.
TEST(RunQuantized, AttentionMultipliesWholeFloats) {
  Network n;
  const ValueId x = n.input({2, 4, 6});
  const ValueId a = n.through(x, 0.02, whole(100)), b = n.through(x, 0.01, whole(128));
  const ValueId y = n.node("MatMul", {a, n.node("Transpose", {b}, {{"perm", Ints{0, 2, 1}}})});
  EXPECT_EQ(quantized(n.finish(n.through(y, 0.05, whole(90))), 0.05),
            "Quantize Quantize Transpose Cast Sub Cast Sub Cast Cast MatMul Mul Quantize "
            "Dequantize");
}

TEST(RunQuantized, SumsAndMeansAreOfSteps) {
  Network n;
  const ValueId x = n.input({1, 4, 5, 5});
  const ValueId a = n.through(x, 0.02, whole(100)), b = n.through(x, 0.013, whole(128));
  const ValueId sum = n.through(n.node("Add", {a, b}), 0.03, whole(120));
  const ValueId mean = n.through(n.node("GlobalAveragePool", {sum}), 0.005, whole(127));
  const Graph graph = n.finish(mean);
  const std::string found = quantized(graph, 0.005, false, Numerics::kOnnxRuntime);
  EXPECT_EQ(std::ranges::count(found, 'D'), 1) << found;  // the last Dequantize alone
  quantized(graph, 0, true);
}

// x and y are the numbers 0 to 255 of one scale, so that `op` of them has every pair.
Graph all_pairs(const std::string& op, float x_scale, float y_scale, const Tensor& zero) {
  Network n;
  const ValueId x = n.input({256, 1});
  const ValueId a = n.through(x, x_scale, zero);
  const ValueId b = n.node("Transpose", {a}, {{"perm", Ints{1, 0}}});
  const ValueId y = n.node(op, {a, n.through(b, x_scale, zero)});
  return n.finish(n.quantize(y, y_scale, zero));
}

// Returns the results of the 65,536 pairs of numbers after run_quantized().
std::vector<double> results_of_pairs(const Graph& graph,
                                     float x_scale,
                                     const Tensor& zero,
                                     Numerics numerics) {
  Tensor input(DType::kFloat32, {256, 1});
  for (int64_t i = 0; i < 256; ++i)
    input.set(i, static_cast<float>(i + least_int(zero.dtype()) - zero.get_int(0)) * x_scale);
  return values_of(run(passed(graph, numerics), input));
}

// Node by node, each operator rounds in float32: ONNX's meaning, and the default.
TEST(RunQuantized, SumsAndProductsRoundAsOnnxOrAsOnnxRuntime) {
  constexpr float kX = 0.1F;
  for (const Tensor& zero : {whole(0), whole(117), whole(-3, DType::kInt8)}) {
    for (const bool add : {true, false}) {
      const float step = add ? 0.2F : 0.3F;
      const Graph graph = all_pairs(add ? "Add" : "Mul", kX, step, zero);
      const std::vector<double> onnx = results_of_pairs(graph, kX, zero, Numerics::kOnnx);
      const std::vector<double> ort = results_of_pairs(graph, kX, zero, Numerics::kOnnxRuntime);
      int64_t wrong = 0, differ = 0, place = 0;
      const int64_t z = zero.get_int(0), least = least_int(zero.dtype());
      for (int64_t i = 0; i < 256; ++i) {
        for (int64_t j = 0; j < 256; ++j, ++place) {
          const float a = static_cast<float>(i + least - z) * kX;
          const float b = static_cast<float>(j + least - z) * kX;
          const volatile float real = add ? a + b : a * b;
          const float steps = std::nearbyint(real / step);
          const int64_t wanted = std::clamp(static_cast<int64_t>(steps) + z, least, least + 255);
          const auto at = static_cast<size_t>(place);
          wrong += onnx[at] == static_cast<double>(wanted) ? 0 : 1;
          differ += onnx[at] == ort[at] ? 0 : 1;
          EXPECT_LE(std::abs(onnx[at] - ort[at]), 1);
        }
      }
      EXPECT_EQ(wrong, 0) << add << z;
      EXPECT_GT(differ, 0) << add << z;
    }
  }
}

// The values are those of onnxruntime 1.31.1 on the same graph.
TEST(RunQuantized, ASumOfTwoIsOnnxRuntimesWhereItIsAskedFor) {
  const auto results = [](Numerics numerics) {
    const Graph graph = all_pairs("Add", 0.1F, 0.2F, whole(0));
    const std::vector<double> pairs = results_of_pairs(graph, 0.1F, whole(0), numerics);
    return std::vector{
        pairs[256 * 1 + 30], pairs[256 * 2 + 45], pairs[256 * 3 + 160], pairs[256 * 3 + 180]};
  };
  EXPECT_EQ(results(Numerics::kOnnx), (std::vector<double>{15, 23, 81, 91}));
  EXPECT_EQ(results(Numerics::kOnnxRuntime), (std::vector<double>{16, 24, 82, 92}));
}

// A Relu that changes nothing (the zero point is the least number) is no border for ONNX Runtime.
TEST(RunQuantized, ASumThatIsCutOffIsNotOnnxRuntimesSum) {
  for (const int64_t zero : {0, 3}) {
    Network n;
    const ValueId x = n.input({2, 8});
    const ValueId a = n.through(x, 0.1, whole(3)), b = n.through(x, 0.05, whole(9));
    const ValueId y = n.node("Relu", {n.node("Add", {a, b})});
    const Graph after = passed(n.finish(n.quantize(y, 0.2, whole(zero))), Numerics::kOnnxRuntime);
    EXPECT_EQ(std::ranges::count(after.nodes, "Relu", &Node::op), zero == 0 ? 0 : 1);
  }
}

TEST(RunQuantized, OnnxsMeaningIsThatOfNodeByNodeForEveryOperatorBetweenBytes) {
  const Attributes window = {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}};
  const std::pair<const char*, Attributes> ops[] = {{"AveragePool", window},
                                                    {"GlobalAveragePool", {}},
                                                    {"LeakyRelu", {{"alpha", 0.3}}},
                                                    {"Sigmoid", {}},
                                                    {"Softmax", {{"axis", int64_t{1}}}}};
  for (const auto& [op, attributes] : ops) {
    SCOPED_TRACE(op);
    Network n;
    const ValueId x = n.through(n.input({2, 6, 5, 5}), 1.0 / 128, whole(120));
    quantized(n.finish(n.through(n.node(op, {x}, attributes), 0.1, whole(3))), 0, true);
  }
}

TEST(RunQuantized, WhatOnlyMovesMovesBytes) {
  Network n;
  ValueId x = n.through(n.input({1, 4, 6, 6}), 0.02, whole(100));
  x = n.node("MaxPool", {x}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  x = n.through(x, 0.02, whole(100));
  x = n.through(n.node("Reshape", {x, n.constant(integers({2}, {4, 9}))}), 0.02, whole(100));
  x = n.node("Transpose", {x}, {{"perm", Ints{1, 0}}});
  EXPECT_EQ(quantized(n.finish(x), 0, true), "Quantize MaxPool Reshape Transpose Dequantize");
}

// Other steps than those before are made anew.
TEST(RunQuantized, StepsThatDifferAreKept) {
  Network n;
  const ValueId x = n.through(n.input({1, 8}), 0.02, whole(100));
  EXPECT_EQ(quantized(n.finish(n.through(x, 0.03, whole(100))), 0, true),
            "Quantize Dequantize Quantize Dequantize");
}

TEST(RunQuantized, AWeightMayBeQuantizedInTheFile) {
  Network n;
  const ValueId x = n.through(n.input({2, 8}), 0.02, whole(100));
  const ValueId w = n.through(n.constant(waves({8, 4})), 0.01, whole(0, DType::kInt8));
  EXPECT_EQ(quantized(n.finish(n.node("MatMul", {x, w})), 1e-3), "Quantize MatMul Add Cast Mul");
}

// The order in which MLAS computes, in float32: the sum, times one ratio, held to the numbers there
// are, rounded to even; then the zero point.
TEST(RunQuantized, RequantizesAsMlasDoes) {
  const float x_scale = 0.0173F, w_scale = 0.0091F, y_scale = 0.0311F;
  constexpr int64_t kZero = 117;
  Network n;
  const ValueId x = n.quantize(n.input({40, 8}), x_scale, whole(0));
  const ValueId xd = n.dequantize(x, real(x_scale), whole(0));
  const Tensor w = bytes({8, 16}, 5, 91, DType::kInt8);
  const ValueId wd = n.dequantize(n.constant(w), real(w_scale), whole(0, DType::kInt8));
  const ValueId y = n.quantize(n.node("MatMul", {xd, wd}), y_scale, whole(kZero));
  const Graph graph = n.finish(y);
  Tensor input(DType::kFloat32, {40, 8});
  const Tensor q = bytes({40, 8}, 1, 173, DType::kUInt8);
  for (int64_t i = 0; i < q.num_elements(); ++i) input.set(i, q.get(i) * x_scale);
  const Tensor found = run(run_graph_passes(graph), input);
  const float ratio = x_scale * w_scale / y_scale;
  for (int64_t row = 0; row < 40; ++row) {
    for (int64_t column = 0; column < 16; ++column) {
      int64_t sum = 0;
      for (int64_t k = 0; k < 8; ++k) sum += q.get_int(row * 8 + k) * w.get_int(k * 16 + column);
      const float v =
          std::clamp(static_cast<float>(sum) * ratio, float{0 - kZero}, float{255 - kZero});
      EXPECT_EQ(found.get_int(row * 16 + column), static_cast<int64_t>(std::nearbyint(v)) + kZero);
    }
  }
}

}  // namespace
}  // namespace pruner
