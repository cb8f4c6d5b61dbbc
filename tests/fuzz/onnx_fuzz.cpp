// layer: graph
// An ONNX model -> a graph; a small one goes through all passes, and becomes tasks.
#include "fuzz/fuzz_target.h"
#include "fuzz/protobuf_mutator.h"
#include "graph/onnx/onnx_model.h"
#include "graph/ops/op.h"
#include "graph/partition.h"
#include "space/operator_task.h"

namespace pruner {
namespace {

/// A convolution with its activation and pool, as networks begin.
OnnxModel convolution() {
  OnnxModel model;
  model.input("x", {1, 3, 6, 6}).output("y");
  onnx::TensorProto& weight = model.initializer("w", onnx::TensorProto::FLOAT, {4, 3, 3, 3});
  for (int i = 0; i < 108; ++i) weight.add_float_data(0.01f * static_cast<float>(i));
  onnx::NodeProto& conv = model.node("Conv", {"x", "w"}, {"c"});
  set_ints(conv, "pads", {1, 1, 1, 1});
  set_int(conv, "group", 1);
  model.node("Relu", {"c"}, {"r"});
  onnx::NodeProto& pool = model.node("MaxPool", {"r"}, {"y"});
  set_ints(pool, "kernel_shape", {2, 2});
  set_ints(pool, "strides", {2, 2});
  return model;
}

/// Shapes that are computed, and what rearranges.
OnnxModel shapes() {
  OnnxModel model;
  model.input("x", {2, 3, 4}).output("y");
  model.integers("axes", {1}).integers("starts", {0}).integers("ends", {2}).integer("one", 1);
  model.integers("rest", {-1});
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "one"}, {"n"});
  model.node("Unsqueeze", {"n", "starts"}, {"n1"});
  set_int(model.node("Concat", {"n1", "rest"}, {"target"}), "axis", 0);
  model.node("Reshape", {"x", "target"}, {"flat"});
  set_ints(model.node("Transpose", {"flat"}, {"t"}), "perm", {1, 0});
  model.node("Slice", {"t", "starts", "ends", "axes"}, {"s"});
  set_int(model.node("Softmax", {"s"}, {"soft"}), "axis", -1);
  model.node("ReduceMean", {"soft"}, {"mean"});
  model.node("Sub", {"soft", "mean"}, {"y"});
  return model;
}

/// A branch, a loop, and a product with quantized weights.
OnnxModel control() {
  OnnxModel then_branch, body;
  then_branch.output("made").node("Neg", {"x"}, {"made"});
  body.input("i", {}, onnx::TensorProto::INT64).input("go", {}, onnx::TensorProto::BOOL);
  body.input("state", {2, 2}).output("go").output("next").node("Add", {"state", "x"}, {"next"});
  OnnxModel model;
  model.input("x", {2, 2}).output("y").integer("three", 3).integer("two", 2);
  model.node("Equal", {"two", "two"}, {"c"});
  onnx::NodeProto& branch = model.node("If", {"c"}, {"b"});
  set_graph(branch, "then_branch", then_branch);
  set_graph(branch, "else_branch", then_branch);
  set_graph(model.node("Loop", {"three", "", "b"}, {"l"}), "body", body);
  onnx::TensorProto& codes = model.initializer("codes", onnx::TensorProto::INT8, {2, 2});
  for (int i = 0; i < 4; ++i) codes.add_int32_data(i);
  model.initializer("scale", onnx::TensorProto::FLOAT, {}).add_float_data(0.5f);
  model.node("DequantizeLinear", {"codes", "scale"}, {"w"});
  model.node("MatMul", {"l", "w"}, {"y"});
  return model;
}

bool is_small(const Graph& graph) {
  int64_t elements = 0;
  for (const Value& value : graph.values) {
    double here = 1;
    for (const int64_t extent : value.shape) here *= static_cast<double>(extent);
    if (here > 1e4 || (elements += static_cast<int64_t>(here)) > 10'000) return false;
  }
  return graph.nodes.size() < 30;
}

}  // namespace

std::vector<std::string> seeds() {
  return {convolution().bytes(), shapes().bytes(), control().bytes()};
}

bool read_input(std::string_view bytes) {
  Result<Graph> graph = import_onnx_bytes(bytes, {});
  if (!graph.ok()) return false;
  if (!is_small(*graph)) return true;
  static const Target target = test_target();
  const Result<Partition> parts = partition(*std::move(graph), target);
  if (parts.ok()) (void)extract_tasks(*parts, target);
  return true;
}

}  // namespace pruner

// Now and then a node becomes another operator's.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return pruner::mutate<onnx::ModelProto>(
      data, size, most, seed, [](auto& model, pruner::Rng& rng) {
        if (model.graph().node_size() == 0 || rng.below(8) != 0) return;
        const auto ops = pruner::graph_ops();
        const auto node = static_cast<int>(rng.below(model.graph().node_size()));
        const auto op = static_cast<size_t>(rng.below(std::ssize(ops)));
        model.mutable_graph()->mutable_node(node)->set_op_type(std::string(ops[op].name));
      });
}
