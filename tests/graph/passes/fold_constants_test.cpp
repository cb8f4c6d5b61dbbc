#include "graph/small_graph.h"

namespace pruner {
namespace {

TEST(FoldConstants, FollowsTheArithmeticOfShapes) {
  NetworkBuilder b("shapes");
  const ValueId x = b.input("x", {2, 3, 4}, DType::kFloat32);
  const ValueId shape = b.node("Shape", {x});
  const ValueId first = b.node("Gather", {shape, b.integers("first", {0})});
  const ValueId target =
      b.node("Concat", {first, b.integers("rest", {-1})}, {{"axis", int64_t{0}}});
  const Graph graph = b.finish({{b.node("Reshape", {x, target}), "y"}});
  EXPECT_EQ(graph[graph.outputs[0]].shape, (Ints{2, 12}));
  EXPECT_EQ(operators(fold_constants(graph)), "Reshape");
}

TEST(FoldConstants, EvaluatesWhatIsTooLargeToDoOnTheWay) {
  NetworkBuilder b("large");
  const ValueId x = b.input("x", {100, 100}, DType::kFloat32);
  const ValueId ones =
      b.node("ConstantOfShape", {b.integers("s", {100, 100})}, {{"value", floats({1}, {1})}});
  const ValueId moved = b.node("Transpose", {b.node("Mul", {ones, b.scalar(3)})});
  const Graph folded = fold_constants(b.finish({{b.node("Add", {x, moved}), "y"}}));
  EXPECT_EQ(operators(folded), "Add");
  EXPECT_EQ(folded[folded.nodes[0].inputs[1]].constant->get(9999), 3);
}

TEST(FoldConstants, MayLeaveNoNode) {
  NetworkBuilder b("known");
  b.input("x", {2}, DType::kFloat32);
  const Graph graph = fold_constants(b.finish({{b.node("Exp", {b.scalar(0)}), "y"}}));
  EXPECT_EQ(graph.nodes.size(), 0u);
  EXPECT_EQ(graph[graph.outputs[0]].constant->get(0), 1);
}

}  // namespace
}  // namespace pruner
