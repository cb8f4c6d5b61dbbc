// Finds the values that depend on what the data find. The network is imported at several extents; a
// value that differs depends on the symbols whose extents differ.
#include <algorithm>
#include <cstring>

#include "graph/evaluate.h"
#include "graph/found_values.h"
#include "graph/partition_range.h"
#include "graph/pipeline/varying_network.h"

namespace pruner {
namespace {

bool same_bytes(const std::optional<Tensor>& a, const std::optional<Tensor>& b) {
  if (a.has_value() != b.has_value()) return false;
  if (!a || a->data() == b->data()) return true;
  return a->dtype() == b->dtype() && a->shape() == b->shape() &&
         std::memcmp(a->data(), b->data(), static_cast<size_t>(a->bytes())) == 0;
}

int64_t least_of(const Symbol& symbol) { return std::max<int64_t>(symbol.min, 1); }

/// Returns a hash of each value's shape, and of its elements if the value is a small constant.
std::vector<uint64_t> fingerprints(const Graph& at) {
  constexpr int64_t kSmall = 64;
  std::vector<uint64_t> prints;
  for (const Value& value : at.values) {
    std::string text = print_shape(value.shape);
    if (value.constant && value.constant->num_elements() <= kSmall)
      text.append(reinterpret_cast<const char*>(value.constant->data()),
                  static_cast<size_t>(value.constant->bytes()));
    prints.push_back(std::hash<std::string>()(text));
  }
  return prints;
}

/// Whether an operator of numbers that grow with an extent gives such numbers, so that a few
/// extents tell whether its result depends on that one. Whether two numbers are equal, or what a
/// division leaves, may be the same at these, and other at another.
bool is_smooth(const Node& node) {
  constexpr std::string_view kSmooth[] = {
      "Add",   "Cast",    "Concat", "ConstantOfShape", "Expand",     "Gather",  "Identity", "Max",
      "Min",   "Mul",     "Neg",    "Range",           "ReduceProd", "Reshape", "Shape",    "Size",
      "Slice", "Squeeze", "Sub",    "Transpose",       "Unsqueeze"};
  return std::ranges::find(kSmooth, node.op) != std::end(kSmooth);
}

/// How many of the first elements of a value along axis 0 are read at most; nullopt: all.
std::optional<int64_t> read_of(const Graph& graph, ValueId id) {
  if (std::ranges::find(graph.outputs, id) != graph.outputs.end()) return std::nullopt;
  int64_t most = 0;
  for (const Node& node : graph.nodes) {
    if (std::ranges::find(node.inputs, id) == node.inputs.end()) continue;
    const OpCall call{graph, node};
    const auto is = [&](size_t i, int64_t value) { return call.scalar(i) == value; };
    std::optional<int64_t> read;
    if (node.op == "Slice" && is(1, 0) && call.scalar(2) > 0 && (!call.has(3) || is(3, 0)) &&
        (!call.has(4) || is(4, 1))) {
      read = static_cast<int64_t>(*call.scalar(2));
    } else if (node.inputs[0] == id && call.output().shape[0] == graph[id].shape[0] &&
               ((node.op == "Gather" && call.integer("axis", 0) == 1) || node.op == "Identity" ||
                node.op == "Squeeze" || node.op == "Cast")) {
      read = read_of(graph, node.outputs[0]);
    }
    if (!read) return std::nullopt;
    most = std::max(most, *read);
  }
  return most;
}

class DependenceFinder {
 public:
  DependenceFinder(const ImportStage& import, Pipeline& pipeline)
      : import_(import), pipeline_(pipeline) {}

  Result<std::optional<VaryingNetwork>> run() {
    do {
      TRY(import_base());
      if (pipeline_.symbols.empty() && std::ranges::none_of(base().nodes, is_loop_node))
        return std::optional<VaryingNetwork>();
      if (add_limits()) TRY(import_base());
      // A Concat that joins parts of several symbols has a symbol of its own.
      while (true) {
        TRY(compare_extents());
        if (!add_joins()) break;
        TRY(import_base());
      }
    } while (give_trips_symbols());
    network_.index();
    TRY(check_conditions());
    return std::optional(std::move(network_));
  }

