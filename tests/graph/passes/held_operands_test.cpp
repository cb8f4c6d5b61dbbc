// Kernels of a GPU's matrix instructions that take in what makes their operands.
#include "graph/small_graph.h"

namespace pruner {
namespace {

PassOptions on(const char* target, Precision precision = Precision::kFloat16) {
  PassOptions options;
  options.target = *parse_target(target, 0);
  options.precision = precision;
  return options;
}
constexpr const char* kAmpere = "cuda --arch=sm_80";

ValueId weight(NetworkBuilder& b, ValueId x, int64_t out, const std::string& name) {
  return b.random(name, {b.shape(x).back(), out}, 0, 0.1);
}
ValueId linear(NetworkBuilder& b, ValueId x, int64_t out, const std::string& name) {
  return b.node("MatMul", {x, weight(b, x, out, name)});
}
ValueId norm(NetworkBuilder& b, ValueId x, const std::string& name) {
  const int64_t width = b.shape(x).back();
  return b.node("LayerNormalization",
                {x, b.random(name + ".g", {width}, 1, 0.1), b.random(name + ".b", {width}, 0, 1)},
                {{"axis", int64_t{-1}}});
}

// The operators of each kernel, in order, after the passes; the network gives what it gave before.
std::string kernels(const Graph& graph, const PassOptions& options) {
  const Graph after = run_graph_passes(graph, options);
  std::vector<Tensor> inputs;
  for (const ValueId id : graph.inputs) inputs.push_back(waves(graph[id].shape));
  const Result<std::vector<Tensor>> expected = interpret_graph(graph, inputs);
  const Result<std::vector<Tensor>> found = interpret_graph(after, inputs);
  EXPECT_TRUE(expected.ok() && found.ok());
  for (size_t i = 0; i < expected->size(); ++i) expect_near((*found)[i], (*expected)[i], 0.02);
  return kernels(after);
}

TEST(HeldOperands, ANormIsOfTheProductThatReadsIt) {
  NetworkBuilder b("block");
  const ValueId x = b.input("x", {1, 32, 64}, DType::kFloat32);
  const Graph graph = b.finish({{linear(b, norm(b, x, "n"), 96, "w"), "y"}});
  const char* const one = "LayerNormalization+Cast+MatMul";
  const char* const two = "LayerNormalization+Cast, MatMul";
  EXPECT_EQ(kernels(graph, on(kAmpere)), one);
  EXPECT_EQ(kernels(graph, on("cuda --arch=sm_90", Precision::kBFloat16)), one);
  EXPECT_EQ(kernels(graph, on("cuda --arch=sm_75")), two);
  EXPECT_EQ(kernels(graph, on(kAmpere, Precision::kFloat32)), "LayerNormalization, MatMul");
}

TEST(HeldOperands, ProductsThatAreWideOrShortReadANorm) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{4, 96}, {64, 400'000}}) {
    NetworkBuilder b("block");
    const ValueId x = b.input("x", {1, rows, 64}, DType::kFloat32);
    const ValueId y = linear(b, norm(b, x, "n"), columns, "w");
    const Graph after = run_graph_passes(b.finish({{y, "y"}}), on(kAmpere));
    int groups = 0;
    for (const Node& node : after.nodes) groups = std::max(groups, node.group + 1);
    EXPECT_EQ(groups, 2) << rows << " x " << columns;
  }
}

// A layer norm behind each sum, as BERT has it: the product and the next sum read it.
TEST(HeldOperands, EachReaderOfANormMakesItsOwn) {
  NetworkBuilder b("post");
  const ValueId x = b.input("x", {1, 32, 64}, DType::kFloat32);
  const ValueId n = norm(b, x, "n");
  const ValueId hidden = b.node("Relu", {linear(b, n, 128, "up")});
  const ValueId bias = b.random("bias", {64}, 0, 1);
  const ValueId down = b.node("Add", {linear(b, hidden, 64, "down"), bias});
  const Graph graph = b.finish({{b.node("Add", {down, n}), "y"}});
  EXPECT_EQ(kernels(graph, on(kAmpere)),
            "LayerNormalization+Cast+MatMul+Relu+Cast, LayerNormalization+MatMul+Add+Add");
}

TEST(HeldOperands, ANormThatAnotherNodeReadsIsAKernel) {
  NetworkBuilder b("outside");
  const ValueId x = b.input("x", {1, 32, 64}, DType::kFloat32);
  const ValueId n = norm(b, x, "n");
  const Graph graph = b.finish({{linear(b, n, 96, "w"), "y"}, {n, "normalized"}});
  EXPECT_EQ(kernels(graph, on(kAmpere)), "LayerNormalization, Cast, MatMul");
}

TEST(HeldOperands, AProductAndItsGateAreOneKernel) {
  const auto gated = [](bool gate_first, bool gate_is_read) {
    NetworkBuilder b("gated");
    const ValueId n = norm(b, b.input("x", {1, 32, 64}, DType::kFloat32), "n");
    ValueId up, gate;
    if (!gate_first) up = linear(b, n, 96, "up");
    gate = linear(b, n, 96, "gate");
    if (gate_first) up = linear(b, n, 96, "up");
    const ValueId silu = b.node("Mul", {gate, b.node("Sigmoid", {gate})});
    std::vector<std::pair<ValueId, std::string>> outputs = {{b.node("Mul", {silu, up}), "y"}};
    if (gate_is_read) outputs.emplace_back(silu, "silu");
    return kernels(b.finish(outputs), on(kAmpere));
  };
  for (const bool first : {false, true}) {
    const std::string one = gated(first, false);
    EXPECT_EQ(one.find(", "), std::string::npos) << one;
    const std::string several = gated(first, true);
    EXPECT_NE(several.find(", "), std::string::npos) << several << ": two results";
  }
}

TEST(HeldOperands, ADepthwiseConvolutionIsOfTheProductBehindIt) {
  NetworkBuilder b("separable");
  const ValueId x = b.input("x", {1, 32, 9, 9}, DType::kFloat32);
  const ValueId depthwise =
      b.node("Conv",
             {x, b.random("taps", {32, 1, 3, 3}, 0, 0.3)},
             {{"group", int64_t{32}}, {"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}});
  const ValueId y =
      b.node("Conv", {b.node("Relu", {depthwise}), b.random("w", {48, 32, 1, 1}, 0, 0.1)});
  const std::string after = kernels(b.finish({{y, "y"}}), on(kAmpere));
  EXPECT_NE(after.find("Conv+Relu+Cast+Conv"), std::string::npos) << after;
}

// Queries and keys by rotary embeddings, in the kernel of their attention.
TEST(HeldOperands, RotationsAreOfTheAttention) {
  constexpr int64_t kPositions = 32, kHeads = 2, kWidth = 16;
  NetworkBuilder b("rotary");
  const auto heads = [&](const char* name) {
    return b.input(name, {1, kHeads, kPositions, kWidth}, DType::kFloat32);
  };
  const ValueId cosines = b.random("cos", {kPositions, kWidth}, 0, 1),
                sines = b.random("sin", {kPositions, kWidth}, 0, 1);
  const auto half = [&](ValueId x, int64_t first) {
    return b.node("Slice",
                  {x,
                   b.integers("start", {first}),
                   b.integers("end", {first + kWidth / 2}),
                   b.integers("axes", {3})});
  };
  const auto rotated = [&](ValueId x) {
    const ValueId turned = b.node(
        "Concat", {b.node("Neg", {half(x, kWidth / 2)}), half(x, 0)}, {{"axis", int64_t{3}}});
    return b.node("Add", {b.node("Mul", {x, cosines}), b.node("Mul", {turned, sines})});
  };
  const ValueId keys = b.node("Transpose", {rotated(heads("k"))}, {{"perm", Ints{0, 1, 3, 2}}});
  const ValueId scores = b.node("MatMul", {rotated(heads("q")), keys});
  const ValueId y = b.node("MatMul", {b.node("Softmax", {scores}), heads("v")});
  const std::string after = kernels(b.finish({{y, "y"}}), on(kAmpere));
  EXPECT_EQ(std::ranges::count(after, ','), 1) << after << ": a cast of the values, and one kernel";
  EXPECT_NE(after.find("Cast+FusedAttention"), std::string::npos) << after;
}

}  // namespace
}  // namespace pruner
