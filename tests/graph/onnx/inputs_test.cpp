#include "graph/onnx/onnx_model.h"
#include "graph/small_graph.h"

namespace pruner {
namespace {

// x reshaped to `shape`, an input.
OnnxModel reshaping(int type = onnx::TensorProto::INT64, const Ints& extents = {2}) {
  OnnxModel model;
  model.input("x", {2, 3}).input("shape", extents, type).output("y");
  model.node("Identity", {"shape"}, {"s"});
  model.node("Reshape", {"x", "s"}, {"y"});
  return model;
}

Result<Graph> with_constant(const OnnxModel& model, Tensor tensor, bool typed) {
  NetworkOptions options;
  options.constants["shape"] = {std::move(tensor), typed};
  return import_model(model, options);
}

TEST(Inputs, ThatSayAShapeNeedAValue) {
  EXPECT_ERROR(import_model(reshaping()),
               "node \"Reshape_2\": shape is computed at run time from the input \"shape\"; it has "
               "to be a constant: --constant shape=VALUE gives the input one");
  const Result<Graph> graph = with_constant(reshaping(), integers({2}, {3, 2}), false);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(graph->inputs.size(), 1u);
  EXPECT_EQ((*graph)[graph->outputs[0]].shape, (Ints{3, 2}));
  EXPECT_TRUE(with_constant(reshaping(), integers({2}, {3, 2}), true).ok());
}

TEST(Inputs, TakeValuesOfTheirTypeAndShape) {
  EXPECT_ERROR(with_constant(reshaping(), integers({2}, {3, 2}, DType::kInt32), true),
               "--constant shape is int32, expected int64");
  EXPECT_ERROR(with_constant(reshaping(), integers({3}, {3, 2, 1}), true),
               "--constant shape has the shape 3, expected 2");
  EXPECT_ERROR(with_constant(reshaping(), integers({3}, {3, 2, 1}), false),
               "--constant shape has the shape 3, expected 2");
  EXPECT_ERROR(with_constant(reshaping(), floats({2}, {3, 2.5}), false),
               "--constant shape is not of whole numbers, expected int64");
  EXPECT_ERROR(with_constant(reshaping(onnx::TensorProto::INT8), integers({2}, {3, 200}), false),
               "--constant shape holds 200, which int8 does not");
  // An open dimension takes what is left.
  const OnnxModel open = reshaping(onnx::TensorProto::INT64, {-1});
  EXPECT_TRUE(with_constant(open, integers({3}, {3, 2, 1}), false).ok());
  EXPECT_TRUE(with_constant(open, integers({3}, {3, 2, 1}), true).ok());
  NetworkOptions options;
  options.constants["shap"] = {integers({2}, {3, 2}), false};
  EXPECT_ERROR(import_model(reshaping(), options),
               "--constant names \"shap\"; the inputs are \"x\", \"shape\"");
}

// A cache of nothing, and axes of which there are none.
TEST(Inputs, MayHoldNothing) {
  OnnxModel model;
  model.input("past", {2, 0}).input("x", {2, 3}).input("axes", {0}, onnx::TensorProto::INT64);
  model.output("sum").node("ReduceSum", {"joined", "axes"}, {"sum"});
  set_int(model.node("Concat", {"past", "x"}, {"joined"}), "axis", 1);
  const std::vector<Tensor> inputs = {
      Tensor(DType::kFloat32, {2, 0}), floats({2, 3}, {1, 2, 3, 4, 5, 6}), integers({0}, {})};
  EXPECT_EQ(values_of(run_graph(imported(model), inputs)[0]), (std::vector<double>{21}));
  NetworkOptions options;
  options.input_shapes["past"] = {2, 1};
  const std::vector<Tensor> longer = {floats({2, 1}, {10, 20}), inputs[1], inputs[2]};
  const Graph graph = *import_model(model, options);
  EXPECT_EQ(values_of(run_graph(graph, longer)[0]), (std::vector<double>{51}));
}

TEST(Inputs, OfANetworkThatMakesNothingHoldSomething) {
  OnnxModel model;
  model.input("x", {0, 4}).output("y").node("Relu", {"x"}, {"y"});
  EXPECT_ERROR(import_model(model),
               "input \"x\" has the shape 0x4, which holds no elements; say what it is with "
               "--input-shapes x:1x4");
  NetworkOptions options;
  options.input_shapes["x"] = {0, 3};
  EXPECT_ERROR(import_model(model, options), "input \"x\" has the shape 0x3");
  options.input_shapes["x"] = {-1, 3};
  EXPECT_ERROR(import_model(model, options), "input \"x\" has the extent -1, expected 0 or more");
}

TEST(Inputs, MayGiveOneNameTwoSizesWhichIsSaid) {
  OnnxModel model;
  model.input("a", {-1, 3}).input("b", {-1, 3}).output("y");
  set_int(model.node("Concat", {"a", "b"}, {"y"}), "axis", 0);
  NetworkOptions options;
  const auto warnings = [&](int64_t of_a, int64_t of_b) {
    options.input_shapes = {{"a", {of_a, 3}}, {"b", {of_b, 3}}};
    testing::internal::CaptureStdout();
    EXPECT_TRUE(import_model(model, options).ok());
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(warnings(2, 2), "");
  EXPECT_NE(warnings(2, 4).find("--input-shapes: batch is 2 in \"a\" and 4 in \"b\""),
            std::string::npos);
}

TEST(Inputs, OfMoreElementsThanWeWorkOnAreRefused) {
  const int64_t most = int64_t{1} << 31;
  EXPECT_ERROR(import_model(OnnxModel().input("x", {most, most, most}).output("x")),
               "input \"x\" would have the shape 2147483648x2147483648x2147483648");
}

// A shape that follows from constants is known even where much lies between them.
TEST(Constants, AreKnownBehindLargeOnes) {
  OnnxModel model;
  model.input("x", {2, 3}).output("y").integers("n", {10000});
  auto& value = *model.node("ConstantOfShape", {"n"}, {"ones"}).add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(onnx::TensorProto::INT64);
  value.mutable_t()->add_dims(1);
  value.mutable_t()->add_int64_data(1);
  model.node("Neg", {"ones"}, {"less"});
  model.node("ReduceMax", {"less"}, {"open"});
  model.node("Reshape", {"x", "open"}, {"y"});
  const Result<Graph> graph = import_model(model);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ((*graph)[graph->outputs[0]].shape, (Ints{6}));
}

}  // namespace
}  // namespace pruner