 private:
  const Graph& base() const { return network_.graph; }

  Result<Unit> import_base() {
    Graph& graph = network_.graph;
    do {
      auto found = greatest_extents(pipeline_);
      found->all_known = false;
      found->extents.clear();
      TRY_ASSIGN(graph, import_(found, nullptr));
      pipeline_.expanded.insert(graph.expanded.begin(), graph.expanded.end());
    } while (!graph.expanded.empty());
    pipeline_.symbols.clear();
    for (const Node& node : graph.nodes) {
      if (!VaryingNetwork::is_found(node)) continue;
      const OpCall call{graph, node};
      const std::string name = call.text("symbol", "");
      if (std::ranges::find(pipeline_.symbols, name, &Symbol::name) != pipeline_.symbols.end())
        continue;
      const int64_t room = call.output().shape[static_cast<size_t>(call.integer("axis", 0))];
      if (room > kMostSymbolExtent)
        return Error("\"", name, "\" may be ", room, " long, more than ", kMostSymbolExtent);
      pipeline_.symbols.push_back({name, call.integer("least", 0), room, {}, true});
    }
    return Unit{};
  }

  /// Boxes of one class of one image that nobody reads need not be found: the loop over those that
  /// are is the square of their number. Returns whether there is a limit.
  bool add_limits() {
    for (const Node& node : base().nodes) {
      if (node.op != kFound) continue;
      const auto finder = std::ranges::find_if(base().nodes, [&](const Node& other) {
        return other.op == "NonMaxSuppression" && other.outputs[0] == node.inputs[0];
      });
      if (finder == base().nodes.end()) continue;
      const std::vector<int64_t>& scores = base()[finder->inputs[1]].shape;
      const std::optional<int64_t> read = read_of(base(), node.outputs[0]);
      if (scores[0] != 1 || scores[1] != 1 || read.value_or(0) == 0) continue;
      pipeline_.limits[OpCall{base(), node}.text("symbol", "")] = *read;
    }
    return !pipeline_.limits.empty();
  }

  /// Notes the symbols of each value: a value that differs at another extent of a symbol depends on
  /// the symbol.
  Result<Unit> compare_extents() {
    std::vector<Symbols>& depends = network_.depends;
    depends.assign(base().values.size(), {});
    network_.uneven_stacks.clear();
    network_.shape_varies.clear();
    base_prints_ = fingerprints(base());
    single_.assign(pipeline_.symbols.size(), base_prints_);
    part_extents_.clear();
    note_part_extents(base());
    pipeline_.branches = base().branches;
    for (size_t s = 0; s < pipeline_.symbols.size(); ++s) {
      const Symbol& symbol = pipeline_.symbols[s];
      for (const int64_t extent : {least_of(symbol), symbol.max / 2 + 1}) {
        if (extent < symbol.min || extent >= symbol.max) continue;
        TRY_ASSIGN(const Graph at, import_where(s, extent));
        if (at.values.size() != base().values.size() || at.nodes.size() != base().nodes.size())
          return another_network(s, extent);
        note_part_extents(at);
        note_stacks(at, s, extent);
        if (extent == least_of(symbol)) single_[s] = fingerprints(at);
        for (size_t v = 0; v < depends.size(); ++v) {
          const Value &a = base().values[v], &b = at.values[v];
          if (a.shape != b.shape || !same_bytes(a.constant, b.constant)) depends[v].insert(s);
          if (a.shape != b.shape) network_.shape_varies.insert(ValueId{static_cast<int32_t>(v)});
        }
      }
    }
    TRY(compare_all_small());
    note_jumps();
    const std::vector<Symbols> at_others = depends;
    for (size_t s = 0; s < pipeline_.symbols.size(); ++s) {
      if (pipeline_.symbols[s].min > 0) continue;
      TRY_ASSIGN(const Graph at, import_where(s, 0));
      compare_by_name(at, s, at_others);
    }
    return Unit{};
  }

