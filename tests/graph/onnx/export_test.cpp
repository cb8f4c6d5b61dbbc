#include "graph/onnx/onnx_model.h"
#include "graph/small_graph.h"

namespace pruner {
namespace {

Graph round_trip(const Graph& graph) {
  const std::string path = scratch_path("out.onnx");
  const Result<Unit> written = export_onnx(graph, path);
  EXPECT_TRUE(written.ok()) << written.error().message();
  const Result<Graph> read = import_onnx(path, {});
  EXPECT_TRUE(read.ok()) << read.error().message();
  return *read;
}

onnx::ModelProto exported(const Graph& graph) {
  round_trip(graph);
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(*read_file(scratch_path("out.onnx"))));
  return model;
}

TEST(ExportOnnx, NetworksAreReadBackTheSame) {
  NetworkOptions options;
  options.image_size = 32;
  options.sequence_length = 8;
  for (const std::string name : {"bert_tiny", "mobilenet_v2", "mobilenet_v3", "resnet_18"}) {
    const Graph graph = *build_network(name, options);
    const Graph read = round_trip(graph);
    EXPECT_EQ(read.name, name);
    EXPECT_EQ(operators(read), operators(graph)) << name;
    EXPECT_EQ(read[read.inputs[0]].name, graph[graph.inputs[0]].name);
    const Result<Partition> before = partition(graph, Target{}), after = partition(read, Target{});
    ASSERT_EQ(before->groups.size(), after->groups.size()) << name;
    for (size_t i = 0; i < before->groups.size(); ++i) {
      EXPECT_EQ(before->groups[i].key, after->groups[i].key) << name << " " << i;
    }
  }
}

TEST(ExportOnnx, KeepsWhatIsComputed) {
  NetworkBuilder b("kept");
  const ValueId x = b.input("x", {2, 3}, DType::kFloat32);
  const ValueId mean = b.node("ReduceMean", {x, b.integers("axes", {1})});
  const ValueId whole = b.node(
      "Cast", {b.node("Clip", {x, b.scalar(-0.5), b.scalar(0.5)})}, {{"to", std::string("int32")}});
  const ValueId y =
      b.node("Add", {b.node("Cast", {whole}, {{"to", std::string("float32")}}), mean});
  const Graph graph = b.finish({{y, "y"}, {whole, "whole"}});
  const Graph read = round_trip(graph);
  const Tensor in = waves({2, 3});
  const std::vector<Tensor> expected = run_graph(graph, {in}), found = run_graph(read, {in});
  expect_near(found[0], expected[0], 0);
  expect_near(found[1], expected[1], 0);
  EXPECT_EQ(exported(graph).opset_import(0).version(), 13);
  EXPECT_EQ(exported(graph).ir_version(), 8);
}

TEST(ExportOnnx, LeavesOutInputsThatAreNotGiven) {
  NetworkBuilder b("resized");
  const ValueId x = b.input("x", {1, 2, 3, 3}, DType::kFloat32);
  const Graph graph = b.finish({{b.resize(x, 5, 7, true), "y"}});
  const Graph read = round_trip(graph);
  const Tensor in = waves({1, 2, 3, 3});
  expect_near(run_graph(read, {in})[0], run_graph(graph, {in})[0], 0);
  EXPECT_EQ(exported(graph).graph().node(0).input(1), "");
}

TEST(ExportOnnx, WritesTheRoundingThatResizeOfOpset10Has) {
  for (const auto& [scale, rounding] : {std::pair(1.6f, "floor"), {0.6f, "ceil"}}) {
    OnnxModel model(10);
    model.input("x", {1, 1, 5, 5}).output("y");
    onnx::TensorProto& scales = model.initializer("scales", onnx::TensorProto::FLOAT, {4});
    for (const float along : {1.0f, 1.0f, scale, scale}) scales.add_float_data(along);
    model.node("Resize", {"x", "scales"}, {"y"});
    const Graph graph = *import_model(model);
    const Graph read = round_trip(graph);
    const Tensor in = waves({1, 1, 5, 5});
    expect_near(run_graph(read, {in})[0], run_graph(graph, {in})[0], 0);
    EXPECT_EQ((OpCall{read, read.nodes[0]}.text("nearest_mode", "")), rounding);
  }
}

TEST(ExportOnnx, TakesTheOpsetThatItsOperatorsNeed) {
  NetworkBuilder b("newer");
  const ValueId x = b.input("x", {2, 4}, DType::kFloat32);
  const ValueId n = b.node("LayerNormalization", {x, b.random("s", {4}, 1, 1)});
  EXPECT_EQ(exported(b.finish({{n, "y"}})).opset_import(0).version(), 17);
}

// A file with nodes that ONNX lacks would be read by this program alone.
TEST(ExportOnnx, RefusesWhatOnnxHasNoFormOf) {
  NetworkBuilder b("passed");
  const ValueId x = b.input("x", {1, 2, 4, 4}, DType::kFloat32);
  const Graph graph = b.finish({{b.node("LRN", {x}, {{"size", int64_t{3}}}), "y"}});
  EXPECT_ERROR(export_onnx(run_graph_passes(graph), scratch_path("out.onnx")),
               "the node that makes \"LRN_0/LRN\" cannot be written to an ONNX file: ONNX's LRN "
               "has no attribute channels_last");
  NetworkBuilder t("tables");
  const ValueId codes = t.input("codes", {4}, DType::kUInt8);
  const ValueId steps = t.scalar(0.5);
  EXPECT_ERROR(export_onnx(t.finish({{t.node("Dequantize", {codes, steps}), "y"}}),
                           scratch_path("out.onnx")),
               "cannot be written to an ONNX file: ONNX has no operator Dequantize");
  EXPECT_ERROR(export_onnx(graph, "/nonexistent/out.onnx"), "/nonexistent/out.onnx");
}

}  // namespace
}  // namespace pruner
