#include "graph/small_graph.h"
#include "tensor/task.h"

namespace pruner {
namespace {

PassOptions bfloat16() {
  PassOptions options;
  options.target.dots.bfloat16 = 2;
  options.precision = Precision::kBFloat16;
  return options;
}

// Small whole numbers: bfloat16 has them, and float32 their sums of products.
Tensor digits(std::vector<int64_t> shape, int64_t phase = 0) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.set(i, static_cast<double>((i * 7 + phase) % 5 - 2));
  return tensor;
}

ValueId weight(NetworkBuilder& b, std::vector<int64_t> shape, int64_t phase = 1) {
  return b.constant("w" + std::to_string(phase), digits(std::move(shape), phase));
}
ValueId linear(NetworkBuilder& b, ValueId x, int64_t out, int64_t phase = 1) {
  return b.node("MatMul", {x, weight(b, {b.shape(x).back(), out}, phase)});
}

// A kernel of its own, of whole numbers: sums of pairs.
ValueId pair_sums(NetworkBuilder& b, ValueId x) {
  return b.node("ReduceSum", {x, b.integers("axes", {2})}, {{"keepdims", int64_t{0}}});
}

// The network after the passes. On whole numbers it gives what it gave before, where `exact`.
Graph narrowed(const Graph& graph, bool exact = true, const PassOptions& options = bfloat16()) {
  Graph after = run_graph_passes(graph, options);
  const std::vector<Tensor> inputs = {digits(graph[graph.inputs[0]].shape)};
  const Result<std::vector<Tensor>> expected = interpret_graph(graph, inputs);
  const Result<std::vector<Tensor>> found = interpret_graph(after, inputs);
  EXPECT_TRUE(expected.ok() && found.ok());
  for (size_t i = 0; i < expected->size(); ++i) {
    EXPECT_EQ((*found)[i].dtype(), (*expected)[i].dtype());
    expect_near((*found)[i], (*expected)[i], exact ? 0 : 0.02);
  }
  return after;
}

TEST(NarrowFloats, AValueBetweenTwoKernelsIsRoundedOnce) {
  NetworkBuilder b("chain");
  const ValueId x = b.input("x", {4, 8, 2}, DType::kFloat32);
  const ValueId y = b.node("Relu", {linear(b, pair_sums(b, x), 6)});
  const Graph after = narrowed(b.finish({{linear(b, y, 2, 2), "y"}}));
  EXPECT_EQ(kernels(after), "ReduceSum+Cast, MatMul+Relu+Cast, MatMul");
  for (const Node& node : after.nodes) {
    if (node.op != "MatMul") continue;
    EXPECT_EQ(after[node.inputs[0]].dtype, DType::kBFloat16);
    EXPECT_EQ(after[node.inputs[1]].dtype, DType::kBFloat16);
    EXPECT_EQ(after[node.outputs[0]].dtype, DType::kFloat32);
  }
}

TEST(NarrowFloats, ToFloat16WhereTilesMultiplyIt) {
  NetworkBuilder b("two");
  const ValueId x = b.input("x", {6, 8}, DType::kFloat32);
  const ValueId pairs = b.node("Reshape", {linear(b, x, 12), b.integers("s", {6, 6, 2})});
  const Graph graph = b.finish({{linear(b, pair_sums(b, pairs), 4, 2), "y"}});
  PassOptions options;
  options.precision = Precision::kFloat16;
  options.target.dots.bfloat16_tile = 16;
  const auto types = [&] {
    std::set<DType> found;
    const Graph after = narrowed(graph, true, options);
    for (const Node& node : after.nodes) {
      if (node.op != "MatMul") continue;
      for (const ValueId id : node.inputs) found.insert(after[id].dtype);
    }
    return found;
  };
  EXPECT_EQ(types(), std::set{DType::kFloat32});
  options.target.dots.float16_tile = 16;
  EXPECT_EQ(types(), std::set{DType::kFloat16});
}

TEST(NarrowFloats, WhatElseReadsIt) {
  NetworkBuilder b("residual");
  const ValueId x = b.input("x", {4, 8}, DType::kFloat32);
  const ValueId y = b.node("Neg", {x});
  const ValueId sum = b.node("Add", {linear(b, y, 8), y});
  const Graph after = narrowed(b.finish({{b.node("Softmax", {sum}), "y"}}));
  EXPECT_EQ(kernels(after), "Neg+Cast, MatMul+Cast+Add, Softmax");
}

TEST(NarrowFloats, AnInputOfTheNetworkIsCopied) {
  NetworkBuilder b("input");
  const ValueId x = b.input("x", {4, 8}, DType::kFloat32);
  const Graph after = narrowed(b.finish({{linear(b, x, 2), "y"}, {linear(b, x, 3, 2), "z"}}));
  EXPECT_EQ(kernels(after), "Cast, MatMul, MatMul");
  EXPECT_EQ(after[after.inputs[0]].dtype, DType::kFloat32);
}

TEST(NarrowFloats, PartsOfAConcatAreStoredAlike) {
  NetworkBuilder b("concat");
  const ValueId x = b.input("x", {1, 8, 2}, DType::kFloat32);
  const ValueId y = linear(b, pair_sums(b, x), 6), z = b.node("Relu", {linear(b, y, 10, 2)});
  const ValueId all = b.node("Concat", {y, z}, {{"axis", int64_t{1}}});
  const Graph graph = b.finish({{linear(b, all, 3, 3), "y"}});
  const Graph after = narrowed(graph);
  EXPECT_EQ(kernels(after), "ReduceSum+Cast, MatMul+Cast, MatMul+Relu+Cast, MatMul");
  const Result<Partition> cut = partition(graph, bfloat16().target, Precision::kBFloat16);
  ASSERT_TRUE(cut.ok());
  const ValueId whole = cut->storage_of(cut->groups[3].inputs[0]).owner;
  for (const size_t part : {1, 2}) {
    const Storage storage = cut->storage_of(cut->groups[part].output);
    EXPECT_EQ(storage.owner, whole);
    EXPECT_EQ((*cut)[storage.owner].dtype, DType::kBFloat16);
  }
}

// Its readers compute what it is made of, tile by tile.
TEST(NarrowFloats, AValueInsideAKernel) {
  NetworkBuilder b("inside");
  const ValueId x = b.input("x", {1, 8, 5, 5}, DType::kFloat32);
  const ValueId sum = b.node("MaxPool", {x}, {{"kernel_shape", Ints{2, 2}}});
  const ValueId y = b.node("Relu", {b.node("Mul", {sum, weight(b, {8, 1, 1}, 4)})});
  const ValueId z = b.node("Conv", {y, weight(b, {6, 8, 1, 1})});
  const Graph after = narrowed(b.finish({{z, "y"}, {sum, "z"}}));
  EXPECT_NE(kernels(after).find("Mul+Relu+Cast+Conv"), std::string::npos) << kernels(after);
}

TEST(NarrowFloats, ConvolutionsOfPairsOfChannels) {
  for (const auto& [channels, groups, narrow] :
       {std::tuple{16, 1, true}, {17, 1, false}, {8, 2, false}, {8, 8, false}}) {
    NetworkBuilder b("conv");
    const ValueId x = b.input("x", {1, channels, 6, 6}, DType::kFloat32);
    const ValueId w = weight(b, {16, channels / groups, 3, 3});
    const Attributes attributes = {{"group", int64_t{groups}}, {"pads", Ints{1, 1, 1, 1}}};
    const ValueId y = b.node("Conv", {b.node("Neg", {x}), w, weight(b, {16}, 2)}, attributes);
    const Graph after = narrowed(b.finish({{b.node("Relu", {y}), "y"}}));
    EXPECT_EQ(kernels(after).find("Cast") != std::string::npos, narrow)
        << channels << " " << groups;
  }
}

// A convolution's result travels as bfloat16, but not to a convolution that multiplies float32.
TEST(NarrowFloats, WhatAConvolutionMakes) {
  for (const bool depthwise : {false, true}) {
    NetworkBuilder b("pool");
    const ValueId x = b.input("x", {1, 16, 6, 6}, DType::kFloat32);
    const ValueId y = b.node("Conv", {b.node("Neg", {x}), weight(b, {16, 16, 1, 1})});
    const ValueId z =
        depthwise ? b.node("Conv", {y, weight(b, {16, 1, 3, 3}, 2)}, {{"group", int64_t{16}}})
                  : b.node("MaxPool", {y}, {{"kernel_shape", Ints{3, 3}}});
    const Graph after = narrowed(b.finish({{z, "y"}}), false);
    int rounded = 0;
    for (const Node& node : after.nodes)
      rounded += node.op == "Cast" && after[node.outputs[0]].dtype == DType::kBFloat16;
    EXPECT_EQ(rounded, depthwise ? 1 : 2) << kernels(after);
  }
}

// Attention's products and what their inputs are made by stay float32.
TEST(NarrowFloats, ProductsOfTwoValuesAreLeftAlone) {
  NetworkBuilder b("attention");
  const ValueId x = b.input("x", {4, 8}, DType::kFloat32);
  const ValueId y = b.node("Neg", {x}), q = linear(b, y, 8), k = linear(b, y, 8, 2);
  const ValueId scores = b.node("MatMul", {q, b.node("Transpose", {k})});
  const Graph after = narrowed(b.finish({{scores, "y"}}));
  int wide = 0;
  for (const Node& node : after.nodes)
    wide += node.op == "MatMul" && after[node.inputs[0]].dtype == DType::kFloat32;
  EXPECT_EQ(wide, 1);
}

// A GPU's unit may multiply two values: attention's factors have 16 bits, its softmax has 32.
TEST(NarrowFloats, ProductsOfTwoValuesOnGpus) {
  NetworkBuilder b("attention");
  const ValueId x = b.input("x", {4, 8}, DType::kFloat32);
  const ValueId q = linear(b, x, 8), k = linear(b, x, 8, 2);
  const ValueId scores = b.node("MatMul", {q, b.node("Transpose", {k})});
  const Graph graph = b.finish({{b.node("MatMul", {b.node("Softmax", {scores}), q}), "y"}});
  for (const char* text : {"cuda --model=a100", "cuda --model=v100"}) {
    const PassOptions options{*parse_target(text, 0), Precision::kFloat16};
    const Graph after = narrowed(graph, false, options);
    for (const Node& node : after.nodes) {
      const DType read = after[node.inputs[0]].dtype, made = after[node.outputs[0]].dtype;
      if (node.op == "Softmax") {
        EXPECT_EQ(read, DType::kFloat32) << text;
      }
      if (node.op != "MatMul") continue;
      EXPECT_EQ(read, DType::kFloat16) << text << ": without a unit, too";
      EXPECT_EQ(after[node.inputs[1]].dtype, DType::kFloat16) << text;
      EXPECT_EQ(made, DType::kFloat32) << text;
    }
  }
}

// Its weights are of 16 bits as they were, its sums of 32.
TEST(NarrowFloats, NetworksOf16BitsOnGpus) {
  NetworkBuilder b("halves");
  const ValueId x = b.input("x", {4, 8}, DType::kFloat16);
  Tensor w(DType::kFloat16, {8, 6});
  for (int64_t i = 0; i < w.num_elements(); ++i) w.set(i, static_cast<double>(i % 5 - 2));
  const ValueId y = b.node("Relu", {b.node("MatMul", {x, b.constant("w", w)})});
  const Graph graph = b.finish({{y, "y"}});
  PassOptions options{*parse_target("cuda --model=a100", 0), Precision::kFloat32};
  EXPECT_EQ(kernels(run_graph_passes(graph, options)), "MatMul+Relu");
  options.precision = Precision::kFloat16;
  const Graph after = run_graph_passes(graph, options);
  EXPECT_EQ(kernels(after), "MatMul+Relu+Cast");
  for (const Node& node : after.nodes) {
    if (node.op != "MatMul") continue;
    EXPECT_EQ(after[node.inputs[0]].dtype, DType::kFloat16);
    EXPECT_EQ(after[node.inputs[1]].dtype, DType::kFloat16);
    EXPECT_EQ(after[node.outputs[0]].dtype, DType::kFloat32);
  }
}

TEST(NarrowFloats, NeedsTheUnitAndTheWish) {
  NetworkBuilder b("chain");
  const ValueId x = b.input("x", {4, 8, 2}, DType::kFloat32);
  const Graph graph = b.finish({{linear(b, pair_sums(b, x), 6), "y"}});
  PassOptions wish = bfloat16(), unit = bfloat16();
  wish.target.dots.bfloat16 = 0.5;
  unit.precision = Precision::kFloat32;
  for (const PassOptions& options : {wish, unit})
    EXPECT_EQ(kernels(run_graph_passes(graph, options)), "ReduceSum, MatMul");
}

}  // namespace
}  // namespace pruner
