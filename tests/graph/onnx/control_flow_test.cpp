#include "graph/onnx/onnx_model.h"
#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

V first_output(const OnnxModel& model, const std::vector<Tensor>& inputs) {
  return values_of(run_graph(imported(model), inputs)[0]);
}

// A graph of one node without inputs: what it reads lies around it.
OnnxModel branch(const std::string& op, const std::vector<std::string>& inputs) {
  OnnxModel graph;
  graph.output("made").node(op, inputs, {"made"});
  return graph;
}

// x of shape [2, n]; whether n is 3 chooses.
OnnxModel choice(int64_t n) {
  OnnxModel model;
  model.input("x", {2, n}).output("y").integer("one", 1).integer("three", 3);
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "one"}, {"n"});
  model.node("Equal", {"n", "three"}, {"c"});
  auto& node = model.node("If", {"c"}, {"y"});
  set_graph(node, "then_branch", branch("Neg", {"x"}));
  set_graph(node, "else_branch", branch("Relu", {"x"}));
  return model;
}

TEST(If, IsTheBranchThatShapesChoose) {
  EXPECT_EQ(operators(run_graph_passes(imported(choice(3)))), "Neg");
  EXPECT_EQ(operators(run_graph_passes(imported(choice(4)))), "Relu");
  EXPECT_EQ(first_output(choice(1), {floats({2, 1}, {-1, 2})}), (V{0, 2}));
}

// y = flag is false ? -x : `other` of x.
OnnxModel chosen_by_data(const std::string& other) {
  OnnxModel model;
  model.input("flag", {}, onnx::TensorProto::BOOL).input("x", {2}).output("y");
  model.node("Not", {"flag"}, {"c"});
  auto& node = model.node("If", {"c"}, {"y"});
  set_graph(node, "then_branch", branch("Neg", {"x"}));
  set_graph(node, "else_branch", branch(other, {"x"}));
  return model;
}

TEST(If, OnDataComputesBothBranches) {
  for (const bool flag : {false, true}) {
    Tensor given(DType::kBool, {});
    given.set_int(0, flag ? 1 : 0);
    EXPECT_EQ(first_output(chosen_by_data("Relu"), {given, floats({2}, {-1, 2})}),
              flag ? (V{0, 2}) : (V{1, -2}));
  }
  NetworkOptions options;
  options.constants["flag"] = {integers({1}, {0}), false};
  EXPECT_EQ(operators(run_graph_passes(imported(chosen_by_data("Relu"), options))), "Neg");
}

TEST(If, OnDataNeedsBranchesThatMakeTheSame) {
  EXPECT_ERROR(
      import_model(chosen_by_data("Shape")),
      "node \"If_2\": the condition is computed at run time from the input \"flag\"; it has "
      "to be a constant: --constant flag=VALUE gives the input one; output 0 is float32 2 in one "
      "branch and int64 1 in the other");
}

// Only the branch that is taken has to be supported.
TEST(If, NamesWhatItsBranchLacks) {
  OnnxModel model = choice(3);
  model.graph().mutable_node(3)->mutable_attribute(1)->mutable_g()->mutable_node(0)->set_op_type(
      "StringSplit");
  EXPECT_EQ(operators(run_graph_passes(imported(model))), "Neg");
  model.graph().mutable_node(3)->mutable_attribute(0)->mutable_g()->mutable_node(0)->set_op_type(
      "StringSplit");
  EXPECT_ERROR(import_model(model), "1 operator is not supported: StringSplit");
}

// Sums x `trips` times, stacks the sums, and reads x from around it.
OnnxModel summing_body() {
  OnnxModel body;
  body.input("i", {}, onnx::TensorProto::INT64).input("go", {}, onnx::TensorProto::BOOL);
  body.input("sum", {2}).output("go_on").output("next").output("row");
  body.node("Identity", {"go"}, {"go_on"});
  body.node("Add", {"sum", "x"}, {"next"});
  body.node("Mul", {"next", "next"}, {"row"});
  return body;
}

TEST(Loop, IsItsRoundsOneAfterTheOther) {
  OnnxModel model;
  model.input("x", {2}).output("end").output("rows").integer("trips", 3);
  model.initializer("go", onnx::TensorProto::BOOL, {}).add_int32_data(1);
  set_graph(model.node("Loop", {"trips", "go", "x"}, {"end", "rows"}), "body", summing_body());
  const Graph graph = imported(model);
  const std::vector<Tensor> y = run_graph(graph, {floats({2}, {1, 2})});
  EXPECT_EQ(values_of(y[0]), (V{4, 8}));
  EXPECT_EQ(y[1].shape(), (Ints{3, 2}));
  EXPECT_EQ(values_of(y[1]), (V{4, 16, 9, 36, 16, 64}));
  EXPECT_EQ(graph[graph.outputs[0]].name, "end");
}

