#include "graph/group_name.h"

#include <algorithm>

#include "graph/ops/window.h"
#include "tensor/operators.h"

namespace pruner {

static std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return text;
}

// "2" for 2x2, "1x2x2" where they differ.
static std::string one_or_all(std::span<const int64_t> values) {
  const bool equal = std::ranges::count(values, values[0]) == std::ssize(values);
  return print_shape(equal ? values.first(1) : values);
}

// "1" where all sides have 1, "1x2" one a dim, "0x0x1x1" one a side: first those before.
static std::string padding_text(const Window& window) {
  if (window.pad_before == window.pad_after) return one_or_all(window.pad_before);
  std::vector<int64_t> sides = window.pad_before;
  sides.insert(sides.end(), window.pad_after.begin(), window.pad_after.end());
  return print_shape(sides);
}

static std::string window_text(const OpCall& call, std::span<const int64_t> kernel) {
  const Result<Window> window = window_of(call, kernel);
  std::string text = " " + print_shape(kernel) + " s" + one_or_all(window->stride);
  if (const std::string padding = padding_text(*window); padding != "0") text += " p" + padding;
  if (const std::string dilation = one_or_all(window->dilation); dilation != "1")
    text += " d" + dilation;
  return text;
}

// Returns "2d", or "2d_nchw", as --op calls images of [n, c, h, w].
static std::string rank_text(const OpCall& call) {
  return std::to_string(call.rank(0) - 2) + (channels_last(call) ? "d" : "d_nchw");
}

static std::string conv_name(const OpCall& call) {
  const auto weight = std::span(call.shape(1));
  const bool phases = call.node.op == "ConvTransposePhases";
  std::vector<int64_t> kernel = call.integers("kernel_shape");
  if (!phases) {
    const auto extents = weight.subspan(channels_last(call) ? 0 : 2, weight.size() - 2);
    kernel.assign(extents.begin(), extents.end());
  }
  const int64_t groups = call.integer("group", 1);
  const bool transposed = phases || call.node.op == "ConvTranspose";
  const bool depthwise = is_depthwise(call);
  std::string text = depthwise ? "depthwise_conv" : "conv";
  text += rank_text(call) + (transposed ? "_transpose " : " ");
  text += print_shape(call.shape(0)) + window_text(call, kernel);
  if (groups > 1 && !depthwise) text += " g" + std::to_string(groups);
  if (phases && !std::ranges::equal(weight.first(kernel.size()), call.integers("strides")))
    text += " phase " + print_shape(call.integers("first_phases"));
  const std::vector<int64_t>& made = call.output().shape;
  return text + " -> " + std::to_string(channels_last(call) ? made.back() : made[1]);
}

static std::string anchor_name(const OpCall& call) {
  const std::string& op = call.node.op;
  const std::string data = print_shape(call.shape(0));
  if (is_convolution(call.node)) return conv_name(call);
  if (op == "MaxPool" || op == "AveragePool") {
    const std::vector<int64_t> kernel = call.integers("kernel_shape");
    const std::string kind = op == "MaxPool" ? "max_pool" : "avg_pool";
    return kind + rank_text(call) + " " + data + window_text(call, kernel);
  }
  if (op == "Gemm") return "dense " + data + " -> " + std::to_string(call.output().shape.back());
  if (op == "MatMul") {
    const std::string flags = call.integer("transB", 0) != 0 ? "T" : "";
    return "matmul " + data + (call.integer("transA", 0) != 0 ? "T" : "") + " " +
           print_shape(call.shape(1)) + flags;
  }
  if (op == "CodedMatMul") {
    return "coded_matmul " + data + " -> " + std::to_string(call.output().shape.back()) + " of " +
           std::to_string(call.integer("bits", 8)) + " bits in " +
           std::to_string(call.integer("block_size", 0));
  }
  if (op == "FusedAttention") {
    const std::vector<int64_t> order = call.integers("positions_first");
    const size_t positions = !order.empty() && order[1] != 0 ? 1 : 2;
    return "attention " + print_shape(call.output().shape) + " of " +
           std::to_string(call.shape(1)[positions]) + " keys" +
           (call.integer("causal", 0) != 0 ? ", causal" : "");
  }
  const std::string_view shown = find_graph_op(op)->shown;
  return (shown.empty() ? lower_case(op) : std::string(shown)) + " " + data;
}

// Returns the suffix that an element-wise node adds to an anchor's name.
static std::string suffix(const Graph& graph, const Node& node, const std::string& so_far) {
  if (node.op != "Add") return lower_case(node.op);
  const OpCall call{graph, node};
  const bool whole = call.shape(0) == call.shape(1);
  const bool constant = call.input(0).constant || call.input(1).constant;
  if (constant && so_far.find("+bias") == std::string::npos) return "bias";
  return whole && !constant ? "residual" : "add";
}

// Returns the name of an anchor with the nodes after it, up to the next anchor.
static std::string anchored_name(const Graph& graph, std::span<const Node* const> nodes) {
  const OpCall call{graph, *nodes[0]};
  std::string text = anchor_name(call);
  const std::string& op = call.node.op;
  const bool takes_bias = is_convolution(call.node) || op == "Gemm";
  if (takes_bias && call.has(2)) text += " +bias";
  for (const Node* node : nodes.subspan(1)) {
    if (op == "MatMul" && (node->op == "Reshape" || node->op == "Slice")) {
      const int64_t width = graph[nodes.back()->outputs[0]].shape.back();
      return text + " +rotary_embedding=" + std::to_string(width);
    }
    text += " +" + suffix(graph, *node, text);
  }
  return text;
}

std::string group_name(const Graph& graph, std::span<const Node* const> nodes) {
  const auto is_anchor = [](const Node* node) { return find_graph_op(node->op)->is_anchor(); };
  auto anchor = std::ranges::find_if(nodes, is_anchor);
  std::string text;
  if (anchor == nodes.end()) {
    for (const Node* node : nodes) text += (text.empty() ? "" : "+") + lower_case(node->op);
    if (nodes.size() > 4) {
      text = lower_case(nodes.front()->op) + "+...+" + lower_case(nodes.back()->op);
    }
    return text + " " + print_shape(graph[nodes.back()->outputs[0]].shape);
  }
  for (auto it = nodes.begin(); it != anchor; ++it) text += lower_case((*it)->op) + "+";
  while (anchor != nodes.end()) {
    const auto next = std::find_if(anchor + 1, nodes.end(), is_anchor);
    text += anchored_name(graph, {anchor, next});
    if (next != nodes.end()) text += " +";
    anchor = next;
  }
  return text;
}

std::string operator_name(const std::string& name, const std::string& key) {
  static constexpr const char* kOptions[] = {
      "", " bits=16 exponent=8", " bits=16", " bits=19", " bits=8", " phases=1"};
  const size_t end = std::min(name.find(" +"), name.size());  // end of the anchor's name
  for (const char* options : kOptions) {
    const std::string text = name.substr(0, end) + options + name.substr(end);
    const Result<ComputeDag> dag = parse_operator(text);
    if (*options == '\0' && !dag.ok()) return name;
    if (dag.ok() && workload_key(*dag) == key) return text;
  }
  return name + " ...";
}

}  // namespace pruner
