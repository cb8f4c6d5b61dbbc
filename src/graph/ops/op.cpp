#include "graph/ops/op.h"

#include <algorithm>
#include <numeric>

namespace pruner {

int64_t OpCall::integer(const char* name, int64_t fallback) const {
  const auto it = node.attributes.find(name);
  return it == node.attributes.end() ? fallback : std::get<int64_t>(it->second);
}

double OpCall::number(const char* name, double fallback) const {
  const auto it = node.attributes.find(name);
  return it == node.attributes.end() ? fallback : std::get<double>(it->second);
}

std::string OpCall::text(const char* name, const char* fallback) const {
  const auto it = node.attributes.find(name);
  return it == node.attributes.end() ? fallback : std::get<std::string>(it->second);
}

template <typename T>
static std::vector<T> list(const Node& node, const char* name) {
  const auto it = node.attributes.find(name);
  return it == node.attributes.end() ? std::vector<T>{} : std::get<std::vector<T>>(it->second);
}

std::vector<int64_t> OpCall::integers(const char* name) const { return list<int64_t>(node, name); }

std::vector<double> OpCall::numbers(const char* name) const { return list<double>(node, name); }

std::vector<std::string> OpCall::texts(const char* name) const {
  return list<std::string>(node, name);
}

std::optional<DType> OpCall::sums() const { return parse_dtype(text("sums", "")); }

Products OpCall::products() const { return {sums(), text("factors", "") == "tf32"}; }

Result<int64_t> OpCall::axis(const char* name, int64_t fallback, int64_t rank) const {
  return normal_axis(integer(name, fallback), rank);
}

Result<std::vector<int64_t>> OpCall::constant_integers(size_t i, const char* what) const {
  const std::optional<Tensor>& tensor = input(i).constant;
  if (!tensor) return computed_at_run_time(graph, node.inputs[i], what);
  if (is_float(tensor->dtype())) return Error(what, " has to hold integers");
  std::vector<int64_t> values(static_cast<size_t>(tensor->num_elements()));
  for (size_t e = 0; e < values.size(); ++e) values[e] = tensor->get_int(static_cast<int64_t>(e));
  return values;
}

std::optional<double> OpCall::scalar(size_t i) const {
  const std::optional<Tensor>& tensor = input(i).constant;
  if (!tensor || tensor->num_elements() != 1) return std::nullopt;
  return tensor->get(0);
}

ValueId indices_of(const Node& node) {
  const std::optional<IndexInput>& indices = find_graph_op(node.op)->indices;
  return indices && indices->place < node.inputs.size() ? node.inputs[indices->place] : ValueId{};
}

void mark_indices(const OpCall& call, StageSink& to) {
  const IndexInput& indices = *find_graph_op(call.node.op)->indices;
  Stage& stage = to.dag.stage(to.input(call, indices.place));
  if (!stage.is_placeholder()) return;
  std::vector<int64_t> extents = indices.extents(call);
  // The lesser extent counts if two operators read at the indices of one tensor.
  if (!stage.read_at.empty()) {
    const std::vector<int64_t> a = std::move(extents), b = stage.read_at;
    extents.assign(std::lcm(a.size(), b.size()), 0);
    for (size_t i = 0; i < extents.size(); ++i)
      extents[i] = std::min(a[i % a.size()], b[i % b.size()]);
  }
  stage.index_bound = *std::ranges::min_element(extents);  // seeded inputs lie below it
  stage.read_at = std::move(extents);
  stage.reads_from_end = stage.reads_from_end && indices.from_end;
}

std::optional<IndexOutside> index_outside(const OpCall& call, const Tensor& indices) {
  const IndexInput& input = *find_graph_op(call.node.op)->indices;
  const std::vector<int64_t> extents = input.extents(call);
  for (int64_t i = 0; i < indices.num_elements() && !extents.empty(); ++i) {
    const int64_t index = indices.get_int(i);
    const int64_t extent = extents[static_cast<size_t>(i) % extents.size()];
    if (index < (input.from_end ? -extent : 0) || index >= extent)
      return IndexOutside{index, extent};
  }
  return std::nullopt;
}

std::vector<int64_t> extent_of_axis(const OpCall& call) {
  return {call.shape(0)[*call.axis("axis", 0, call.rank())]};
}

const GraphOp* find_graph_op(std::string_view name) {
  const std::span<const GraphOp> ops = graph_ops();
  const auto it = std::lower_bound(
      ops.begin(), ops.end(), name, [](const GraphOp& op, auto key) { return op.name < key; });
  return it != ops.end() && it->name == name ? &*it : nullptr;
}

bool is_own_operator(std::string_view name) {
  const GraphOp* known = find_graph_op(name);
  return name.starts_with("pruner::") || (known != nullptr && known->is(kOwn));
}

bool is_of_onnx(std::string_view name) {
  const GraphOp* known = find_graph_op(name);
  return !is_own_operator(name) && (known == nullptr || !known->is(kOfTorch));
}

bool is_alias(std::string_view op) {
  const GraphOp* known = find_graph_op(op);
  return known != nullptr && known->fusion == Fusion::kAlias;
}

std::vector<std::pair<std::string_view, char>> listed(std::string_view list) {
  std::vector<std::pair<std::string_view, char>> found;
  for (size_t at = 0; at < list.size();) {
    const size_t colon = list.find(':', at);
    found.emplace_back(list.substr(at, colon - at), list[colon + 1]);
    at = colon + 3;  // a colon, one character, a blank
  }
  return found;
}

// The inputs of the graph that a value is computed of. A shape is not: it is known.
static std::vector<ValueId> sources(const Graph& graph, ValueId id) {
  std::vector<bool> needed(graph.values.size(), false);
  needed[id.value] = true;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool reads = std::ranges::any_of(
        node->outputs, [&](ValueId out) { return needed[out.value] && !graph[out].constant; });
    if (!reads) continue;
    for (const ValueId input : node->inputs) {
      if (input.valid()) needed[input.value] = true;
    }
  }
  std::vector<ValueId> inputs;
  std::ranges::copy_if(
      graph.inputs, std::back_inserter(inputs), [&](ValueId in) { return needed[in.value]; });
  return inputs;
}

