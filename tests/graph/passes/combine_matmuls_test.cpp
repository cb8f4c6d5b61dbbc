#include "graph/small_graph.h"

namespace pruner {
namespace {

ValueId project(NetworkBuilder& b, ValueId x, int64_t heads, bool bias, bool relu = false) {
  const ValueId w = b.random("w", {8, heads * 4}, 0, 1);
  ValueId y = b.node("MatMul", {x, w});
  if (bias) y = b.node("Add", {b.random("b", {heads * 4}, 0, 1), y});
  if (relu) y = b.node("Relu", {y});
  y = b.node("Reshape", {y, b.integers("heads", {2, 3, heads, 4})});
  return b.node("Transpose", {y}, {{"perm", Ints{0, 2, 1, 3}}});
}

std::string combined(ValueId (*build)(NetworkBuilder&, ValueId)) {
  NetworkBuilder b("attention");
  const ValueId x = b.input("x", {2, 3, 8}, DType::kFloat32);
  const Graph graph = b.finish({{build(b, x), "y"}});
  run_graph(graph, {waves({2, 3, 8})});
  return operators(combine_matmuls(graph, {}));
}

TEST(CombineMatmuls, QueryKeyAndValueAreOneProduct) {
  EXPECT_EQ(combined([](NetworkBuilder& b, ValueId x) {
              const ValueId q = project(b, x, 2, true), k = project(b, x, 2, true);
              return b.node("Concat",
                            {b.node("Add", {q, k}), project(b, x, 1, true)},
                            {{"axis", int64_t{1}}});
            }),
            "MatMul Add Reshape Slice Transpose Reshape Slice Transpose Add Reshape Slice "
            "Transpose Concat");
}

TEST(CombineMatmuls, BiasIsNotNeeded) {
  EXPECT_EQ(combined([](NetworkBuilder& b, ValueId x) {
              return b.node("Add", {project(b, x, 2, false), project(b, x, 2, false)});
            }),
            "MatMul Reshape Slice Transpose Reshape Slice Transpose Add");
}

TEST(CombineMatmuls, OneWithoutABiasGetsZeros) {
  EXPECT_EQ(combined([](NetworkBuilder& b, ValueId x) {
              return b.node("Add", {project(b, x, 2, false), project(b, x, 2, true)});
            }),
            "MatMul Add Reshape Slice Transpose Reshape Slice Transpose Add");
}

TEST(CombineMatmuls, LeavesAnEpilogueToEach) {
  EXPECT_EQ(combined([](NetworkBuilder& b, ValueId x) {
              return b.node("Add", {project(b, x, 2, true, true), project(b, x, 2, true, true)});
            }),
            "MatMul Add Relu Reshape Transpose MatMul Add Relu Reshape Transpose Add");
}

}  // namespace
}  // namespace pruner