  /// Compares the network where all extents are small: min(a + b, 4), say, is 4 as long as one of
  /// two extents a and b is large. A value that is not as its symbols say depends on all
  /// symbols of its inputs.
  Result<Unit> compare_all_small() {
    const auto found = greatest_extents(pipeline_);
    for (const Symbol& symbol : pipeline_.symbols) found->extents[symbol.name] = least_of(symbol);
    const Result<Graph> at = import_(found, nullptr);
    // Not all extents need to be possible at once.
    if (!at.ok() || at->values.size() != base().values.size() ||
        at->nodes.size() != base().nodes.size())
      return Unit{};
    const std::vector<uint64_t> all_small = fingerprints(*at);
    for (const Node& node : base().nodes) {
      for (const ValueId id : node.outputs) {
        Symbols& own = network_.depends[id.value];
        const std::vector<uint64_t>& expected = own.empty() ? base_prints_ : single_[*own.begin()];
        if (own.size() > 1 || all_small[id.value] == expected[id.value] ||
            VaryingNetwork::is_found(node))
          continue;
        if (at->values[id.value].shape != base()[id].shape) network_.shape_varies.insert(id);
        for (const ValueId input : node.inputs) add_symbols_of(input, own);
      }
    }
    return Unit{};
  }

  void add_symbols_of(ValueId id, Symbols& symbols) const {
    if (id.valid()) symbols.insert(network_.depends_on(id).begin(), network_.depends_on(id).end());
  }

  /// A constant that may jump at an extent that was not looked at depends on what its inputs depend
  /// on, and so does what is made of it: its shape may follow from the constant.
  void note_jumps() {
    std::vector<Symbols> jumps(base().values.size());
    for (const Node& node : base().nodes) {
      if (is_of_pipeline(node)) continue;
      Symbols all;
      for (const ValueId id : node.inputs) {
        if (!id.valid() || !network_.is_constant(id)) continue;
        all.insert(jumps[id.value].begin(), jumps[id.value].end());
        if (!is_smooth(node)) add_symbols_of(id, all);
      }
      for (const ValueId id : node.outputs) {
        Symbols& own = network_.depends[id.value];
        const bool known = network_.is_constant(id);
        for (const size_t symbol : all) {
          const bool jumps_here = std::ranges::any_of(node.inputs, [&](ValueId input) {
            return input.valid() && jumps[input.value].contains(symbol);
          });
          if (!own.contains(symbol) && (known || jumps_here)) jumps[id.value].insert(symbol);
        }
        own.insert(jumps[id.value].begin(), jumps[id.value].end());
      }
    }
  }

  Error another_network(size_t s, int64_t extent) const {
    return Error("where the data find ",
                 extent,
                 " of \"",
                 pipeline_.symbols[s].name,
                 "\" the network is another than where they find ",
                 pipeline_.symbols[s].max);
  }

  /// The network where one symbol has another extent.
  Result<Graph> import_where(size_t s, int64_t extent) const {
    const auto found = greatest_extents(pipeline_);
    found->extents[pipeline_.symbols[s].name] = extent;
    Result<Graph> at = import_(found, nullptr);
    if (!at.ok())
      return Error("where ", pipeline_.symbols[s].name, " is ", extent, ": ", at.error().message());
    if (at->branches != base().branches || !at->expanded.empty()) return another_network(s, extent);
    return at;
  }

