#include "graph/bounds.h"

#include <gtest/gtest.h>

#include "graph/onnx/onnx_model.h"

namespace pruner {
namespace {

/// Between which numbers the last output of a network lies.
Bounds bounds_of(const OnnxModel& model) {
  const Result<Graph> graph = import_onnx_bytes(model.bytes(), {}, ExternalData());
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  ValueBounds bounds(*graph, [](ValueId) { return false; });
  return bounds.of(graph->outputs.back());
}

OnnxModel with_input() {
  OnnxModel model(17);
  model.input("x", {6}).output("y");
  for (const auto& [name, value] : {std::pair("two", 2.F), {"five", 5.F}, {"less", -3.F}})
    model.initializer(name, onnx::TensorProto::FLOAT, {}).add_float_data(value);
  return model;
}

void expect(const Bounds& bounds, double least, double greatest) {
  EXPECT_EQ(bounds.least, least);
  EXPECT_EQ(bounds.greatest, greatest);
}

constexpr double kInfinite = std::numeric_limits<double>::infinity();

TEST(ValueBounds, AreUnknownOfAnInput) {
  OnnxModel model = with_input();
  model.node("Mul", {"x", "two"}, {"y"});
  expect(bounds_of(model), -kInfinite, kInfinite);
}

TEST(ValueBounds, AreThoseOfAClip) {
  OnnxModel model = with_input();
  model.node("Clip", {"x", "less", "five"}, {"y"});
  expect(bounds_of(model), -3, 5);
}

// max(x, 2) is unknown above, and min(max(x, 2), 5) is known again.
TEST(ValueBounds, MayBeKnownOnOneSide) {
  OnnxModel model = with_input();
  model.output("z");
  model.node("Max", {"x", "two"}, {"y"});
  model.node("Min", {"y", "five"}, {"z"});
  expect(bounds_of(model), 2, 5);
  model.graph().mutable_output()->RemoveLast();
  expect(bounds_of(model), 2, kInfinite);
}

// With x in [-3, 5], products follow from the corners, and quotients of integers are cut off.
TEST(ValueBounds, FollowArithmetic) {
  const auto of = [](const std::string& op, const std::string& other) {
    OnnxModel model = with_input();
    model.node("Clip", {"x", "less", "five"}, {"clipped"});
    model.node(op, {"clipped", other}, {"y"});
    return bounds_of(model);
  };
  expect(of("Add", "two"), -1, 7);
  expect(of("Sub", "two"), -5, 3);
  expect(of("Mul", "less"), -15, 9);
  expect(of("Div", "two"), -1.5, 2.5);
  OnnxModel model = with_input();
  model.integer("divisor", 2);
  model.node("Clip", {"x", "less", "five"}, {"clipped"});
  set_int(model.node("Cast", {"clipped"}, {"whole"}), "to", onnx::TensorProto::INT64);
  model.node("Div", {"whole", "divisor"}, {"y"});
  expect(bounds_of(model), -1, 2);
}

// A moved value has the bounds of its source, also beside other elements.
TEST(ValueBounds, GoThroughWhatMoves) {
  OnnxModel model = with_input();
  model.integers("axis", {0}).integers("four", {4}).integers("begin", {1});
  model.node("Clip", {"x", "less", "five"}, {"clipped"});
  model.node("Slice", {"clipped", "begin", "four"}, {"part"});
  model.node("Unsqueeze", {"part", "axis"}, {"row"});
  model.node("Sigmoid", {"x"}, {"rate"});
  model.node("Unsqueeze", {"rate", "axis"}, {"rates"});
  set_int(model.node("Concat", {"row", "rates"}, {"y"}), "axis", 1);
  expect(bounds_of(model), -3, 5);
}

// How many of six are true, and the place of the greatest.
TEST(ValueBounds, FollowFromExtents) {
  OnnxModel model = with_input();
  model.integers("axis", {0}).output("place");
  model.node("Greater", {"x", "two"}, {"large"});
  set_int(model.node("Cast", {"large"}, {"whole"}), "to", onnx::TensorProto::INT64);
  model.node("ReduceSum", {"whole", "axis"}, {"y"});
  set_int(model.node("ArgMax", {"x"}, {"place"}), "axis", 0);
  expect(bounds_of(model), 0, 5);
  model.graph().mutable_output()->RemoveLast();
  expect(bounds_of(model), 0, 6);
}

}  // namespace
}  // namespace pruner
