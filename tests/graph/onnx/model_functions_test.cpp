#include "graph/onnx/model_functions.h"

#include "graph/onnx/onnx_model.h"
#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

onnx::FunctionProto& add_function(OnnxModel& model,
                                  const std::string& name,
                                  const std::vector<std::string>& inputs,
                                  const std::vector<std::string>& outputs) {
  onnx::FunctionProto& function = *model.model.add_functions();
  function.set_domain("own");
  function.set_name(name);
  for (const std::string& input : inputs) function.add_input(input);
  for (const std::string& output : outputs) function.add_output(output);
  auto& import = *function.add_opset_import();
  import.set_domain("");
  import.set_version(13);
  return function;
}

onnx::NodeProto& add_node(onnx::FunctionProto& function,
                          const std::string& op,
                          const std::vector<std::string>& inputs,
                          const std::string& output) {
  onnx::NodeProto& node = *function.add_node();
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(output);
  return node;
}

void refer(onnx::NodeProto& node, const std::string& name, const std::string& to) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::FLOAT);
  attribute.set_ref_attr_name(to);
}

onnx::NodeProto& call(OnnxModel& model,
                      const std::string& name,
                      const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs) {
  onnx::NodeProto& node = model.node(name, inputs, outputs);
  node.set_domain("own");
  return node;
}

Tensor run(const OnnxModel& model, const std::vector<Tensor>& inputs) {
  const Result<Graph> graph = import_model(model);
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  return graph.ok() ? run_graph(*graph, inputs)[0] : Tensor();
}

// leaky(x + y) where the slope is an attribute, called by a function that leaves y out or not.
OnnxModel leaky_model() {
  OnnxModel model;
  auto& leaky = add_function(model, "Leaky", {"x"}, {"y"});
  leaky.add_attribute("slope");
  refer(add_node(leaky, "LeakyRelu", {"x"}, "y"), "alpha", "slope");
  auto& sum = add_function(model, "LeakySum", {"x", "bias"}, {"y"});
  sum.add_attribute("slope");
  add_node(sum, "Sum", {"x", "x"}, "twice");
  auto& inner = add_node(sum, "Leaky", {"twice"}, "y");
  inner.set_domain("own");
  refer(inner, "slope", "slope");
  model.input("x", {2}).output("y");
  return model;
}

TEST(ModelFunctions, AreTheNodesThatTheyHold) {
  OnnxModel model = leaky_model();
  auto& node = call(model, "LeakySum", {"x"}, {"y"});
  const Tensor x = floats({2}, {-1, 2});
  EXPECT_EQ(values_of(run(model, {x})), (V{-0.02f, 4}));  // ONNX's own default
  set_float(node, "slope", 0.5);
  EXPECT_EQ(values_of(run(model, {x})), (V{-1, 4}));
  set_float(node, "tilt", 0.5);
  EXPECT_ERROR(import_model(model),
               "node \"LeakySum_1\": function LeakySum has no attribute \"tilt\"");
}

// Protobuf's classes here are older than the field: it is written by hand as one that they skip.
TEST(ModelFunctions, HaveDefaultsForAttributes) {
  OnnxModel model = leaky_model();
  call(model, "Leaky", {"x"}, {"y"});
  onnx::AttributeProto slope;
  slope.set_name("slope");
  slope.set_type(onnx::AttributeProto::FLOAT);
  slope.set_f(0.25);
  onnx::FunctionProto& leaky = *model.model.mutable_functions(0);
  leaky.clear_attribute();
  const std::string bytes = slope.SerializeAsString();
  std::string text = leaky.SerializeAsString();
  text += static_cast<char>(11 << 3 | 2);
  text += static_cast<char>(bytes.size());
  ASSERT_TRUE(leaky.ParseFromString(text + bytes));
  EXPECT_EQ(values_of(run(model, {floats({2}, {-1, 2})})), (V{-0.25, 2}));
}