Error computed_at_run_time(const Graph& graph, ValueId id, std::string_view what) {
  const std::vector<ValueId> inputs = sources(graph, id);
  std::string names;
  for (const ValueId input : inputs)
    names += (names.empty() ? "\"" : ", \"") + graph[input].name + "\"";
  const std::string sentence = std::string(what) + " is computed at run time";
  if (inputs.empty()) return Error(sentence, "; it has to be a constant");
  const bool one = inputs.size() == 1;
  return Error(sentence,
               one ? " from the input " : " from the inputs ",
               names,
               "; it has to be a constant: --constant ",
               one ? graph[inputs[0]].name : "NAME",
               one ? "=VALUE gives the input one" : "=VALUE gives an input one");
}

// Attributes that no row names and that change nothing of what we compute: how a network is
// trained, the precision of intermediate values where ours is the greater, memory, types and modes
// that we lack. A row without an operator means all.
struct HarmlessAttributes {
  std::string_view op, names;
};
static constexpr HarmlessAttributes kHarmless[] = {
    {"", "consumed_inputs"},
    {"BatchNormalization", "is_test momentum"},
    {"Cast", "round_mode saturate"},
    {"Dropout", "is_test ratio seed"},
    {"Gemm", "broadcast"},
    {"LayerNormalization", "stash_type"},
    {"RMSNormalization", "stash_type"},
    {"Range", "stash_type"},
    {"Resize", "cubic_coeff_a exclude_outside extrapolation_value"},
};

static bool is_harmless(std::string_view op, std::string_view attribute) {
  for (const HarmlessAttributes& row : kHarmless) {
    if (!row.op.empty() && row.op != op) continue;
    const std::string padded = " " + std::string(row.names) + " ";
    if (padded.find(" " + std::string(attribute) + " ") != std::string::npos) return true;
  }
  return false;
}