  /// Adds what has another shape where symbol `s` is 0: the first row of what is found, say, is one
  /// row at all other extents. The network may have other nodes there, so that values are found by
  /// their names. Where `s` is 0, others may be 0 because of it: nothing is found in nothing. A
  /// value that depends on one of these, by `at_others`, is 0 because of that one, and is left out.
  void compare_by_name(const Graph& at, size_t s, const std::vector<Symbols>& at_others) {
    Symbols nothing;
    for (const Node& node : at.nodes)
      if (node.op == kFound && element_count(at[node.outputs[0]].shape) == 0)
        nothing.insert(symbol_of(pipeline_, node));
    nothing.erase(s);
    std::map<std::string, std::vector<const Value*>> by_name;
    for (const Value& value : at.values) by_name[value.name].push_back(&value);
    for (size_t v = 0; v < network_.depends.size(); ++v) {
      const Value& value = base().values[v];
      const auto other = by_name.find(value.name);
      if (other == by_name.end() || other->second.size() > 1) continue;
      if (std::ranges::any_of(at_others[v], [&](size_t t) { return nothing.contains(t); }))
        continue;
      const Value& none = *other->second[0];
      const bool known = value.constant && none.constant;
      if (none.shape != value.shape || (known && !same_bytes(value.constant, none.constant)))
        network_.depends[v].insert(s);
    }
  }

  /// Each round of a loop makes its LoopStack longer by so many rows.
  int64_t length_of_round(const Node& stack) const {
    const std::vector<int64_t>& part = base()[stack.inputs[1]].shape;
    return part.size() == base()[stack.outputs[0]].shape.size() ? part[0] : 1;
  }

  /// Notes what a loop makes where it does not just become longer by as many rounds as symbol `s`
  /// has more.
  void note_stacks(const Graph& at, size_t s, int64_t extent) {
    for (size_t n = 0; n < at.nodes.size(); ++n) {
      if (at.nodes[n].op != kLoopStack) continue;
      std::vector<int64_t> shape = at[at.nodes[n].outputs[0]].shape;
      const std::vector<int64_t>& greatest = base()[base().nodes[n].outputs[0]].shape;
      if (shape == greatest) continue;
      shape[0] += length_of_round(base().nodes[n]) * (pipeline_.symbols[s].max - extent);
      if (shape != greatest) network_.uneven_stacks.insert(n);
    }
  }

  /// How long the parts of each Concat are, at all the extents that are looked at.
  void note_part_extents(const Graph& at) {
    for (size_t n = 0; n < at.nodes.size(); ++n) {
      if (at.nodes[n].op != "Concat") continue;
      const OpCall call{at, at.nodes[n]};
      const auto axis = static_cast<size_t>(*call.axis("axis", 0, call.rank()));
      for (size_t i = 0; i < call.num_inputs(); ++i)
        part_extents_[n].push_back(call.shape(i)[axis]);
    }
  }

  /// Returns whether there are more joins than before.
  bool add_joins() {
    std::map<std::vector<int64_t>, std::string> known;  // symbols, by the extents of their parts
    bool added = false;
    for (size_t n = 0; n < base().nodes.size(); ++n) {
      const Node& node = base().nodes[n];
      if (node.op != "Concat" || base()[node.outputs[0]].constant) continue;
      Symbols all;
      for (const ValueId id : node.inputs) add_symbols_of(id, all);
      if (all.size() < 2) continue;
      std::string name = base()[node.outputs[0]].name;
      const std::string suffix = "/room";
      if (name.ends_with(suffix) &&
          pipeline_.joined.contains(name.substr(0, name.size() - suffix.size())))
        continue;
      pipeline_.joined[name] = known.try_emplace(part_extents_.at(n), name).first->second;
      added = true;
    }
    return added;
  }

  /// A trip count that is no extent, but a sum of two, say, becomes one. Returns whether there is
  /// such a one.
  bool give_trips_symbols() {
    bool given = false;
    for (size_t n = 0; n < base().nodes.size(); ++n) {
      if (base().nodes[n].op != kLoopStack || network_.grows_evenly(n)) continue;
      // The loop is called after its first output.
      std::string name = loop_name(base().nodes[n]);
      name.pop_back();
      const auto loop = pipeline_.expanded.find(name);
      if (loop == pipeline_.expanded.end() || loop->second.own_trips) continue;
      loop->second.own_trips = given = true;
    }
    return given;
  }