TEST(ModelFunctions, HaveOverloadsAndVersionsOfTheirOwn) {
  OnnxModel model;
  auto& negate = add_function(model, "Act", {"x"}, {"y"});
  add_node(negate, "Neg", {"x"}, "y");
  auto& squeeze = add_function(model, "Act", {"x"}, {"y"});
  squeeze.mutable_opset_import(0)->set_version(11);
  set_ints(add_node(squeeze, "Squeeze", {"x"}, "y"), "axes", {0});
  const auto overload = [](google::protobuf::Message& message, int field) {
    std::string text = message.SerializeAsString();
    text += static_cast<char>(field << 3 | 2);
    ASSERT_TRUE(message.ParseFromString(text + std::string("\x03two", 4)));
  };
  EXPECT_ERROR(import_model(model), "function own::Act is there twice");
  overload(squeeze, 13);
  model.input("x", {1, 2}).output("y");
  call(model, "Act", {"x"}, {"a"});
  overload(call(model, "Act", {"a"}, {"y"}), 8);
  const Tensor y = run(model, {floats({1, 2}, {-1, 2})});
  EXPECT_EQ(y.shape(), (Ints{2}));
  EXPECT_EQ(values_of(y), (V{1, -2}));
}

// An input that a call leaves out is one that the nodes inside do not have.
TEST(ModelFunctions, HandOnThatAnInputIsLeftOut) {
  OnnxModel model;
  auto& clip = add_function(model, "Cut", {"x", "low", "high"}, {"y"});
  add_node(clip, "Clip", {"x", "low", "high"}, "y");
  model.input("x", {3}).output("y");
  model.initializer("two", onnx::TensorProto::FLOAT, {}).add_float_data(2);
  auto& node = call(model, "Cut", {"x", "", "two"}, {"y"});
  EXPECT_EQ(values_of(run(model, {floats({3}, {-9, 1, 3})})), (V{-9, 1, 2}));
  node.set_input(2, "");
  EXPECT_EQ(values_of(run(model, {floats({3}, {-9, 1, 3})})), (V{-9, 1, 3}));
  node.add_input("x");
  EXPECT_ERROR(import_model(model), "node \"Cut_1\": function Cut takes 3 inputs, found 4");
}

// A graph inside of a function finds the function's names and attributes.
TEST(ModelFunctions, HoldGraphs) {
  OnnxModel body;
  body.input("i", {}, onnx::TensorProto::INT64).input("on", {}, onnx::TensorProto::BOOL);
  body.input("s", {2}).output("on").output("t");
  refer(body.node("LeakyRelu", {"x"}, {"r"}), "alpha", "slope");
  body.node("Add", {"s", "r"}, {"t"});
  OnnxModel model;
  auto& repeat = add_function(model, "Repeat", {"x", "n"}, {"y"});
  repeat.add_attribute("slope");
  set_graph(add_node(repeat, "Loop", {"n", "", "x"}, "y"), "body", body);
  model.input("x", {2}).output("y").integer("three", 3);
  set_float(call(model, "Repeat", {"x", "three"}, {"y"}), "slope", 0.5);
  EXPECT_EQ(values_of(run(model, {floats({2}, {-2, 1})})), (V{-5, 4}));
}

TEST(ModelFunctions, MayNotCallThemselves) {
  OnnxModel model;
  auto& f = add_function(model, "F", {"x"}, {"y"});
  add_node(f, "G", {"x"}, "y").set_domain("own");
  auto& g = add_function(model, "G", {"x"}, {"y"});
  add_node(g, "F", {"x"}, "y").set_domain("own");
  model.input("x", {2}).output("y");
  call(model, "F", {"x"}, {"y"});
  EXPECT_ERROR(import_model(model),
               "function own::F calls itself: own::F calls own::G calls own::F");
}

TEST(ModelFunctions, AreSearchedForUnsupportedOperators) {
  OnnxModel model;
  auto& f = add_function(model, "F", {"x"}, {"y"});
  add_node(f, "StringSplit", {"x"}, "y").set_name("split");
  model.input("x", {2}).output("y");
  call(model, "F", {"x"}, {"a"});
  call(model, "H", {"a"}, {"y"});
  EXPECT_ERROR(
      import_model(model),
      "2 operators are not supported: StringSplit (node \"split\"); own::H (node \"H_2\")");
}

}  // namespace
}  // namespace pruner
