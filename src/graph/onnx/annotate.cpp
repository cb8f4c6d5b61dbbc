// Notes in the nodes of an ONNX file, where viewers (Netron) show them.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "graph/onnx/node_numbers.h"
#include "graph/ops/op.h"
#include "graph/partition.h"
#include "support/file.h"

namespace pruner {

namespace {

using Kernels = std::set<size_t>;

/// `NodeKernels` says which kernels compute each node of a main graph: the kernels that have the
/// node's number. A node that the passes folded into others belongs to the kernels that took it in.
class NodeKernels {
 public:
  NodeKernels(const onnx::GraphProto& graph, std::span<const NotedKernel> kernels)
      : graph_(graph), of_(static_cast<size_t>(graph.node_size())) {
    for (size_t k = 0; k < kernels.size(); ++k) {
      for (const std::string& name : kernels[k].nodes) {
        const std::optional<int> number = node_number(name);
        if (number && *number < graph.node_size()) of_[static_cast<size_t>(*number)].insert(k);
      }
    }
    for (int i = 0; i < graph.node_size(); ++i) {
      for (const std::string& name : graph.node(i).output()) made_by_[name] = i;
      for (const std::string& name : graph.node(i).input()) read_by_[name].push_back(i);
    }
    for (const onnx::ValueInfoProto& input : graph.input()) varies_.insert(input.name());
    for (const onnx::TensorProto& constant : graph.initializer()) varies_.erase(constant.name());
    for (const onnx::NodeProto& node : graph.node()) {
      const bool varies = std::ranges::any_of(
          node.input(), [&](const std::string& name) { return varies_.contains(name); });
      if (varies) varies_.insert(node.output().begin(), node.output().end());
    }
  }

  const Kernels& of(int node) const { return of_[static_cast<size_t>(node)]; }
  /// Whether the node is computed from constants alone.
  bool is_constant(int node) const {
    return std::ranges::none_of(graph_.node(node).output(),
                                [&](const std::string& name) { return varies_.contains(name); });
  }
  /// Returns the kernels into which a node without a kernel was folded. A node that scales its data
  /// has the kernel of the data; any other node the kernel that reads it, else the kernel of its
  /// data. Empty: the kernel is not known.
  Kernels folded_into(int node) const {
    const Kernels before = data_kernels(node), after = reading_kernels(node);
    if (graph_.node(node).op_type() == "BatchNormalization" && !before.empty()) return before;
    return after.size() == 1 ? after : before;
  }

 private:
  /// Returns the kernels of the node that makes the first input that varies, past nodes without a
  /// kernel.
  Kernels data_kernels(int node) const {
    for (bool moved = true; moved;) {
      moved = false;
      for (const std::string& name : graph_.node(node).input()) {
        const auto maker = made_by_.find(name);
        if (!varies_.contains(name) || maker == made_by_.end()) continue;
        node = maker->second;
        if (!of(node).empty()) return of(node);
        moved = true;
        break;
      }
    }
    return {};
  }

  /// Returns the kernels of all nodes that read a node's outputs, past nodes without a kernel.
  Kernels reading_kernels(int node) const {
    Kernels found;
    std::set<int> seen;
    std::vector<int> open = {node};
    while (!open.empty()) {
      const int at = open.back();
      open.pop_back();
      for (const std::string& name : graph_.node(at).output()) {
        const auto readers = read_by_.find(name);
        if (readers == read_by_.end()) continue;
        for (const int reader : readers->second) {
          found.insert(of(reader).begin(), of(reader).end());
          if (of(reader).empty() && seen.insert(reader).second) open.push_back(reader);
        }
      }
    }
    return found;
  }

  const onnx::GraphProto& graph_;
  std::vector<Kernels> of_;
  std::map<std::string, int> made_by_;
  std::map<std::string, std::vector<int>> read_by_;
  std::set<std::string> varies_;  // names of values that are no constants
};

/// Returns a line for each note; kernels of one task have one note.
std::string joined(const Kernels& of, std::span<const NotedKernel> kernels) {
  std::string text;
  std::set<std::string> seen;
  for (const size_t k : of)
    if (seen.insert(kernels[k].note).second) text += (text.empty() ? "" : "\n") + kernels[k].note;
  return text;
}

std::string note_of(const NodeKernels& nodes,
                    const onnx::NodeProto& node,
                    int number,
                    std::span<const NotedKernel> kernels) {
  if (!nodes.of(number).empty()) return joined(nodes.of(number), kernels);
  if (nodes.is_constant(number)) return "a constant, known before the first run";
  if (is_alias(node.op_type())) return "no kernel: a view of its input";
  const Kernels into = nodes.folded_into(number);
  return into.empty() ? "no kernel" : "folded into: " + joined(into, kernels);
}

bool has_external_data(const onnx::GraphProto& graph) {
  return std::ranges::any_of(graph.initializer(), [](const onnx::TensorProto& tensor) {
    return tensor.data_location() == onnx::TensorProto::EXTERNAL;
  });
}

Result<Unit> check_folder(const std::string& path, const std::string& to) {
  namespace fs = std::filesystem;
  const auto folder = [](const std::string& file) {
    std::error_code ignored;
    return fs::weakly_canonical(fs::absolute(file, ignored).parent_path(), ignored);
  };
  if (folder(path) == folder(to)) return Unit{};
  return Error(to, ": the weights of ", path, " lie in files beside it; write beside it, too");
}

}  // namespace

Result<Unit> annotate_onnx(const std::string& path,
                           std::span<const NotedKernel> kernels,
                           const std::string& to) {
  TRY(check_readable(path));
  onnx::ModelProto model;
  std::ifstream in(path, std::ios::binary);
  if (!model.ParseFromIstream(&in)) return Error(path, ": protobuf cannot parse it");
  if (has_external_data(model.graph())) TRY(check_folder(path, to));
  const NodeKernels nodes(model.graph(), kernels);
  std::vector<std::string> notes;
  for (int i = 0; i < model.graph().node_size(); ++i)
    notes.push_back(note_of(nodes, model.graph().node(i), i, kernels));
  for (int i = 0; i < model.graph().node_size(); ++i) {
    std::string& text = *model.mutable_graph()->mutable_node(i)->mutable_doc_string();
    text += (text.empty() ? "pruner: " : "\npruner: ") + notes[static_cast<size_t>(i)];
  }
  std::string bytes;
  if (!model.SerializeToString(&bytes))
    return Error(to, ": the network has more than 2 GB, the most that an ONNX file holds");
  return write_file(to, bytes);
}

}  // namespace pruner