TEST(Loop, EndsWhenItsConditionIsFalse) {
  OnnxModel body = summing_body();
  body.integer("one", 1);
  body.graph().mutable_node(0)->set_op_type("Less");
  body.graph().mutable_node(0)->set_input(0, "i");
  body.graph().mutable_node(0)->add_input("one");
  OnnxModel model;
  model.input("x", {2}).output("end");
  model.initializer("go", onnx::TensorProto::BOOL, {}).add_int32_data(1);
  set_graph(model.node("Loop", {"", "go", "x"}, {"end", "rows"}), "body", body);
  EXPECT_EQ(first_output(model, {floats({2}, {1, 2})}), (V{3, 6}));
}

TEST(Loop, WithoutRoundsHandsOnWhatItGot) {
  OnnxModel model;
  model.input("x", {2}).output("end").output("rows").integer("trips", 0);
  OnnxModel body = summing_body();
  set_graph(model.node("Loop", {"trips", "", "x"}, {"end", "rows"}), "body", body);
  EXPECT_ERROR(import_model(model), "its body does not declare the shape of \"row\"");
  auto& type = *body.graph().mutable_output(2)->mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_value(2);
  *model.graph().mutable_node(0)->mutable_attribute(0)->mutable_g() = body.graph();
  const Graph graph = imported(model);
  const std::vector<Tensor> y = run_graph(graph, {floats({2}, {1, 2})});
  EXPECT_EQ(values_of(y[0]), (V{1, 2}));
  EXPECT_EQ(y[1].shape(), (Ints{0, 2}));
}

TEST(Loop, HasRoundsThatAreKnownAndNotTooMany) {
  OnnxModel model;
  model.input("n", {}, onnx::TensorProto::INT64).input("x", {2}).output("end");
  set_graph(model.node("Loop", {"n", "", "x"}, {"end", "rows"}), "body", summing_body());
  EXPECT_ERROR(import_model(model),
               "node \"Loop_1\": the trip count is computed at run time from the input \"n\"");
  model.graph().mutable_node(0)->set_input(0, "");
  EXPECT_ERROR(import_model(model), "loops and functions unfold to more than 1000000 nodes");
}

// A loop in a loop: the inner body reads what the outer one has made.
TEST(Loop, NestsAndNamesItsNodesByTheirRounds) {
  OnnxModel inner;
  inner.input("j", {}, onnx::TensorProto::INT64).input("on", {}, onnx::TensorProto::BOOL);
  inner.input("s", {2}).output("on").output("t");
  inner.node("Add", {"s", "next"}, {"t"});
  OnnxModel outer = summing_body();
  outer.integer("two", 2);
  outer.graph().mutable_output(2)->set_name("all");
  set_graph(outer.node("Loop", {"two", "", "next"}, {"all"}), "body", inner);
  OnnxModel model;
  model.input("x", {2}).output("rows").integer("trips", 2);
  set_graph(model.node("Loop", {"trips", "", "x"}, {"end", "rows"}), "body", outer);
  EXPECT_EQ(first_output(model, {floats({2}, {1, 2})}), (V{6, 12, 9, 18}));
  inner.graph().mutable_node(0)->set_input(1, "nowhere");
  *outer.graph().mutable_node(3)->mutable_attribute(0)->mutable_g() = inner.graph();
  *model.graph().mutable_node(0)->mutable_attribute(0)->mutable_g() = outer.graph();
  EXPECT_ERROR(import_model(model),
               "node \"Loop_1/0/Loop_4/0/Add_1\": input \"nowhere\" is made by no node");
}

// The state is a running sum; the columns of x are scanned from the last to the first.
OnnxModel scan(int64_t opset) {
  OnnxModel body;
  body.input("sum", {2}).input("column", {2}).output("next").output("made");
  body.node("Add", {"sum", "column"}, {"next"});
  body.node("Identity", {"next"}, {"made"});
  OnnxModel model(opset);
  model.input("start", {2}).input("x", {2, 3}).output("end").output("rows");
  auto& node = model.node("Scan", {"start", "x"}, {"end", "rows"});
  set_graph(node, "body", body);
  set_int(node, "num_scan_inputs", 1);
  set_ints(node, "scan_input_axes", {-1});
  set_ints(node, "scan_input_directions", {1});
  set_ints(node, "scan_output_axes", {1});
  set_ints(node, "scan_output_directions", {1});
  return model;
}

