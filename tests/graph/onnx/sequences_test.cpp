#include "graph/onnx/onnx_model.h"
#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

std::vector<Tensor> outputs(const OnnxModel& model, const std::vector<Tensor>& inputs) {
  const Result<Graph> graph = import_model(model);
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  return graph.ok() ? run_graph(*graph, inputs) : std::vector<Tensor>(9);
}

TEST(Sequences, AreGoneWhenTheModelIsRead) {
  OnnxModel model;
  model.input("x", {1}).input("z", {1}).output("y").output("n").output("last");
  model.integer("first", 0).integer("end", -1).integer("back", -2);
  model.node("SequenceEmpty", {}, {"e"});
  model.node("SequenceInsert", {"e", "x"}, {"a"});
  model.node("SequenceInsert", {"a", "z", "first"}, {"b"});  // z x
  model.node("SequenceInsert", {"b", "x", "end"}, {"c"});    // z x x
  model.node("SequenceInsert", {"c", "z"}, {"d"});           // z x x z
  model.node("SequenceErase", {"d", "back"}, {"f"});         // z x z
  model.node("Identity", {"f"}, {"g"});
  set_int(model.node("ConcatFromSequence", {"g"}, {"y"}), "axis", 0);
  model.node("SequenceErase", {"g"}, {"h"});  // z x
  model.node("SequenceLength", {"h"}, {"n"});
  model.node("SequenceAt", {"h", "end"}, {"last"});
  const std::vector<Tensor> y = outputs(model, {floats({1}, {1}), floats({1}, {2})});
  EXPECT_EQ(values_of(y[0]), (V{2, 1, 2}));
  EXPECT_EQ(y[1].get_int(0), 2);
  EXPECT_EQ(values_of(y[2]), (V{1}));
}

TEST(Sequences, AreSplitAndJoinedAlongAxes) {
  OnnxModel model;
  model.input("x", {2, 5}).output("a").output("b").output("c");
  model.integer("two", 2).integers("sizes", {1, 4}).integer("one", 1);
  set_int(model.node("SplitToSequence", {"x", "two"}, {"s"}), "axis", 1);
  model.node("SequenceAt", {"s", "two"}, {"a"});  // the last has what is left
  set_int(model.node("SplitToSequence", {"x", "sizes"}, {"t"}), "axis", 1);
  model.node("SequenceAt", {"t", "one"}, {"b"});
  auto& rows = model.node("SplitToSequence", {"x"}, {"u"});
  set_int(rows, "keepdims", 0);
  auto& stack = model.node("ConcatFromSequence", {"u"}, {"c"});
  set_int(stack, "axis", -1);
  set_int(stack, "new_axis", 1);
  const Tensor x = floats({2, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  const std::vector<Tensor> y = outputs(model, {x});
  EXPECT_EQ(values_of(y[0]), (V{4, 9}));
  EXPECT_EQ(y[0].shape(), (Ints{2, 1}));
  EXPECT_EQ(values_of(y[1]), (V{1, 2, 3, 4, 6, 7, 8, 9}));
  EXPECT_EQ(y[2].shape(), (Ints{5, 2}));
  EXPECT_EQ(values_of(y[2]), (V{0, 5, 1, 6, 2, 7, 3, 8, 4, 9}));
}

TEST(Sequences, SayWhatDoesNotFit) {
  const auto refused = [](const char* op, const std::vector<std::string>& inputs) {
    OnnxModel model;
    model.input("x", {2}).input("at", {}, onnx::TensorProto::INT64).output("y").integer("five", 5);
    model.node("SequenceConstruct", {"x", "x"}, {"s"});
    model.node(op, inputs, {"y"});
    const Result<Graph> graph = import_model(model);
    return graph.ok() ? "" : graph.error().message();
  };
  EXPECT_EQ(refused("SequenceAt", {"s", "five"}),
            "node \"SequenceAt_2\": position 5 is not one of 2");
  EXPECT_EQ(refused("SequenceAt", {"s", "at"}),
            "node \"SequenceAt_2\": the position is computed at run time from the input \"at\"; it "
            "has to be a constant: --constant at=VALUE gives the input one");
  EXPECT_EQ(refused("SequenceAt", {"x", "five"}),
            "node \"SequenceAt_2\": input 0 is a tensor, expected a sequence");
  EXPECT_EQ(refused("Relu", {"s"}), "node \"Relu_2\": Relu of a sequence is not supported");
  EXPECT_EQ(refused("Identity", {"s"}), "output \"y\" is a sequence; only tensors can be outputs");
}

TEST(Optionals, AreWhatTheyHold) {
  OnnxModel body;
  body.output("made").node("OptionalGetElement", {"o"}, {"made"});
  OnnxModel other;
  other.output("made").node("Neg", {"x"}, {"made"});
  OnnxModel model(18);
  model.input("x", {2}).output("y");
  model.node("Optional", {"x"}, {"o"});
  model.node("OptionalHasElement", {"o"}, {"c"});
  auto& node = model.node("If", {"c"}, {"y"});
  set_graph(node, "then_branch", body);
  set_graph(node, "else_branch", other);
  EXPECT_EQ(values_of(outputs(model, {floats({2}, {1, 2})})[0]), (V{1, 2}));
  model.graph().mutable_node(0)->clear_input();
  EXPECT_EQ(values_of(outputs(model, {floats({2}, {1, 2})})[0]), (V{-1, -2}));
}

TEST(Sequences, AreNoInputsOfANetwork) {
  OnnxModel model;
  model.input("x", {2}).output("y").node("Relu", {"x"}, {"y"});
  auto& type = *model.graph().mutable_input(0)->mutable_type();
  type.mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(1);
  EXPECT_ERROR(import_model(model), "input \"x\" is a sequence; only tensors can be inputs");
  type.mutable_optional_type();
  EXPECT_ERROR(import_model(model), "input \"x\" is an optional; only tensors can be inputs");
  type.mutable_tensor_type()->set_elem_type(onnx::TensorProto::STRING);
  EXPECT_ERROR(import_model(model), "input \"x\" has the element type STRING");
}

}  // namespace
}  // namespace pruner
