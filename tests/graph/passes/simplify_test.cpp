#include "graph/small_graph.h"

namespace pruner {
namespace {

TEST(Simplify, SpellsReshapesOneWay) {
  NetworkBuilder b("views");
  ValueId x = b.input("x", {2, 1, 3, 4}, DType::kFloat32);
  x = b.node("Squeeze", {b.node("Identity", {x}), b.integers("axes", {1})});
  x = b.node("Dropout", {b.node("Flatten", {x})});
  const Graph graph = simplify(b.finish({{b.node("Relu", {x}), "y"}}));
  EXPECT_EQ(operators(graph), "Reshape Relu");
}

TEST(Simplify, DropsWhatChangesNothing) {
  NetworkBuilder b("nothing");
  ValueId x = b.input("x", {2, 3}, DType::kFloat32);
  x = b.node("Cast", {x}, {{"to", std::string("float32")}});
  x = b.node("Pad", {x, b.integers("pads", {0, 0, 0, 0})});
  x = b.node("Slice",
             {x, b.integers("starts", {0}), b.integers("ends", {9}), b.integers("axes", {1})});
  x = b.node("Expand", {x, b.integers("shape", {1, 3})});
  x = b.node("Transpose", {x}, {{"perm", Ints{0, 1}}});
  x = b.node("Sum", {b.node("Relu", {x})});
  EXPECT_EQ(operators(simplify(b.finish({{x, "y"}}))), "Relu");
}

TEST(Simplify, KeepsAReversal) {
  NetworkBuilder b("reversal");
  const ValueId x = b.input("x", {4}, DType::kFloat32);
  const ValueId y = b.node("Slice",
                           {x,
                            b.integers("s", {-1}),
                            b.integers("e", {-9}),
                            b.integers("a", {0}),
                            b.integers("t", {-1})});
  const Graph graph = b.finish({{y, "y"}});
  EXPECT_EQ(operators(simplify(graph)), "Slice");
  EXPECT_EQ(values_of(run_graph(graph, {floats({4}, {1, 2, 3, 4})})[0]),
            (std::vector<double>{4, 3, 2, 1}));
}

TEST(Simplify, GivesAConvolutionThePadBeforeIt) {
  NetworkBuilder b("pad");
  const ValueId x = b.input("x", {1, 2, 5, 5}, DType::kFloat32);
  const ValueId padded = b.node("Pad", {x, b.integers("pads", {0, 0, 1, 0, 0, 0, 1, 2})});
  const ValueId w = b.random("w", {3, 2, 3, 3}, 0, 1);
  const Graph graph = b.finish({{b.node("Conv", {padded, w}, {{"pads", Ints{0, 1, 0, 0}}}), "y"}});
  const Graph simple = simplify(graph);
  EXPECT_EQ(operators(simple), "Conv");
  EXPECT_EQ(std::get<Ints>(simple.nodes[0].attributes.at("pads")), (Ints{1, 1, 1, 2}));
  run_graph(graph, {waves({1, 2, 5, 5})});
}

// 82 times the inverse of 41 in float32 is less than 2.
TEST(Simplify, DividesWhereAnOperatorThatJumpsReadsTheQuotient) {
  NetworkBuilder b("jumps");
  const ValueId x = b.input("x", {2}, DType::kFloat32), y = b.scalar(41);
  const auto quotient = [&] { return b.node("Div", {x, y}); };
  const ValueId sum = b.node("Add", {b.node("Relu", {quotient()}), b.scalar(0)});
  const ValueId whole = b.node("Cast", {quotient()}, {{"to", std::string("int32")}});
  const ValueId smooth = b.node("Floor", {b.node("Exp", {quotient()})});
  const Graph graph = b.finish({{b.node("Floor", {sum}), "a"},
                                {whole, "b"},
                                {b.node("Less", {quotient(), b.scalar(2)}), "c"},
                                {smooth, "d"}});
  const Graph simple = simplify(graph);
  EXPECT_EQ(std::ranges::count(simple.nodes, "Div", &Node::op), 3);
  EXPECT_EQ(std::ranges::count(simple.nodes, "Mul", &Node::op), 1);
  const std::vector<Tensor> found = run_graph(simple, {floats({2}, {82, -82})});
  EXPECT_EQ(values_of(found[0]), (std::vector<double>{2, 0}));
  EXPECT_EQ(values_of(found[1]), (std::vector<double>{2, -2}));
  EXPECT_EQ(values_of(found[2]), (std::vector<double>{0, 1}));
}

TEST(Simplify, MultipliesByTheInverseOfAPowerOfTwoAlways) {
  NetworkBuilder b("powers");
  const ValueId x = b.input("x", {2}, DType::kFloat32);
  const ValueId tiny = b.constant("tiny", floats({2}, {0x1p-149, 1}));
  const Graph graph = b.finish(
      {{b.node("Floor", {b.node("Div", {x, b.scalar(8)})}), "a"}, {b.node("Div", {x, tiny}), "b"}});
  EXPECT_EQ(operators(simplify(graph)), "Mul Floor Div");
}

TEST(Simplify, MultipliesInsteadOfDividingUnlessExact) {
  NetworkBuilder b("divisions");
  const ValueId x = b.input("x", {2}, DType::kFloat32), y = b.scalar(3);
  const Graph graph = b.finish(
      {{b.node("Div", {x, y}), "a"}, {b.node("Div", {x, y}, {{"exact", int64_t{1}}}), "b"}});
  EXPECT_EQ(operators(simplify(graph)), "Mul Div");
}

TEST(Simplify, KeepsTheNamesOfOutputs) {
  NetworkBuilder b("names");
  const ValueId x = b.input("x", {2}, DType::kFloat32), y = b.node("Relu", {x});
  const Graph graph = simplify(b.finish({{b.node("Identity", {y}), "a"},
                                         {b.node("Identity", {y}), "b"},
                                         {b.node("Identity", {x}), "c"}}));
  ASSERT_EQ(graph.outputs.size(), 3u);
  EXPECT_EQ(graph[graph.outputs[0]].name, "a");
  EXPECT_EQ(graph[graph.outputs[1]].name, "b");
  EXPECT_EQ(graph[graph.outputs[2]].name, "c");
  const Tensor in = floats({2}, {-1, 2});
  const std::vector<Tensor> out = run_graph(graph, {in});
  EXPECT_EQ(values_of(out[1]), (std::vector<double>{0, 2}));
  EXPECT_EQ(values_of(out[2]), values_of(in));
}

}  // namespace
}  // namespace pruner
