#include <filesystem>
#include <fstream>

#include "graph/onnx/onnx_model.h"
#include "own_path.h"
#include "support/file.h"
#include "target/target.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct Annotate : testing::Test {
  Annotate() : folder(own_path("annotate_test")) { fs::create_directories(folder); }
  ~Annotate() override { fs::remove_all(folder); }

  static void floats(OnnxModel& m,
                     const std::string& name,
                     const std::vector<int64_t>& shape,
                     float value) {
    onnx::TensorProto& tensor = m.initializer(name, onnx::TensorProto::FLOAT, shape);
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    for (int64_t i = 0; i < count; ++i) tensor.add_float_data(value);
  }

  std::string file(const std::string& name) const { return folder + "/" + name; }

  /// Conv, BatchNormalization, Relu, Flatten, a Constant times two, and a product; no node has a
  /// name of its own.
  OnnxModel network() const {
    OnnxModel m;
    m.input("x", {1, 8, 6, 6});
    floats(m, "w", {8, 8, 3, 3}, 0.1f);
    for (const char* name : {"scale", "bias", "mean", "variance"}) floats(m, name, {8}, 1);
    floats(m, "one", {1}, 1);
    floats(m, "v", {128, 4}, 0.5f);
    m.node("Conv", {"x", "w"}, {"c"});
    m.node("BatchNormalization", {"c", "scale", "bias", "mean", "variance"}, {"n"});
    m.node("Relu", {"n"}, {"r"}).set_doc_string("a note of its own");
    m.node("Flatten", {"r"}, {"f"});
    m.node("Add", {"one", "one"}, {"two"});
    m.node("Mul", {"v", "two"}, {"vv"});
    m.node("MatMul", {"f", "vv"}, {"y"});
    m.output("y");
    for (auto& node : *m.graph().mutable_node()) node.clear_name();
    return m;
  }

  /// The doc_strings of the file's nodes with the name of each kernel as its note.
  std::vector<std::string> notes(const std::string& path, const std::string& to) const {
    NetworkOptions options;
    options.number_nodes = true;
    Result<Graph> graph = import_onnx(path, options);
    EXPECT_TRUE(graph.ok()) << graph.error().message();
    const Result<Partition> cut = partition(*std::move(graph), *parse_target("llvm", 1));
    std::vector<NotedKernel> kernels;
    for (const Group& group : cut->groups) kernels.push_back({group.nodes, group.name});
    const Result<Unit> written = annotate_onnx(path, kernels, to);
    EXPECT_TRUE(written.ok()) << written.error().message();
    onnx::ModelProto model = read(to);
    std::vector<std::string> texts;
    for (auto& node : *model.mutable_graph()->mutable_node()) texts.push_back(node.doc_string());
    return texts;
  }
  static onnx::ModelProto read(const std::string& path) {
    onnx::ModelProto model;
    std::ifstream in(path, std::ios::binary);
    EXPECT_TRUE(model.ParseFromIstream(&in));
    return model;
  }

  std::string folder;
};

TEST_F(Annotate, SaysWhichKernelComputesANodeOrTookItIn) {
  ASSERT_TRUE(write_file(file("a.onnx"), network().bytes()).ok());
  const std::string conv = "conv2d 1x6x6x8 3x3 s1 -> 8 +bias +relu";
  EXPECT_EQ(notes(file("a.onnx"), file("b.onnx")),
            (std::vector<std::string>{"pruner: " + conv,
                                      "pruner: folded into: " + conv,
                                      "a note of its own\npruner: " + conv + "\ntranspose 1x8x4x4",
                                      "pruner: no kernel: a view of its input",
                                      "pruner: a constant, known before the first run",
                                      "pruner: a constant, known before the first run",
                                      "pruner: matmul 1x128 128x4 ..."}));
}

TEST_F(Annotate, LeavesAllElseAsItIs) {
  ASSERT_TRUE(write_file(file("a.onnx"), network().bytes()).ok());
  notes(file("a.onnx"), file("b.onnx"));
  onnx::ModelProto before = read(file("a.onnx")), after = read(file("b.onnx"));
  for (onnx::ModelProto* model : {&before, &after})
    for (auto& node : *model->mutable_graph()->mutable_node()) node.clear_doc_string();
  EXPECT_EQ(before.SerializeAsString(), after.SerializeAsString());
}

TEST_F(Annotate, KeepsWeightsInTheirFilesBesideIt) {
  OnnxModel m = network();
  onnx::TensorProto& w = *m.graph().mutable_initializer(0);
  const std::vector<float> values(576, 0.1f);
  ASSERT_TRUE(
      write_file(file("w.bin"), {reinterpret_cast<const char*>(values.data()), 576 * sizeof(float)})
          .ok());
  w.clear_float_data();
  w.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& entry = *w.add_external_data();
  entry.set_key("location");
  entry.set_value("w.bin");
  ASSERT_TRUE(write_file(file("a.onnx"), m.bytes()).ok());
  EXPECT_EQ(notes(file("a.onnx"), file("b.onnx"))[0],
            "pruner: conv2d 1x6x6x8 3x3 s1 -> 8 +bias +relu");
  EXPECT_TRUE(import_onnx(file("b.onnx"), {}).ok());
  fs::create_directories(file("other"));
  EXPECT_ERROR(annotate_onnx(file("a.onnx"), {}, file("other/b.onnx")),
               "lie in files beside it; write beside it, too");
}

TEST_F(Annotate, TellsAllKernelsOfAGraphWithinANode) {
  OnnxModel m;
  m.input("x", {4, 4}).output("y");
  OnnxModel body;
  body.node("MatMul", {"x", "x"}, {"p"});
  body.node("MatMul", {"p", "w"}, {"q"});
  body.output("q");
  floats(m, "w", {4, 2}, 1);
  onnx::TensorProto& yes = m.initializer("yes", onnx::TensorProto::BOOL, {});
  yes.add_int32_data(1);
  onnx::NodeProto& node = m.node("If", {"yes"}, {"y"});
  for (const char* branch : {"then_branch", "else_branch"}) set_graph(node, branch, body);
  ASSERT_TRUE(write_file(file("a.onnx"), m.bytes()).ok());
  EXPECT_EQ(notes(file("a.onnx"), file("b.onnx")),
            (std::vector<std::string>{"pruner: matmul 4x4 4x4 ...\nmatmul 4x4 4x2 ..."}));
}

}  // namespace
}  // namespace pruner
