#include <algorithm>

#include "graph/small_graph.h"

namespace pruner {
namespace {

PassOptions options(DotRates dots) {
  PassOptions wanted;
  wanted.target.dots = dots;
  return wanted;
}
constexpr DotRates kAlike = {.int8_alike = 4}, kBoth = {.int8 = 4, .int8_alike = 4};

Tensor bytes(std::vector<int64_t> shape, int64_t first, int64_t step, DType dtype) {
  Tensor tensor(dtype, std::move(shape));
  const int64_t least = least_int(dtype), numbers = greatest_int(dtype) - least + 1;
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.set_int(i, least + (first + i * step) % numbers);
  return tensor;
}

Tensor whole(int64_t value, DType dtype) { return integers({}, {value}, dtype); }

/// A call whose first operand is bytes of a type, with the zero point there that it has.
struct Contraction {
  Graph graph;
  std::vector<Tensor> inputs;

  Contraction(const std::string& op, Tensor x, std::vector<Tensor> rest, Attributes attributes) {
    NetworkBuilder b(op);
    std::vector<ValueId> ids = {b.input("x", x.shape(), x.dtype())};
    for (const Tensor& t : rest) ids.push_back(b.constant("c" + std::to_string(ids.size()), t));
    graph = b.finish({});
    graph.values.push_back({"y", {}, {}, std::nullopt});
    graph.outputs = {ValueId{static_cast<int32_t>(graph.values.size()) - 1}};
    const Result<Unit> made =
        append_call(graph, {op, "it", ids, graph.outputs, std::move(attributes)});
    EXPECT_TRUE(made.ok()) << made.error().message();
    inputs = {std::move(x)};
  }

  /// The operators after the passes, which compute the same in every bit; `data` is what the
  /// contraction reads then.
  std::string after(DotRates dots, DType* data) const {
    const Graph passed = run_graph_passes(graph, options(dots));
    const Result<std::vector<Tensor>> expected = interpret_graph(graph, inputs);
    const Result<std::vector<Tensor>> found = interpret_graph(passed, inputs);
    EXPECT_TRUE(expected.ok() && found.ok());
    expect_near((*found)[0], (*expected)[0], 0);
    for (const Node& node : passed.nodes)
      if (node.op == "Conv" || node.op == "MatMul") *data = passed[node.inputs[0]].dtype;
    return operators(passed);
  }

  DType data(DotRates dots) const {
    DType type = DType::kBool;
    after(dots, &type);
    return type;
  }
};

Contraction convolution(DType dtype, int64_t zero, int64_t groups = 1) {
  Tensor scales(DType::kFloat32, {8}), bias(DType::kInt32, {8});
  for (int64_t i = 0; i < 8; ++i) {
    scales.set(i, 0.01 + 0.001 * static_cast<double>(i));
    bias.set_int(i, 1000 * i - 3000);
  }
  return {"QLinearConv",
          bytes({1, 8, 6, 5}, 3, 41, dtype),
          {floats({}, {0.05}),
           whole(zero, dtype),
           bytes({8, 8 / groups, 3, 3}, 5, 37, DType::kInt8),
           scales,
           Tensor(DType::kInt8, {8}),
           floats({}, {0.5}),
           whole(zero, dtype),
           bias},
          {{"pads", Ints{1, 1, 1, 1}}, {"group", groups}}};
}

Contraction product(DType dtype, int64_t zero) {
  return {"MatMulInteger",
          bytes({5, 12}, 3, 41, dtype),
          {bytes({12, 9}, 5, 37, DType::kInt8), whole(zero, dtype)},
          {}};
}

TEST(MatchSigns, UnsignedDataAreSignedWhereUnitsMultiplySignsAlike) {
  for (const int64_t zero : {0, 128, 131, 255}) {
    SCOPED_TRACE(zero);
    EXPECT_EQ(convolution(DType::kUInt8, zero).data(kAlike), DType::kInt8);
    EXPECT_EQ(product(DType::kUInt8, zero).data(kAlike), DType::kInt8);
    EXPECT_EQ(convolution(DType::kUInt8, zero).data(kBoth), DType::kUInt8);
    EXPECT_EQ(product(DType::kUInt8, zero).data(kBoth), DType::kUInt8);
    EXPECT_EQ(product(DType::kUInt8, zero).data({.int8 = 4}), DType::kUInt8);
  }
}

// Nothing is changed of signed data, not even by passes before.
TEST(MatchSigns, SignedDataStayAsTheyAre) {
  for (const int64_t zero : {-128, -7, 0, 127}) {
    SCOPED_TRACE(zero);
    for (const DotRates& dots : {kAlike, kBoth}) {
      DType data = DType::kBool;
      const std::string conv = convolution(DType::kInt8, zero).after(dots, &data);
      EXPECT_EQ(data, DType::kInt8);
      EXPECT_EQ(conv.find("BitCast"), std::string::npos) << conv;
      const std::string matmul = product(DType::kInt8, zero).after(dots, &data);
      EXPECT_EQ(data, DType::kInt8);
      EXPECT_EQ(matmul.find("BitCast"), std::string::npos) << matmul;
    }
    EXPECT_EQ(product(DType::kInt8, zero).data({.int8 = 4}), DType::kUInt8);
  }
}

// The zero point's sums and the shift's are one constant.
TEST(MatchSigns, AddsOneConstant) {
  DType data = DType::kBool;
  const std::string found = product(DType::kUInt8, 131).after(kAlike, &data);
  EXPECT_EQ(found, "BitCast Add MatMul Add");
}

TEST(MatchSigns, GroupsAreForNoUnit) {
  EXPECT_NE(convolution(DType::kUInt8, 131, 2).data(kAlike), DType::kInt8);
}

}  // namespace
}  // namespace pruner
