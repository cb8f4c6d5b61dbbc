#include <set>

#include "graph/onnx/onnx_model.h"
#include "graph/onnx/tensor_proto.h"
#include "graph/small_graph.h"

namespace pruner {
namespace {

OnnxModel relu_model() {
  OnnxModel model;
  model.input("x", {1, 4}).output("y").node("Relu", {"x"}, {"y"});
  return model;
}

TEST(ImportOnnx, ReadsNodesInAnyOrder) {
  OnnxModel model;
  model.input("x", {2}).output("y");
  model.node("Neg", {"a"}, {"y"});
  model.node("Relu", {"x"}, {"a"});
  const Result<Graph> graph = import_model(model);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(operators(*graph), "Relu Neg");
  EXPECT_EQ(values_of(run_graph(*graph, {floats({2}, {-1, 2})})[0]), (std::vector<double>{0, -2}));
}

TEST(ImportOnnx, IgnoresOutputsThatNobodyReads) {
  OnnxModel model;
  model.input("x", {1, 1, 4, 4}).output("y");
  set_ints(model.node("MaxPool", {"x"}, {"p", "indices"}), "kernel_shape", {2, 2});
  model.node("Dropout", {"p", "", ""}, {"y", "mask"});
  const Result<Graph> graph = import_model(model);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(run_graph(*graph, {waves({1, 1, 4, 4})})[0].shape(), (Ints{1, 1, 3, 3}));
}

// The number of parts says how long each is, so a part that nobody reads counts, too.
TEST(ImportOnnx, CountsThePartsOfASplitThatNobodyReads) {
  for (const bool with_sizes : {false, true}) {
    OnnxModel model(13);
    model.input("x", {6}).output("y");
    std::vector<std::string> inputs = {"x"};
    if (with_sizes) {
      auto& sizes = model.initializer("sizes", onnx::TensorProto::INT64, {3});
      for (const int64_t size : {2, 2, 2}) sizes.add_int64_data(size);
      inputs.emplace_back("sizes");
    }
    model.node("Split", inputs, {"a", "b", "c"});
    model.node("Relu", {"b"}, {"y"});
    const Result<Graph> graph = import_model(model);
    ASSERT_TRUE(graph.ok()) << graph.error().message();
    const Tensor x = floats({6}, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(values_of(run_graph(*graph, {x})[0]), (std::vector<double>{3, 4}));
  }
}

// A body that does not make those is asked for the others alone.
TEST(ImportOnnx, LeavesOutOutputsWithoutAName) {
  OnnxModel model;
  model.input("x", {1, 2}).input("skip", {1, 2}).input("scale", {2}).output("y").output("sum");
  model.node("SkipLayerNormalization", {"x", "skip", "scale"}, {"y", "", "", "sum"})
      .set_domain("com.microsoft");
  const Result<Graph> graph = import_model(model);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  const Tensor x = floats({1, 2}, {1, 2}), one = floats({2}, {1, 1});
  EXPECT_EQ(values_of(run_graph(*graph, {x, x, one})[1]), (std::vector<double>{2, 4}));
}

TEST(ImportOnnx, WeightsMayAlsoBeListedAsInputs) {
  OnnxModel model(8);
  model.input("x", {2}).input("w", {2}).output("y").node("Add", {"x", "w"}, {"y"});
  auto& w = model.initializer("w", onnx::TensorProto::FLOAT, {2});
  w.add_float_data(1);
  w.add_float_data(2);
  const Result<Graph> graph = import_model(model);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(graph->inputs.size(), 1u);
}

TEST(ImportOnnx, MissingAndForeignFiles) {
  EXPECT_ERROR(import_onnx("/nonexistent/m.onnx", {}), "/nonexistent/m.onnx");
  EXPECT_ERROR(import_onnx(test_path("golden.h"), {}), "golden.h: this is no ONNX model");
  EXPECT_ERROR(import_onnx_bytes("", {}), "the file is empty, expected an ONNX model");
  EXPECT_ERROR(import_onnx_bytes("# a text file\nthat is no model\n", {}), "this is no ONNX model");
  EXPECT_ERROR(import_onnx_bytes(std::string(1000, '\0'), {}), "this is no ONNX model");
}

// A file cut anywhere, or with a byte changed, is an error or another model; never a crash.
TEST(ImportOnnx, DamagedFilesAreErrors) {
  OnnxModel model;
  model.input("x", {1, 2, 6, 6}).output("y");
  auto& w = model.initializer("w", onnx::TensorProto::FLOAT, {2, 2, 3, 3});
  w.set_raw_data(std::string(36 * 4, 'a'));
  auto& conv = model.node("Conv", {"x", "w"}, {"c"});
  set_ints(conv, "pads", {1, 1, 1, 1});
  set_ints(conv, "strides", {2, 2});
  model.node("Shape", {"c"}, {"s"});
  model.node("Reshape", {"c", "s"}, {"r"});
  set_ints(model.node("Transpose", {"r"}, {"t"}), "perm", {3, 2, 1, 0});
  set_int(model.node("Softmax", {"t"}, {"y"}), "axis", 1);
  const std::string bytes = model.bytes();
  ASSERT_TRUE(import_onnx_bytes(bytes, {}).ok());
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(import_onnx_bytes(bytes.substr(0, n), {}).ok() && n + 16 < bytes.size()) << n;
  }
  Rng rng(3);
  for (int i = 0; i < 4000; ++i) {
    std::string damaged = bytes;
    const auto at = static_cast<size_t>(rng.below(static_cast<int64_t>(bytes.size())));
    damaged[at] = static_cast<char>(rng.below(256));
    const Result<Graph> graph = import_onnx_bytes(damaged, {});
    EXPECT_TRUE(!graph.ok() || partition(*graph, Target{}).ok());
  }
}

TEST(ImportOnnx, ListsAllUnsupportedOperatorsAtOnce) {
  OnnxModel model = relu_model();
  model.node("StringSplit", {"x"}, {"a"});
  model.node("ImageDecoder", {"x"}, {"b"});
  model.node("ImageDecoder", {"x"}, {"c"});
  model.node("FusedThing", {"x"}, {"d"}).set_domain("com.microsoft");
  EXPECT_ERROR(
      import_model(model),
      "3 operators are not supported: ImageDecoder (node \"ImageDecoder_3\" and 1 more); "
      "StringSplit (node \"StringSplit_2\"); com.microsoft::FusedThing (node \"FusedThing_5\")");
}

TEST(ImportOnnx, DynamicShapesNeedTheFlag) {
  OnnxModel model;
  model.input("data", {-1, 4}).output("y").node("Relu", {"data"}, {"y"});
  EXPECT_ERROR(
      import_model(model),
      "input \"data\" has the dynamic shape batchx4; say what it is with --input-shapes data:1x4");
  NetworkOptions options;
  options.input_shapes["data"] = {3, 4};
  const Result<Graph> graph = import_model(model, options);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ((*graph)[graph->outputs[0]].shape, (Ints{3, 4}));
  options.input_shapes["data"] = {3};
  EXPECT_ERROR(import_model(model, options),
               "--input-shapes gives \"data\" 1 dimensions, the file 2 (batchx4)");
  options.input_shapes = {{"dta", {3, 4}}};
  EXPECT_ERROR(import_model(model, options),
               "--input-shapes names \"dta\"; the inputs are \"data\"");
}

TEST(ImportOnnx, NamesUndefinedAndCircularValues) {
  OnnxModel undefined = relu_model();
  undefined.node("Neg", {"nowhere"}, {"z"});
  EXPECT_ERROR(import_model(undefined),
               "node \"Neg_2\": input \"nowhere\" is made by no node, input or initializer");
  OnnxModel cycle;
  cycle.input("x", {2}).output("b");
  cycle.node("Add", {"x", "b"}, {"a"});
  cycle.node("Relu", {"a"}, {"b"});
  EXPECT_ERROR(import_model(cycle), "needs its own output: the graph has a cycle");
  OnnxModel twice = relu_model();
  twice.node("Neg", {"x"}, {"y"});
  EXPECT_ERROR(import_model(twice), "value \"y\" is made twice");
  EXPECT_ERROR(import_model(relu_model().output("gone")), "output \"gone\" is made by no node");
}

TEST(ImportOnnx, NamesTheNodeWhoseShapesDoNotFit) {
  OnnxModel model;
  model.input("x", {1, 64, 8, 8}).output("y");
  model.initializer("w", onnx::TensorProto::FLOAT, {6, 21, 1, 1})
      .set_raw_data(std::string(6 * 21 * 4, '\0'));
  set_int(model.node("Conv", {"x", "w"}, {"y"}), "group", 3);
  EXPECT_ERROR(import_model(model), "node \"Conv_1\": group 3 does not divide 64 channels");
}

TEST(ImportOnnx, RefusesTypesThatItDoesNotHold) {
  OnnxModel model;
  model.input("x", {2}, onnx::TensorProto::STRING).output("y").node("Identity", {"x"}, {"y"});
  EXPECT_ERROR(import_model(model),
               "input \"x\" has the element type STRING; supported are FLOAT, FLOAT16, INT64");
}

// Each type is an input's, a constant's and an output's, and is cast both ways.
TEST(ImportOnnx, HoldsEveryElementType) {
  for (const DTypeRow& row : kDTypes) {
    SCOPED_TRACE(row.name);
    if (is_only_moved(row.dtype)) continue;
    const bool truth = row.dtype == DType::kBool;
    const Tensor x = integers({3}, {1, 0, 0}, row.dtype), w = integers({3}, {1, 0, 1}, row.dtype);
    OnnxModel model;
    model.input("x", {3}, row.onnx).output("sum").output("real").output("back");
    model.initializer("w", row.onnx, {3}).set_raw_data(w.data(), static_cast<size_t>(w.bytes()));
    model.node(truth ? "Or" : "Add", {"x", "w"}, {"sum"});
    set_int(model.node("Cast", {"sum"}, {"real"}), "to", onnx::TensorProto::FLOAT);
    set_int(model.node("Cast", {"real"}, {"back"}), "to", row.onnx);
    const Result<Graph> graph = import_model(model);
    ASSERT_TRUE(graph.ok()) << graph.error().message();
    const std::vector<Tensor> y = run_graph(*graph, {x});
    EXPECT_EQ(y[0].dtype(), row.dtype);
    EXPECT_EQ(y[1].dtype(), DType::kFloat32);
    EXPECT_EQ(y[2].dtype(), row.dtype);
    for (const Tensor& each : y)
      EXPECT_EQ(values_of(each), (std::vector<double>{truth ? 1.0 : 2.0, 0, 1}));
  }
}

TEST(ImportOnnx, TakesAHundredThousandNodes) {
  OnnxModel model;
  model.input("x", {4}).output("v100000");
  std::string last = "x";
  for (int i = 1; i <= 100000; ++i) {
    const std::string made = "v" + std::to_string(i);
    // A Neg after each Relu, a sum with the input after that.
    if (i % 3 == 0) {
      model.node("Add", {last, "x"}, {made});
    } else {
      model.node(i % 3 == 1 ? "Relu" : "Neg", {last}, {made});
    }
    last = made;
  }
  Result<Graph> graph = import_model(model);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(graph->nodes.size(), 100000u);
  const Result<Partition> cut = partition(*std::move(graph), Target{});
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(cut->groups.size(), 1563u);  // 64 nodes make so many kernels
  std::set<std::string> keys;
  for (const Group& group : cut->groups) keys.insert(group.key);
  EXPECT_LE(keys.size(), 4u) << "a group for each place in the pattern, and the rest";
}

TEST(ImportOnnx, FindsACycleInAHundredThousandNodes) {
  OnnxModel model;
  model.input("x", {4}).output("v100000");
  for (int i = 1; i <= 100000; ++i) {
    const std::string before = "v" + std::to_string(i == 1 ? 100000 : i - 1);
    model.node("Relu", {before}, {"v" + std::to_string(i)});
  }
  EXPECT_ERROR(import_model(model), "the graph has a cycle");
}

// The bytes of a model are in memory once.
TEST(ImportOnnx, ConstantsAreViewsOfTheModel) {
  OnnxModel model;
  model.input("x", {4}).output("y").node("Add", {"x", "w"}, {"y"});
  const std::vector<float> values = {1, 2, 3, 4};
  auto& w = model.initializer("w", onnx::TensorProto::FLOAT, {4});
  w.set_raw_data(values.data(), 16);
  auto owner = std::make_shared<onnx::TensorProto>(w);
  const void* const bytes = owner->raw_data().data();
  ExternalData files;
  const Result<Tensor> view = tensor_from_proto(*owner, files, owner);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->data(), bytes);
  owner.reset();
  EXPECT_EQ(values_of(*view), (std::vector<double>{1, 2, 3, 4}));
  const Result<Graph> graph = import_model(model);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(values_of(run_graph(*graph, {floats({4}, {1, 1, 1, 1})})[0]),
            (std::vector<double>{2, 3, 4, 5}));
}

// LLaVA puts image features in the place of tokens like this; the error says why shapes do not fit.
TEST(ImportOnnx, SaysThatTheDataDecideAnExtent) {
  OnnxModel model;
  model.input("mask", {6}, onnx::TensorProto::BOOL).input("text", {6, 2}).input("image", {3, 2});
  model.output("y").node("NonZero", {"mask"}, {"found"});
  model.node("Transpose", {"found"}, {"places"});
  model.node("ScatterND", {"text", "places", "image"}, {"y"});
  EXPECT_ERROR(import_model(model),
               "node \"ScatterND_3\": reads what NonZero finds, whose extent the data "
               "say at run time");
}

}  // namespace
}  // namespace pruner