TEST(Scan, GoesThroughItsInputsElementByElement) {
  const std::vector<Tensor> y =
      run_graph(imported(scan(13)), {floats({2}, {0, 100}), floats({2, 3}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(values_of(y[0]), (V{6, 115}));
  EXPECT_EQ(y[1].shape(), (Ints{2, 3}));
  EXPECT_EQ(values_of(y[1]), (V{6, 5, 3, 115, 111, 106}));
}

// Each element of the batch by itself; the axes are the first ones behind it.
TEST(Scan, OfOpset8HasABatch) {
  OnnxModel body;
  body.input("sum", {2}).input("row", {2}).output("next").output("made");
  body.node("Add", {"sum", "row"}, {"next"});
  body.node("Identity", {"next"}, {"made"});
  OnnxModel model(8);
  model.input("start", {2, 2}).input("x", {2, 3, 2}).output("end").output("rows");
  auto& node = model.node("Scan", {"", "start", "x"}, {"end", "rows"});
  set_graph(node, "body", body);
  set_int(node, "num_scan_inputs", 1);
  const Tensor x = floats({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const std::vector<Tensor> y = run_graph(imported(model), {floats({2, 2}, {0, 0, 100, 0}), x});
  EXPECT_EQ(values_of(y[0]), (V{9, 12, 127, 30}));
  EXPECT_EQ(y[1].shape(), (Ints{2, 3, 2}));
  EXPECT_EQ(values_of(y[1]), (V{1, 2, 4, 6, 9, 12, 107, 8, 116, 18, 127, 30}));
  set_ints(node, "directions", {1});
  const std::vector<Tensor> back = run_graph(imported(model), {floats({2, 2}, {0, 0, 100, 0}), x});
  EXPECT_EQ(values_of(back[1]), (V{5, 6, 8, 10, 9, 12, 111, 12, 120, 22, 127, 30}));
  model.integers("lengths", {3, 2});
  node.set_input(0, "lengths");
  EXPECT_ERROR(import_model(model), "node \"Scan_1\": sequence_lens is not supported");
}

TEST(SequenceMap, RunsItsBodyForEachTensor) {
  OnnxModel body;
  body.input("a", {2}).input("b", {2}).output("c").node("Add", {"a", "b"}, {"c"});
  OnnxModel model;
  model.input("x", {2}).input("z", {2}).output("y");
  model.node("SequenceConstruct", {"x", "z", "x"}, {"s"});
  set_graph(model.node("SequenceMap", {"s", "z"}, {"t"}), "body", body);
  set_int(model.node("ConcatFromSequence", {"t"}, {"y"}), "axis", 0);
  EXPECT_EQ(first_output(model, {floats({2}, {1, 2}), floats({2}, {10, 20})}),
            (V{11, 22, 20, 40, 11, 22}));
}

// A byte that is changed makes an error or another model, never a crash.
TEST(ControlFlow, OfDamagedFilesIsAnError) {
  OnnxModel model;
  model.input("x", {2, 3}).input("z", {2}).output("y").output("rows").output("end");
  model.integer("one", 1).integer("three", 3).integer("trips", 2);
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "one"}, {"n"});
  model.node("Equal", {"n", "three"}, {"c"});
  auto& chosen = model.node("If", {"c"}, {"w"});
  set_graph(chosen, "then_branch", branch("Neg", {"x"}));
  set_graph(chosen, "else_branch", branch("Relu", {"x"}));
  auto& function = *model.model.add_functions();
  function.set_name("Twice");
  function.set_domain("own");
  function.add_input("a");
  function.add_output("b");
  auto& inner = *function.add_node();
  inner.set_op_type("Add");
  inner.add_input("a");
  inner.add_input("a");
  inner.add_output("b");
  model.node("Twice", {"w"}, {"v"}).set_domain("own");
  model.node("SplitToSequence", {"v"}, {"parts"});
  model.node("SequenceAt", {"parts", "one"}, {"last"});
  model.node("SequenceInsert", {"parts", "last", "one"}, {"more"});
  set_int(model.node("ConcatFromSequence", {"more"}, {"y"}), "axis", 0);
  OnnxModel sum;
  sum.input("s", {2}).input("column", {2}).output("t").output("made");
  sum.node("Add", {"s", "column"}, {"t"});
  sum.node("Neg", {"t"}, {"made"});
  auto& scanned = model.node("Scan", {"z", "x"}, {"end", "columns"});
  set_graph(scanned, "body", sum);
  set_int(scanned, "num_scan_inputs", 1);
  set_ints(scanned, "scan_input_axes", {1});
  OnnxModel again;
  again.input("i", {}, onnx::TensorProto::INT64).input("on", {}, onnx::TensorProto::BOOL);
  again.input("u", {2}).output("on").output("next").output("next");
  again.node("Add", {"u", "z"}, {"next"});
  set_graph(model.node("Loop", {"trips", "", "end"}, {"", "rows"}), "body", again);
  const std::string bytes = model.bytes();
  const Result<Graph> whole = import_onnx_bytes(bytes, {});
  ASSERT_TRUE(whole.ok()) << whole.error().message();
  Rng rng(5);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = bytes;
    const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(bytes.size())));
    damaged[at] = static_cast<char>(rng.below(256));
    const Result<Graph> graph = import_onnx_bytes(damaged, {});
    EXPECT_TRUE(!graph.ok() || partition(*graph, Target{}).ok());
  }
}

}  // namespace
}  // namespace pruner
