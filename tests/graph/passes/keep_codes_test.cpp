#include <algorithm>

#include "graph/small_graph.h"

namespace pruner {
namespace {

using Node = pruner::Node;

// Numbers over all that the type holds.
Tensor codes(std::vector<int64_t> shape, DType dtype, int64_t phase = 0) {
  Tensor tensor(dtype, std::move(shape));
  const int64_t least = least_int(dtype), count = greatest_int(dtype) - least + 1;
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.set_int(i, least + (i * 37 + i / 11 + phase) % count);
  return tensor;
}

Tensor steps(std::vector<int64_t> shape) {
  Tensor tensor(DType::kFloat32, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.set(i, 0.01 + 0.001 * static_cast<double>(i % 13));
  return tensor;
}

struct Found {
  Graph graph;
  const Node* node = nullptr;  // the CodedMatMul
};

// The passes change nothing of what the network computes, run_graph() says.
Found kept(NetworkBuilder& b, ValueId out, const Tensor& x) {
  const Graph graph = b.finish({{out, "y"}});
  run_graph(graph, {x});
  Found found{run_graph_passes(graph), nullptr};
  const auto at = std::ranges::find(found.graph.nodes, "CodedMatMul", &Node::op);
  if (at != found.graph.nodes.end()) found.node = &*at;
  return found;
}

int64_t attribute(const Found& found, const char* name) {
  return OpCall{found.graph, *found.node}.integer(name, 0);
}

// x [rows, k] times a matrix [k, n] of blocks along k.
Found product(
    int64_t rows, int64_t k, int64_t n, int64_t block, DType dtype, bool equal_zeros, bool by_row) {
  NetworkBuilder b("coded");
  const ValueId x = b.input("x", {rows, k}, DType::kFloat32);
  const int64_t blocks = (k + block - 1) / block;
  const std::vector<int64_t> shape = by_row ? std::vector{n, k} : std::vector{k, n};
  const std::vector<int64_t> of_blocks = by_row ? std::vector{n, blocks} : std::vector{blocks, n};
  Tensor zeros = codes(of_blocks, dtype, 3);
  for (int64_t i = 0; equal_zeros && i < zeros.num_elements(); ++i)
    zeros.set_int(i, (greatest_int(dtype) + least_int(dtype) + 1) / 2);
  const ValueId real = b.node("DequantizeBlocks",
                              {b.constant("q", codes(shape, dtype)),
                               b.constant("s", steps(of_blocks)),
                               b.constant("z", zeros)},
                              {{"axis", int64_t{by_row}}, {"block_size", block}});
  const ValueId matrix = by_row ? b.node("Transpose", {real}, {{"perm", Ints{1, 0}}}) : real;
  return kept(b, b.node("MatMul", {x, matrix}), waves({rows, k}));
}

TEST(KeepCodes, OfEveryTypeInBothOrders) {
  for (const DType dtype :
       {DType::kUInt8, DType::kInt8, DType::kUInt4, DType::kInt4, DType::kUInt2}) {
    for (const bool equal : {true, false}) {
      for (const bool by_row : {true, false}) {
        const Found found = product(2, 96, 50, 32, dtype, equal, by_row);
        ASSERT_NE(found.node, nullptr) << dtype_name(dtype);
        const bool halves = row_of(dtype).bits <= 4;
        EXPECT_EQ(attribute(found, "bits"), halves ? 4 : 8);
        EXPECT_EQ(attribute(found, "block_size"), 32);
        EXPECT_EQ(found.node->inputs.size(), equal ? 3u : 4u);
        const Value& bytes = found.graph[found.node->inputs[1]];
        EXPECT_EQ(bytes.dtype, DType::kInt8);
        EXPECT_EQ(bytes.shape, (Ints{halves ? 48 : 96, 50}));
      }
    }
  }
}

TEST(KeepCodes, AnOddBlockOfHalvesTakesBytes) {
  const Found found = product(1, 51, 90, 17, DType::kInt4, true, false);
  ASSERT_NE(found.node, nullptr);
  EXPECT_EQ(attribute(found, "bits"), 8);
}

TEST(KeepCodes, ALastBlockThatIsCutMakesBlocksShorter) {
  const Found found = product(1, 112, 40, 32, DType::kUInt8, false, false);
  ASSERT_NE(found.node, nullptr);
  EXPECT_EQ(attribute(found, "block_size"), 16);
  EXPECT_EQ(product(1, 100, 50, 32, DType::kUInt8, false, false).node, nullptr);
  for (const auto& [k, block] : {std::pair{160, 32}, {144, 16}, {800, 32}}) {
    const Found cut = product(1, k, 40, 128, DType::kUInt8, false, false);
    ASSERT_NE(cut.node, nullptr);
    EXPECT_EQ(attribute(cut, "block_size"), block) << k;
  }
}

TEST(KeepCodes, ManyRowsTakeFloats) {
  EXPECT_NE(product(8, 96, 50, 32, DType::kInt8, true, false).node, nullptr);
  EXPECT_EQ(product(9, 96, 50, 32, DType::kInt8, true, false).node, nullptr);
}

TEST(KeepCodes, AGemmWithOneScaleForEachColumn) {
  NetworkBuilder b("gemm");
  const ValueId x = b.input("x", {1, 70}, DType::kFloat32);
  const ValueId matrix =
      b.node("Dequantize",
             {b.constant("q", codes({60, 70}, DType::kInt8)), b.constant("s", steps({60, 1}))});
  const ValueId y =
      b.node("Gemm", {x, matrix, b.constant("bias", waves({60}))}, {{"transB", int64_t{1}}});
  const Found found = kept(b, y, waves({1, 70}));
  ASSERT_NE(found.node, nullptr);
  EXPECT_EQ(attribute(found, "block_size"), 70);
}

TEST(KeepCodes, StepsAlongTheOutputsAloneAreOfColumns) {
  NetworkBuilder b("rows");
  const ValueId x = b.input("x", {1, 70}, DType::kFloat32);
  const ValueId matrix =
      b.node("Dequantize",
             {b.constant("q", codes({70, 60}, DType::kInt8)), b.constant("s", steps({70, 1}))});
  EXPECT_EQ(kept(b, b.node("MatMul", {x, matrix}), waves({1, 70})).node, nullptr);
}

TEST(KeepCodes, ProductsOfOneValueAreJoined) {
  NetworkBuilder b("attention");
  const ValueId x = b.input("x", {1, 1, 64}, DType::kFloat32);
  std::vector<ValueId> parts;
  for (int64_t i = 0; i < 3; ++i) {
    const std::string name = std::to_string(i);
    const ValueId matrix = b.node("DequantizeBlocks",
                                  {b.constant("q" + name, codes({64, 80}, DType::kInt4, i)),
                                   b.constant("s" + name, steps({2, 80}))},
                                  {{"axis", int64_t{0}}, {"block_size", int64_t{32}}});
    const ValueId y = b.node("MatMul", {x, matrix});
    parts.push_back(b.node("Reshape", {y, b.integers("shape" + name, {1, 1, 8, 10})}));
  }
  const ValueId sum = b.node("Add", {b.node("Mul", {parts[0], parts[1]}), parts[2]});
  const Found found = kept(b, sum, waves({1, 1, 64}));
  ASSERT_NE(found.node, nullptr);
  EXPECT_EQ(std::ranges::count(found.graph.nodes, "CodedMatMul", &Node::op), 1);
  EXPECT_EQ(found.graph[found.node->inputs[1]].shape, (Ints{32, 240}));
}

}  // namespace
}  // namespace pruner
