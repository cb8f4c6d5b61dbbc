#include "graph/onnx/node_order.h"

#include <algorithm>
#include <functional>

namespace pruner {

static void add_free_names(const onnx::GraphProto& graph, std::set<std::string>& names) {
  std::set<std::string> read;
  for (const onnx::NodeProto& node : graph.node()) add_reads(node, read);
  for (const auto& output : graph.output()) read.insert(output.name());
  for (const auto& input : graph.input()) read.erase(input.name());
  for (const auto& tensor : graph.initializer()) read.erase(tensor.name());
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& name : node.output()) read.erase(name);
  }
  names.merge(read);
}

void add_reads(const onnx::NodeProto& node, std::set<std::string>& names) {
  names.insert(node.input().begin(), node.input().end());
  for (const onnx::GraphProto* graph : subgraphs(node)) add_free_names(*graph, names);
  names.erase("");
}

std::string label(const onnx::NodeProto& node) {
  if (!node.name().empty()) return "\"" + node.name() + "\"";
  return "that makes \"" + (node.output_size() > 0 ? node.output(0) : "") + "\"";
}

static Result<std::map<std::string, int>> makers(const NodeList& nodes) {
  std::map<std::string, int> maker;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].output()) {
      const bool fresh = name.empty() || maker.try_emplace(name, i).second;
      if (!fresh) return Error("value \"", name, "\" is made twice");
    }
  }
  return maker;
}

Result<std::vector<int>> node_order(const NodeList& nodes) {
  TRY_ASSIGN(const auto maker, makers(nodes));
  const auto n = static_cast<size_t>(nodes.size());
  std::vector<std::vector<int>> readers(n);
  std::vector<int> waiting(n, 0), order, heap;
  for (size_t i = 0; i < n; ++i) {
    std::set<std::string> names;
    add_reads(nodes[static_cast<int>(i)], names);
    for (const std::string& name : names) {
      const auto it = maker.find(name);
      if (it == maker.end()) continue;
      readers[static_cast<size_t>(it->second)].push_back(static_cast<int>(i));
      ++waiting[i];
    }
    if (waiting[i] == 0) heap.push_back(static_cast<int>(i));
  }
  // The order of the file where it is right already: the least ready number first.
  const auto later = std::greater<int>();
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const int i = heap.back();
    heap.pop_back();
    order.push_back(i);
    for (const int reader : readers[static_cast<size_t>(i)]) {
      if (--waiting[static_cast<size_t>(reader)] > 0) continue;
      heap.push_back(reader);
      std::push_heap(heap.begin(), heap.end(), later);
    }
  }
  if (order.size() == n) return order;
  const auto stuck = std::ranges::find_if(waiting, [](int count) { return count > 0; });
  const auto at = static_cast<int>(stuck - waiting.begin());
  return Error("node ", label(nodes[at]), " needs its own output: the graph has a cycle");
}

}  // namespace pruner
