// A chain of element-wise nodes from bytes to bytes is a function of 256 numbers. A chain that
// takes longer than a look into a table of the function becomes that look. QDQ files have such
// chains for each activation that is no Relu, step by step through bytes (GELU: Div, Erf, Add, Mul,
// Mul). The table has the nodes' results in the interpreter, which rounds each to float32 once.
#include <algorithm>

#include "graph/passes.h"
#include "graph/rewriter.h"

namespace pruner {
namespace {

constexpr int64_t kNumbers = 256;  // values of a byte

bool is_byte(DType t) { return t == DType::kUInt8 || t == DType::kInt8; }

/// A value as a function of the bytes of another, element by element.
struct OfByte {
  ValueId source;
  ValueId table;      // value in the graph of tables
  int quantized = 0;  // number of Quantize nodes on the way
  bool slow = false;  // a function of many operations is on the way
};

class Tabulator {
 public:
  explicit Tabulator(Graph graph) : r_(std::move(graph)) {}
  Graph run() &&;

 private:
  OfByte of_byte(ValueId id);
  ValueId in_tables(const Value& value);
  std::optional<OfByte> follow(const Node& node);
  ValueId lookup(const Node& node, const OfByte& function);

  Rewriter r_;
  Graph tables_;                     // values of 256 elements, all of them known
  std::map<ValueId, OfByte> known_;  // function, per value; a source is a function of itself
};

bool is_slow(const std::string& op) {
  static constexpr std::string_view kOps[] = {"Cos",
                                              "Elu",
                                              "Erf",
                                              "Exp",
                                              "Expm1",
                                              "Gelu",
                                              "Log",
                                              "Log1p",
                                              "Mish",
                                              "Pow",
                                              "Selu",
                                              "Sigmoid",
                                              "Sin",
                                              "Softplus",
                                              "Tanh"};
  return std::ranges::find(kOps, op) != std::end(kOps);
}

ValueId Tabulator::in_tables(const Value& value) {
  tables_.values.push_back(value);
  return ValueId{static_cast<int32_t>(tables_.values.size()) - 1};
}

// Returns the function that a value is. Bytes that are no function of others are their own source.
OfByte Tabulator::of_byte(ValueId id) {
  if (const auto it = known_.find(id); it != known_.end()) return it->second;
  const DType dtype = r_[id].dtype;
  Tensor numbers(dtype, {kNumbers});
  for (int64_t i = 0; i < kNumbers; ++i) numbers.set_int(i, least_int(dtype) + i);
  const OfByte own{id, in_tables({"x", dtype, {kNumbers}, numbers})};
  return known_[id] = own;
}

// Returns the function that an element-wise node makes of functions of one source and of constants
// of one element.
std::optional<OfByte> Tabulator::follow(const Node& node) {
  if (find_graph_op(node.op)->fusion > Fusion::kBroadcast) return std::nullopt;
  std::optional<OfByte> result;
  Node copy = node;
  for (ValueId& id : copy.inputs) {
    if (!id.valid()) continue;
    const Value& value = r_[id];
    if (value.constant && element_count(value.shape) == 1) {
      id = in_tables({value.name, value.dtype, {}, value.constant->reshaped({})});
      continue;
    }
    const bool known = known_.contains(id) || (is_byte(value.dtype) && !value.constant);
    if (!known || value.shape != r_[node.outputs[0]].shape) return std::nullopt;
    const OfByte function = of_byte(id);
    if (result && result->source != function.source) return std::nullopt;
    if (!result) result = function;
    result->quantized = std::max(result->quantized, function.quantized);
    result->slow = result->slow || function.slow;
    id = function.table;
  }
  if (!result) return std::nullopt;
  copy.outputs = {in_tables({"y", DType::kFloat32, {}, std::nullopt})};
  if (!infer_node(tables_, copy).ok() || !tables_[copy.outputs[0]].constant) return std::nullopt;
  result->table = copy.outputs[0];
  result->quantized += node.op == "Quantize" ? 1 : 0;
  result->slow = result->slow || is_slow(node.op);
  return result;
}

ValueId Tabulator::lookup(const Node& node, const OfByte& function) {
  const Tensor& made = *tables_[function.table].constant;
  Tensor table(DType::kInt32, {kNumbers});
  for (int64_t i = 0; i < kNumbers; ++i) table.set_int(i, made.get_int(i));
  return r_.add("Lookup",
                {r_.add_constant(node.name + "/table", std::move(table)), function.source},
                {{"to", std::string(dtype_name(made.dtype()))}},
                node.name);
}

Graph Tabulator::run() && {
  constexpr int kMostQuantized = 1;  // Quantize nodes that the end of a kernel has time for
  for (Node& node : r_.take_nodes()) {
    for (ValueId& id : node.inputs) id = r_.current(id);
    const std::optional<OfByte> function = follow(node);
    const ValueId out = node.outputs[0];
    if (function && node.op == "Quantize" && is_byte(r_[out].dtype) &&
        (function->slow || function->quantized > kMostQuantized)) {
      const ValueId made = lookup(node, *function);
      r_.replace(out, made);
      known_[made] = *function;
      continue;
    }
    if (function) known_[out] = *function;
    r_.emit(std::move(node));
  }
  return r_.finish();
}

}  // namespace

Graph tabulate(Graph graph) {
  const bool has_any =
      std::ranges::any_of(graph.nodes, [](const Node& node) { return node.op == "Quantize"; });
  return has_any ? Tabulator(std::move(graph)).run() : std::move(graph);
}

}  // namespace pruner