  /// An If whose condition follows from extents takes one branch at all of them, or is refused.
  /// Whether there is anything at all shows at the extents that were looked at; any other condition
  /// may hold at one extent alone, so that all are looked at.
  Result<Unit> check_conditions() const {
    constexpr int64_t kMostExtents = 256;
    for (const auto& [name, condition] : base().conditions) {
      if (asks_for_nothing(condition)) continue;
      for (const size_t s : network_.depends_on(condition)) {
        const Symbol& symbol = pipeline_.symbols[s];
        if (symbol.max > kMostExtents)
          return Error("If \"",
                       name,
                       "\": its condition compares what depends on \"",
                       symbol.name,
                       "\", which the data decide, with another number than 0");
        for (int64_t extent = symbol.min; extent < symbol.max; ++extent)
          TRY(import_where(s, extent));
      }
    }
    return Unit{};
  }

  /// Whether a truth value says whether there are elements, or follows from such ones.
  bool asks_for_nothing(ValueId id) const {
    constexpr std::string_view kComparisons[] = {"Equal", "Greater", "Less"};
    constexpr std::string_view kOfTruths[] = {
        "And", "Cast", "Gather", "Identity", "Not", "Or", "Reshape", "Squeeze", "Unsqueeze"};
    if (!id.valid() || network_.depends_on(id).empty()) return true;
    const Node* node = network_.maker_of(id);
    if (node == nullptr || !network_.is_constant(id)) return false;
    const auto one_of = [&](const auto& ops) {
      return std::ranges::find(ops, node->op) != std::end(ops);
    };
    if (one_of(kOfTruths)) {
      return base()[id].dtype == DType::kBool &&
             std::ranges::all_of(node->inputs, [&](ValueId i) { return asks_for_nothing(i); });
    }
    if (!one_of(kComparisons)) return false;
    const ValueId x = node->inputs[0], y = node->inputs[1];
    return (is_zero(x) && is_size(y)) || (is_size(x) && is_zero(y));
  }

  bool is_zero(ValueId id) const {
    const std::optional<Tensor>& constant = base()[id].constant;
    return network_.depends_on(id).empty() && constant && constant->num_elements() == 1 &&
           constant->get(0) == 0;
  }

  /// Whether an integer is made of extents so that it is 0 where one of them is, and nowhere else.
  bool is_size(ValueId id) const {
    constexpr std::string_view kOfSizes[] = {"Cast",
                                             "Concat",
                                             "Gather",
                                             "Identity",
                                             "Mul",
                                             "ReduceProd",
                                             "Reshape",
                                             "Slice",
                                             "Squeeze",
                                             "Unsqueeze"};
    const Node* node = id.valid() ? network_.maker_of(id) : nullptr;
    if (node == nullptr) return id.valid() && network_.is_constant(id);
    if (asks_shape(*node)) return true;
    return std::ranges::find(kOfSizes, node->op) != std::end(kOfSizes) &&
           std::ranges::all_of(node->inputs, [&](ValueId i) { return is_size(i); });
  }

  const ImportStage& import_;
  Pipeline& pipeline_;
  VaryingNetwork network_;
  std::map<size_t, std::vector<int64_t>> part_extents_;  // extents of the parts of each Concat
  // The fingerprints() of the values: at the greatest extents, and, for each symbol, where that
  // symbol alone is small.
  std::vector<uint64_t> base_prints_;
  std::vector<std::vector<uint64_t>> single_;
};

}  // namespace

Result<std::optional<VaryingNetwork>> find_dependences(const ImportStage& import,
                                                       Pipeline& pipeline) {
  return DependenceFinder(import, pipeline).run();
}

}  // namespace pruner