// An error if an attribute's number is larger than any shape has use for: shapes' arithmetic on two
// of them would overflow. Some are values, or mean the end by the largest number.
static Result<Unit> check_numbers(const std::string& name, const Attribute& value) {
  constexpr int64_t kMost = int64_t{1} << 31;
  constexpr std::string_view kOfAnySize[] = {"end", "ignore_index", "pool_int64s", "start"};
  if (std::ranges::find(kOfAnySize, name) != std::end(kOfAnySize)) return Unit{};
  std::span<const int64_t> numbers;
  if (const auto* number = std::get_if<int64_t>(&value)) numbers = {number, 1};
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) numbers = *list;
  for (const int64_t number : numbers) {
    if (number < -kMost || number > kMost)
      return Error(
          "attribute \"", name, "\" has the number ", number, ", expected ", -kMost, " to ", kMost);
  }
  return Unit{};
}

Result<Unit> check_call(Node& node,
                        std::string_view attributes,
                        size_t min_inputs,
                        size_t max_inputs) {
  static constexpr std::string_view kKinds = "ifsIFtS";  // in the order of Attribute's alternatives
  const auto known = listed(attributes);
  std::erase_if(node.attributes, [&](const auto& attribute) {
    const auto named =
        std::ranges::find(known, attribute.first, [](const auto& of) { return of.first; });
    return named == known.end() && is_harmless(node.op, attribute.first);
  });
  for (const auto& [name, value] : node.attributes) {
    const auto row = std::ranges::find(known, name, [](const auto& of) { return of.first; });
    if (row == known.end()) return Error("attribute \"", name, "\" is not supported");
    if (kKinds[value.index()] != row->second)
      return Error("attribute \"", name, "\" has a value of the wrong type");
    TRY(check_numbers(name, value));
  }
  // Optional inputs that are left out at the end count as none.
  while (!node.inputs.empty() && !node.inputs.back().valid()) node.inputs.pop_back();
  const size_t n = node.inputs.size();
  if (n < min_inputs || n > max_inputs) {
    return Error(node.op, " takes ", min_inputs, " to ", max_inputs, " inputs, found ", n);
  }
  for (size_t i = 0; i < min_inputs; ++i) {
    if (!node.inputs[i].valid()) return Error(node.op, " needs its input ", i);
  }
  return Unit{};
}

Result<Unit> check_index_type(const OpCall& call, size_t i, const char* what) {
  const DType index = call.input(i).dtype;
  if (index == DType::kInt64 || index == DType::kInt32) return Unit{};
  return Error(what, " are ", dtype_name(index), ", expected int64 or int32");
}

Result<int64_t> normal_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    return Error("axis ", axis, " is not one of the input's ", rank, " dimensions");
  }
  return axis < 0 ? axis + rank : axis;
}

Result<std::vector<int64_t>> normal_axes(std::vector<int64_t> axes, int64_t rank) {
  for (int64_t& axis : axes) {
    TRY_ASSIGN(axis, normal_axis(axis, rank));
  }
  std::sort(axes.begin(), axes.end());
  const auto twice = std::adjacent_find(axes.begin(), axes.end());
  if (twice != axes.end()) return Error("axis ", *twice, " is given twice");
  return axes;
}

// Aligned at the last dimensions, an extent of 1 takes the other's.
Result<std::vector<int64_t>> broadcast_shapes(std::span<const int64_t> a,
                                              std::span<const int64_t> b) {
  if (a.size() < b.size()) std::swap(a, b);
  std::vector<int64_t> shape(a.begin(), a.end());
  const size_t offset = a.size() - b.size();
  for (size_t d = 0; d < b.size(); ++d) {
    int64_t& extent = shape[offset + d];
    if (extent == 1) {
      extent = b[d];
    } else if (b[d] != 1 && b[d] != extent) {
      return Error("shapes ", print_shape(a), " and ", print_shape(b), " do not broadcast");
    }
  }
  return shape;
}

int64_t element_count(std::span<const int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

Expr immediate_of(const Tensor& constant, int64_t i) {
  return is_float(constant.dtype()) ? float_imm(constant.get(i), constant.dtype())
                                    : int_imm(constant.get_int(i), constant.dtype());
}

std::vector<int64_t> channels_last_order(int64_t rank) {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  return order;
}

std::vector<int64_t> channels_first_order(int64_t rank) {
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + 1, order.end() - 1, order.end());
  return order;
}

}  // namespace pruner
