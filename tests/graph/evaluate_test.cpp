#include "graph/evaluate.h"

#include <cmath>

#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A value of shape [0, 4] that is cut out of an input.
struct Emptied {
  Emptied() : b("emptied") {
    x = b.input("x", {3, 4}, DType::kFloat32);
    none = b.node("Slice", {x, b.integers("from", {1}), b.integers("to", {1})});
  }
  Tensor run(ValueId out) { return run_graph(b.finish({{out, "out"}}), {waves({3, 4})})[0]; }
  NetworkBuilder b;
  ValueId x, none;
};

TEST(Constants, OfFewNumbersHaveALimit) {
  const Ints large = {1 << 15, 1 << 15};
  for (const std::string& message :
       {refusal("ConstantOfShape", {large}), refusal("Expand", {Ints{1}, large})})
    EXPECT_NE(message.find("the constant would have the shape 32768x32768, expected at most "
                           "268435456 elements"),
              std::string::npos)
        << message;
}

TEST(Empty, IsKnown) {
  Emptied e;
  const ValueId relu = e.b.node("Relu", {e.none});
  const Tensor out = e.run(
      e.b.node("Reshape", {relu, e.b.integers("to", {2, 0, 7})}, {{"allowzero", int64_t{1}}}));
  EXPECT_EQ(out.shape(), (Ints{2, 0, 7}));
}

TEST(Empty, JoinsNothing) {
  Emptied e;
  const ValueId out = e.b.concat({e.none, e.x, e.none}, 0);
  expect_near(e.run(out), waves({3, 4}), 0);
  Emptied two;
  const ValueId all = two.b.concat({two.none, two.b.node("Neg", {two.x}), two.x, two.none}, 0);
  EXPECT_EQ(two.run(all).shape(), (Ints{6, 4}));
}

TEST(Empty, HasSumsProductsAndBounds) {
  const auto reduced = [](const std::string& op) {
    Emptied e;
    return values_of(e.run(e.b.node(op, {e.none, e.b.integers("axes", {0})})));
  };
  EXPECT_EQ(reduced("ReduceSum"), V(4, 0));
  EXPECT_EQ(reduced("ReduceL2"), V(4, 0));
  EXPECT_EQ(reduced("ReduceProd"), V(4, 1));
  EXPECT_EQ(reduced("ReduceLogSum"), V(4, -kInfinity));
  Emptied mean, greatest;
  const auto only = [](Emptied& e, const char* op) {
    const Graph graph = e.b.finish({{e.b.node(op, {e.none}), "out"}});
    return interpret_graph(run_graph_passes(graph), {{waves({3, 4})}})->at(0).get(0);
  };
  EXPECT_TRUE(std::isnan(only(mean, "ReduceMean")));
  EXPECT_EQ(only(greatest, "ReduceMax"), -kInfinity);
  EXPECT_NE(refusal("ArgMax", {floats({0, 4}, {})}), "");
  EXPECT_EQ(refusal("ArgMax", {Operand::weight(floats({0, 4}, {}))}),
            "node \"it\": input 0 has no elements: 0x4");
}

TEST(Empty, MultipliesAndPads) {
  Emptied e;
  const ValueId turned = e.b.node("Transpose", {e.none}, {{"perm", Ints{1, 0}}});
  const Tensor product = e.run(e.b.node("MatMul", {turned, e.none}));
  EXPECT_EQ(product.shape(), (Ints{4, 4}));
  EXPECT_EQ(values_of(product), V(16, 0));
  Emptied p;
  const Tensor padded =
      p.run(p.b.node("Pad", {p.none, p.b.integers("pads", {0, 0, 1, 0}), p.b.scalar(7)}));
  EXPECT_EQ(values_of(padded), V(4, 7));
}

TEST(Empty, ComesOfShapesAndRanges) {
  NetworkBuilder b("ranges");
  const ValueId x = b.input("x", {2}, DType::kFloat32);
  const ValueId none = b.node("Range", {b.scalar(3), b.scalar(3), b.scalar(1)});
  const ValueId of_shape = b.node("ConstantOfShape", {b.integers("shape", {0})});
  const ValueId all = b.concat({none, x, of_shape}, 0);
  const ValueId size = b.node("Size", {none});
  const std::vector<Tensor> y =
      run_graph(b.finish({{all, "all"}, {size, "size"}}), {floats({2}, {1, 2})});
  EXPECT_EQ(values_of(y[0]), (V{1, 2}));
  EXPECT_EQ(y[1].get_int(0), 0);
  EXPECT_EQ(run_op("Tile", {waves({2, 3}), Ints{0, 1}}).shape(), (Ints{0, 3}));
  EXPECT_EQ(run_op("Expand", {waves({1, 3}), Ints{0, 1}}).shape(), (Ints{0, 3}));
}

// run_graph compares what the passes fold with what the interpreter gives.
TEST(Weights, AreJoinedAlongEachAxis) {
  for (const int64_t axis : {0, 1, -1}) {
    NetworkBuilder b("joined");
    std::vector<int64_t> small = {2, 3, 4}, large = small;
    large[axis < 0 ? 2 : axis] = 5;
    const ValueId whole = b.node("Concat",
                                 {b.constant("a", waves(small)), b.constant("b", waves(large, 1))},
                                 {{"axis", axis}});
    const std::vector<int64_t> shape = b.shape(whole);
    const ValueId x = b.input("x", shape, DType::kFloat32);
    const Graph graph = b.finish({{b.node("Add", {x, whole}), "y"}});
    EXPECT_EQ(operators(fold_constants(graph)), "Add");
    run_graph(graph, {waves(shape, 2)});
  }
}

TEST(Weights, AreCastFromEachCode) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    NetworkBuilder b("cast");
    Tensor codes(dtype, {1 << 16});
    for (size_t i = 0; i < codes.values<uint16_t>().size(); ++i)
      codes.values<uint16_t>()[i] = static_cast<uint16_t>(i);
    const ValueId wide =
        b.node("Cast", {b.constant("codes", codes)}, {{"to", std::string("float32")}});
    const ValueId x = b.input("x", {1}, DType::kFloat32);
    const Graph graph = b.finish({{b.node("Mul", {x, wide}), "y"}});
    EXPECT_EQ(operators(fold_constants(graph)), "Mul");
    run_graph(graph, {floats({1}, {1})});
  }
}

}  // namespace
}  // namespace pruner
