#include "graph/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ranges>

#include "graph/evaluate.h"
#include "graph/found_values.h"
#include "graph/import_cache.h"
#include "graph/partition_range.h"
#include "support/check.h"

namespace pruner {
namespace {

using Symbols = std::set<size_t>;

bool same_bytes(const std::optional<Tensor>& a, const std::optional<Tensor>& b) {
  if (a.has_value() != b.has_value()) return false;
  if (!a || a->data() == b->data()) return true;
  return a->dtype() == b->dtype() && a->shape() == b->shape() &&
         std::memcmp(a->data(), b->data(), static_cast<size_t>(a->bytes())) == 0;
}

/// A network at all the extents that there is room for, and which symbols its values depend on.
class Cutter {
 public:
  explicit Cutter(const ImportStage& import) : import_(import) {}

  Result<std::optional<Pipeline>> run() {
    do {
      TRY(import_base());
      if (pipeline_.symbols.empty() && std::ranges::none_of(base_.nodes, is_loop_node))
        return std::optional<Pipeline>();
      if (add_limits()) TRY(import_base());
      // What joins parts of several symbols has a symbol of its own.
      while (true) {
        TRY(find_dependences());
        if (!add_joins()) break;
        TRY(import_base());
      }
      index();
      TRY(find_loops());
    } while (give_trips_symbols());
    TRY(check_stacks());
    TRY(place_nodes());
    TRY(make_stages());
    TRY(make_loops());
    return std::optional(std::move(pipeline_));
  }

 private:
  /// How many of the first elements of a value along axis 0 are read at most; nullopt: all.
  std::optional<int64_t> read_of(ValueId id) const {
    if (std::ranges::find(base_.outputs, id) != base_.outputs.end()) return std::nullopt;
    int64_t most = 0;
    for (const Node& node : base_.nodes) {
      if (std::ranges::find(node.inputs, id) == node.inputs.end()) continue;
      const OpCall call{base_, node};
      const std::vector<int64_t>& shape = base_[id].shape;
      const auto is = [&](size_t i, int64_t value) { return call.scalar(i) == value; };
      std::optional<int64_t> read;
      if (node.op == "Slice" && is(1, 0) && call.scalar(2) > 0 && (!call.has(3) || is(3, 0)) &&
          (!call.has(4) || is(4, 1))) {
        read = static_cast<int64_t>(*call.scalar(2));
      } else if (node.inputs[0] == id && call.output().shape[0] == shape[0] &&
                 ((node.op == "Gather" && call.integer("axis", 0) == 1) || node.op == "Identity" ||
                  node.op == "Squeeze" || node.op == "Cast")) {
        read = read_of(node.outputs[0]);
      }
      if (!read) return std::nullopt;
      most = std::max(most, *read);
    }
    return most;
  }

  /// Boxes of one class of one image that nobody reads need not be found: the loop over those that
  /// are is the square of their number. Returns whether there is a limit.
  bool add_limits() {
    for (const Node& node : base_.nodes) {
      if (node.op != kFound) continue;
      const auto finder = std::ranges::find_if(base_.nodes, [&](const Node& other) {
        return other.op == "NonMaxSuppression" && other.outputs[0] == node.inputs[0];
      });
      if (finder == base_.nodes.end()) continue;
      const std::vector<int64_t>& scores = base_[finder->inputs[1]].shape;
      const std::optional<int64_t> read = read_of(node.outputs[0]);
      if (scores[0] != 1 || scores[1] != 1 || read.value_or(0) == 0) continue;
      pipeline_.limits[OpCall{base_, node}.text("symbol", "")] = *read;
    }
    return !pipeline_.limits.empty();
  }

  Result<Unit> import_base() {
    do {
      auto found = greatest_extents(pipeline_);
      found->all_known = false;
      found->extents.clear();
      TRY_ASSIGN(base_, import_(found, nullptr));
      pipeline_.expanded.insert(base_.expanded.begin(), base_.expanded.end());
    } while (!base_.expanded.empty());
    pipeline_.symbols.clear();
    for (const Node& node : base_.nodes) {
      if (!is_found(node)) continue;
      const OpCall call{base_, node};
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

  /// What differs where one symbol has another extent depends on it.
  Result<Unit> find_dependences() {
    depends_.assign(base_.values.size(), {});
    stack_rests_.clear();
    shape_varies_.clear();
    base_prints_ = fingerprints(base_);
    single_.assign(pipeline_.symbols.size(), base_prints_);
    part_extents_.clear();
    note_part_extents(base_);
    pipeline_.branches = base_.branches;
    for (size_t s = 0; s < pipeline_.symbols.size(); ++s) {
      const Symbol& symbol = pipeline_.symbols[s];
      for (const int64_t extent : {least_of(symbol), symbol.max / 2 + 1}) {
        if (extent < symbol.min || extent >= symbol.max) continue;
        TRY_ASSIGN(const Graph at, import_where(s, extent));
        if (at.values.size() != base_.values.size() || at.nodes.size() != base_.nodes.size())
          return another_network(s, extent);
        note_part_extents(at);
        note_stacks(at, s, extent);
        if (extent == least_of(symbol)) single_[s] = fingerprints(at);
        for (size_t v = 0; v < depends_.size(); ++v) {
          const Value &a = base_.values[v], &b = at.values[v];
          if (a.shape != b.shape || !same_bytes(a.constant, b.constant)) depends_[v].insert(s);
          if (a.shape != b.shape) shape_varies_.insert(ValueId{static_cast<int32_t>(v)});
        }
      }
    }
    TRY(find_joint_dependences());
    note_jumps();
    const std::vector<Symbols> at_others = depends_;
    for (size_t s = 0; s < pipeline_.symbols.size(); ++s) {
      if (pipeline_.symbols[s].min > 0) continue;
      TRY_ASSIGN(const Graph at, import_where(s, 0));
      compare_by_name(at, s, at_others);
    }
    return Unit{};
  }

  static int64_t least_of(const Symbol& symbol) { return std::max<int64_t>(symbol.min, 1); }

  /// By value: what tells its shape, and its elements where it is a small constant.
  static std::vector<uint64_t> fingerprints(const Graph& at) {
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

  /// The lesser of a sum of two extents and 4 is 4 as long as one of the two is large. Where all
  /// extents are small, what is not as the symbols say that it depends on depends on all that its
  /// inputs depend on.
  Result<Unit> find_joint_dependences() {
    const auto found = greatest_extents(pipeline_);
    for (const Symbol& symbol : pipeline_.symbols) found->extents[symbol.name] = least_of(symbol);
    const Result<Graph> at = import_(found, nullptr);
    // Not all extents need to be possible at once.
    if (!at.ok() || at->values.size() != base_.values.size() ||
        at->nodes.size() != base_.nodes.size())
      return Unit{};
    const std::vector<uint64_t> joint = fingerprints(*at);
    for (const Node& node : base_.nodes) {
      for (const ValueId id : node.outputs) {
        Symbols& own = depends_[id.value];
        const std::vector<uint64_t>& expected = own.empty() ? base_prints_ : single_[*own.begin()];
        if (own.size() > 1 || joint[id.value] == expected[id.value] || is_found(node)) continue;
        if (at->values[id.value].shape != base_[id].shape) shape_varies_.insert(id);
        for (const ValueId input : node.inputs)
          if (input.valid()) own.insert(depends(input).begin(), depends(input).end());
      }
    }
    return Unit{};
  }

  /// Whether an operator of numbers that grow with an extent gives such numbers, so that a few
  /// extents tell whether its result depends on that one. Whether two numbers are equal, or what a
  /// division leaves, may be the same at these, and other at another.
  static bool is_smooth(const Node& node) {
    constexpr std::string_view kSmooth[] = {"Add",        "Cast",    "Concat",   "ConstantOfShape",
                                            "Expand",     "Gather",  "Identity", "Max",
                                            "Min",        "Mul",     "Neg",      "Range",
                                            "ReduceProd", "Reshape", "Shape",    "Size",
                                            "Slice",      "Squeeze", "Sub",      "Transpose",
                                            "Unsqueeze"};
    return std::ranges::find(kSmooth, node.op) != std::end(kSmooth);
  }

  /// A constant that may jump at an extent that was not looked at depends on what its inputs depend
  /// on, and so does what is made of it: its shape may follow from the constant.
  void note_jumps() {
    std::vector<Symbols> jumps(base_.values.size());
    for (const Node& node : base_.nodes) {
      if (is_of_pipeline(node)) continue;
      Symbols all;
      for (const ValueId id : node.inputs) {
        if (!id.valid() || !is_constant(id)) continue;
        all.insert(jumps[id.value].begin(), jumps[id.value].end());
        if (!is_smooth(node)) all.insert(depends(id).begin(), depends(id).end());
      }
      for (const ValueId id : node.outputs) {
        Symbols& own = depends_[id.value];
        const bool known = is_constant(id);
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
    if (at->branches != base_.branches || !at->expanded.empty()) return another_network(s, extent);
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
        nothing.insert(symbol_of(node));
    nothing.erase(s);
    std::map<std::string, std::vector<const Value*>> by_name;
    for (const Value& value : at.values) by_name[value.name].push_back(&value);
    for (size_t v = 0; v < depends_.size(); ++v) {
      const Value& value = base_.values[v];
      const auto other = by_name.find(value.name);
      if (other == by_name.end() || other->second.size() > 1) continue;
      if (std::ranges::any_of(at_others[v], [&](size_t t) { return nothing.contains(t); }))
        continue;
      const Value& none = *other->second[0];
      const bool known = value.constant && none.constant;
      if (none.shape != value.shape || (known && !same_bytes(value.constant, none.constant)))
        depends_[v].insert(s);
    }
  }

  /// How much longer what a loop makes is with each round.
  int64_t length_of_round(const Node& stack) const {
    const std::vector<int64_t>& part = base_[stack.inputs[1]].shape;
    return part.size() == base_[stack.outputs[0]].shape.size() ? part[0] : 1;
  }

  /// Notes what a loop makes where it does not just become longer by as many rounds as symbol `s`
  /// has more.
  void note_stacks(const Graph& at, size_t s, int64_t extent) {
    for (size_t n = 0; n < at.nodes.size(); ++n) {
      if (at.nodes[n].op != kLoopStack) continue;
      std::vector<int64_t> shape = at[at.nodes[n].outputs[0]].shape;
      const std::vector<int64_t>& base = base_[base_.nodes[n].outputs[0]].shape;
      if (shape == base) continue;
      shape[0] += length_of_round(base_.nodes[n]) * (pipeline_.symbols[s].max - extent);
      if (shape != base) stack_rests_.insert(n);
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
    for (size_t n = 0; n < base_.nodes.size(); ++n) {
      const Node& node = base_.nodes[n];
      if (node.op != "Concat" || base_[node.outputs[0]].constant) continue;
      Symbols all;
      for (const ValueId id : node.inputs) all.insert(depends(id).begin(), depends(id).end());
      if (all.size() < 2) continue;
      std::string name = base_[node.outputs[0]].name;
      const std::string suffix = "/room";
      if (name.ends_with(suffix) &&
          pipeline_.joined.contains(name.substr(0, name.size() - suffix.size())))
        continue;
      pipeline_.joined[name] = known.try_emplace(part_extents_.at(n), name).first->second;
      added = true;
    }
    return added;
  }

  const Symbols& depends(ValueId id) const { return depends_[id.value]; }
  bool is_constant(ValueId id) const { return !id.valid() || base_[id].constant.has_value(); }

  void index() {
    names_.clear();
    makers_.assign(base_.values.size(), -1);
    for (size_t n = 0; n < base_.nodes.size(); ++n)
      for (const ValueId id : base_.nodes[n].outputs) makers_[id.value] = static_cast<int>(n);
    for (const Value& value : base_.values) ++names_[value.name];
  }

  /// The node that makes a value; null: it is an input or a constant of the file.
  const Node* maker_of(ValueId id) const {
    const int maker = makers_[id.value];
    return maker < 0 ? nullptr : &base_.nodes[static_cast<size_t>(maker)];
  }

  static bool is_found(const Node& node) { return node.op == kFound || node.op == kExtent; }
  bool is_found(ValueId id) const {
    const Node* maker = maker_of(id);
    return maker != nullptr && is_found(*maker);
  }

  /// Which loop a node of graph/ops/loop.cpp is one of.
  size_t loop_of(const Node& node) const {
    return loop_numbers_.at(OpCall{base_, node}.text("loop", ""));
  }
  bool begins_loop(ValueId id) const {
    const Node* maker = maker_of(id);
    return maker != nullptr && maker->op == kLoopBegin;
  }

  bool is_join(const Node& node) const {
    return node.op == "Concat" && rooms_.contains(node.outputs[0]);
  }

  size_t symbol_of(const Node& found) const {
    const std::string& name = std::get<std::string>(found.attributes.at("symbol"));
    return static_cast<size_t>(std::ranges::find(pipeline_.symbols, name, &Symbol::name) -
                               pipeline_.symbols.begin());
  }

  /// By loop: the nodes of graph/ops/loop.cpp around it, and the round between them.
  Result<Unit> find_loops() {
    loop_numbers_.clear();
    loop_ends_.clear();
    loop_of_.assign(base_.nodes.size(), -1);
    std::vector<int> made_in(base_.values.size(), -1);
    for (size_t n = 0; n < base_.nodes.size(); ++n) {
      const Node& node = base_.nodes[n];
      if (is_loop_node(node)) {
        const std::string name = OpCall{base_, node}.text("loop", "");
        const auto [loop, fresh] = loop_numbers_.try_emplace(name, loop_numbers_.size());
        loop_ends_.resize(loop_numbers_.size());
        loop_ends_[loop->second].push_back(n);
        const bool begins = node.op == kLoopBegin;
        for (const ValueId id : node.inputs)
          if (id.valid() && made_in[id.value] >= 0 &&
              (begins || made_in[id.value] != static_cast<int>(loop->second)))
            return Error(node_label(base_, node), ": a loop in a loop whose rounds the data say");
        if (begins)
          for (const ValueId id : node.outputs) made_in[id.value] = static_cast<int>(loop->second);
        continue;
      }
      for (const ValueId id : node.inputs) {
        if (!id.valid() || made_in[id.value] < 0) continue;
        if (loop_of_[n] >= 0 && loop_of_[n] != made_in[id.value])
          return Error(node_label(base_, node), ": a loop in a loop whose rounds the data say");
        loop_of_[n] = made_in[id.value];
      }
      // What follows from shapes that are the same in each round is known before them.
      const auto is_known = [&](ValueId id) { return is_constant(id) && depends(id).empty(); };
      if (std::ranges::all_of(node.outputs, is_known)) loop_of_[n] = -1;
      for (const ValueId id : node.outputs) made_in[id.value] = loop_of_[n];
    }
    begin_levels_.assign(loop_numbers_.size(), 0);
    return Unit{};
  }

  /// After a stage, in each round where it is a loop's, or when all rounds have been run.
  struct Ready {
    size_t stage = 0;
    bool behind_loop = false;
    friend auto operator<=>(const Ready&, const Ready&) = default;
  };

  /// A stage: where it stands among the others, and the symbols that its shapes depend on. The
  /// rounds of a loop are where it begins.
  struct Place {
    int position = 0;
    int loop = -1;
    int level = 0;
    Symbols symbols = {};
    friend auto operator<=>(const Place&, const Place&) = default;
  };

  /// Which of the stages computes each node: those that are equally deep and depend on the same.
  Result<Unit> place_nodes() {
    for (const Node& node : base_.nodes)
      if (node.op == kFound) rooms_.insert(node.inputs[0]);
    read_outside_ = {base_.outputs.begin(), base_.outputs.end()};
    for (const Node& node : base_.nodes) {
      const std::vector<ValueId> read = read_between(node);
      read_outside_.insert(read.begin(), read.end());
    }
    // A loop begins behind all that its rounds read.
    std::vector<Place> places = levels();
    for (size_t round = 0; begin_loops_later(places); ++round) {
      if (round > base_.nodes.size()) return Error("a loop reads what is made behind it");
      places = levels();
    }
    std::set<Place> stages;
    // Before loops somebody has to hand on the constants that they begin with.
    if (!loop_ends_.empty() && reads_constants()) stages.insert({-1, -1, 0, {}});
    for (const Place& place : places)
      if (place.level >= 0) stages.insert(place);
    const std::vector<Place> order(stages.begin(), stages.end());
    stage_of_.assign(base_.nodes.size(), -1);
    for (size_t n = 0; n < base_.nodes.size(); ++n) {
      if (places[n].level < 0) continue;
      stage_of_[n] = static_cast<int>(std::ranges::lower_bound(order, places[n]) - order.begin());
    }
    for (const Place& place : order)
      pipeline_.stages.push_back({{place.symbols.begin(), place.symbols.end()}});
    inputs_.resize(order.size());
    outputs_.resize(order.size());
    return Unit{};
  }

  /// Whether a constant that no stage computes is read outside of the stages.
  bool reads_constants() const {
    return std::ranges::any_of(read_outside_,
                               [&](ValueId id) { return is_constant(id) && !is_found(id); });
  }

  /// The values that a node reads that is run between stages.
  std::vector<ValueId> read_between(const Node& node) const {
    if (!is_of_pipeline(node) && !is_join(node)) return {};
    std::vector<ValueId> read;
    for (const ValueId id : node.inputs) {
      if (!id.valid() || (node.op == kFound && is_joined(id))) continue;
      // How long a whole is follows from shapes, and what is true or has no elements is known.
      const bool is_known =
          is_true(id) || has_nothing(id) || (node.op == kLoopStack && id == node.inputs[0]);
      if (!is_loop_node(node) || !is_constant(id) || !is_known) read.push_back(id);
    }
    return read;
  }

  /// By node: its stage; none (level -1) computes it.
  std::vector<Place> levels() {
    // By value: what has to have been run for it to be there, with the symbols of the stage that
    // runs it (null: it is found, joined, a loop's or an input). Of a constant, for the shapes that
    // it is made of.
    using Sources = std::set<std::pair<int, const Symbols*>>;
    std::vector<Sources> sources(base_.values.size());
    std::vector<Place> places(base_.nodes.size(), Place{0, -1, -1});
    std::map<std::string, size_t> finders;  // nodes, by what has room for all
    levels_.assign(base_.values.size(), -1);
    asked_.assign(base_.values.size(), {});
    for (size_t n = 0; n < base_.nodes.size(); ++n) {
      const Node& node = base_.nodes[n];
      Sources before;
      for (const ValueId id : node.inputs)
        if (id.valid()) before.insert(sources[id.value].begin(), sources[id.value].end());
      const auto note = [&](int level, const Symbols* symbols) {
        for (const ValueId id : node.outputs) {
          sources[id.value] = {{level, symbols}};
          levels_[id.value] = level;
        }
      };
      if (is_found(node) || is_join(node) || is_loop_node(node)) {
        int level = 0;
        for (const auto& [other, key] : before) level = std::max(level, other + 1);
        if (is_loop_node(node)) {
          const int begin = begin_levels_[loop_of(node)];
          level = std::max(level, node.op == kLoopBegin ? begin : begin + 1);
        }
        note(level, nullptr);
        continue;
      }
      Symbols key;
      for (const ValueId id : node.outputs) {
        key.insert(depends(id).begin(), depends(id).end());
        note_asked(node, id);
      }
      if (std::ranges::all_of(node.outputs, [&](ValueId id) { return is_constant(id); })) {
        for (const ValueId id : node.outputs) {
          sources[id.value] = before;
          for (const auto& [other, symbols] : before)
            levels_[id.value] = std::max(levels_[id.value], other);
        }
        // What a shape says is computed where somebody else than a stage reads it.
        const auto read = [&](ValueId id) { return read_outside_.contains(id); };
        if (key.empty() || std::ranges::none_of(node.outputs, read)) continue;
      }
      for (const ValueId id : node.inputs) {
        if (!id.valid()) continue;
        key.insert(depends(id).begin(), depends(id).end());
        if (is_constant(id) && !depends(id).empty())
          key.insert(asked_[id.value].begin(), asked_[id.value].end());
      }
      int level = 0;
      for (const auto& [other, others] : before)
        level = std::max(level, other + (others != nullptr && *others != key ? 1 : 0));
      const int loop = loop_of_[n];
      const int position = loop < 0 ? level : begin_levels_[static_cast<size_t>(loop)];
      places[n] = {position, loop, level, std::move(key)};
      // What is found is counted where it is found: the file has one node for both.
      const std::string& name = base_[node.outputs[0]].name;
      const auto finder = finders.find(name.substr(0, name.find("/count")));
      if (finder != finders.end()) places[n] = places[finder->second];
      if (rooms_.contains(node.outputs[0])) finders[name] = n;
      note(places[n].level, &places[n].symbols);
    }
    return places;
  }

  static bool asks_shape(const Node& node) { return node.op == "Shape" || node.op == "Size"; }

  /// A constant that is made of shapes is made anew of these, so that its stage has to know all of
  /// each, not only the extents that it is made of.
  void note_asked(const Node& node, ValueId output) {
    Symbols& all = asked_[output.value];
    for (const ValueId id : node.inputs) {
      if (!id.valid()) continue;
      const Symbols& own = asks_shape(node) ? depends(id) : asked_[id.value];
      if (asks_shape(node) || is_constant(id)) all.insert(own.begin(), own.end());
    }
  }

  /// Returns whether a loop has to begin later than it does.
  bool begin_loops_later(const std::vector<Place>& places) {
    bool later = false;
    const auto reads = [&](size_t loop, const Node& node) {
      for (const ValueId id : node.inputs) {
        if (!id.valid() || is_made_in(id, loop) || (is_constant(id) && depends(id).empty()))
          continue;
        int& begin = begin_levels_[loop];
        if (levels_[id.value] < begin) continue;
        begin = levels_[id.value] + 1;
        later = true;
      }
    };
    for (size_t n = 0; n < places.size(); ++n)
      if (loop_of_[n] >= 0) reads(static_cast<size_t>(loop_of_[n]), base_.nodes[n]);
    for (size_t loop = 0; loop < loop_ends_.size(); ++loop)
      for (const size_t n : loop_ends_[loop]) reads(loop, base_.nodes[n]);
    return later;
  }

  bool is_made_in(ValueId id, size_t loop) const {
    const int maker = makers_[id.value];
    if (maker >= 0 && loop_of_[static_cast<size_t>(maker)] == static_cast<int>(loop)) return true;
    return begins_loop(id) && loop_of(*maker_of(id)) == loop;
  }

  /// A stage is imported by the names of the values that it begins and ends with.
  Result<Unit> check_name(const Value& value) const {
    if (!value.name.empty() && names_.at(value.name) == 1) return Unit{};
    return Error("\"", value.name, "\" is a value that the network cannot be cut at");
  }

  /// The number of a value among the pipeline's tensors.
  Result<size_t> tensor_of(ValueId id) {
    const auto known = tensors_.find(id);
    if (known != tensors_.end()) return known->second;
    const Value& value = base_[id];
    TRY(check_name(value));
    const Symbols& symbols = depends(id);
    pipeline_.tensors.push_back(
        {value.name, value.dtype, value.shape, {symbols.begin(), symbols.end()}});
    return tensors_[id] = pipeline_.tensors.size() - 1;
  }

  /// The stage that computes a value; -1: an input, or what was found or joined.
  int maker_stage(ValueId id) const {
    const int maker = makers_[id.value];
    return maker < 0 ? -1 : stage_of_[static_cast<size_t>(maker)];
  }

  /// Stage `s` reads a value.
  Result<Unit> add_read(size_t s, ValueId id, std::set<ValueId>& seen) {
    if (!id.valid() || !seen.insert(id).second) return Unit{};
    if (is_constant(id)) {
      // What is made of shapes is made anew at others.
      const Node* maker = maker_of(id);
      if (maker == nullptr || is_found(*maker)) return Unit{};
      for (const ValueId input : maker->inputs) {
        if (is_constant(input) || !asks_shape(*maker)) {
          TRY(add_read(s, input, seen));
        } else {
          TRY(add_shape(s, input, seen));
        }
      }
      return Unit{};
    }
    const int from = maker_stage(id);
    if (from == static_cast<int>(s)) return Unit{};
    TRY_ASSIGN(const size_t tensor, tensor_of(id));
    inputs_[s].insert(tensor);
    if (from >= 0) outputs_[static_cast<size_t>(from)].insert(tensor);
    return note_number(s, id);
  }

  /// Stage `s` is given a value whose extent a number says. The file's nodes make the one of the
  /// other, so that the stage is given the number, too, of which it reads nothing.
  Result<Unit> note_number(size_t s, ValueId id) {
    const Node* extent = maker_of(id);
    if (extent == nullptr || extent->op != kExtent) return Unit{};
    const ValueId number = extent->inputs[0];
    return maker_stage(number) == static_cast<int>(s) ? Unit{} : give_shape(s, number);
  }

  /// Stage `s` asks for the shape of a value.
  Result<Unit> add_shape(size_t s, ValueId id, std::set<ValueId>& seen) {
    if (maker_stage(id) == static_cast<int>(s) || seen.contains(id)) return Unit{};
    const std::vector<size_t>& own = pipeline_.stages[s].symbols;
    const Symbols& of = depends(id);
    // Of a shape that depends on symbols the stage does not have it reads extents that do not vary
    // (note_asked() has seen to that), so that the shape at the greatest extents does.
    if (!of.empty() && std::ranges::includes(own, of)) return add_read(s, id, seen);
    TRY(give_shape(s, id));
    return note_number(s, id);
  }

  /// Stage `s` is given the shape of a value, of which it reads no elements.
  Result<Unit> give_shape(size_t s, ValueId id) {
    const Value& value = base_[id];
    TRY(check_name(value));
    pipeline_.stages[s].shapes[value.name] = {value.dtype, value.shape};
    return Unit{};
  }

  Result<Unit> make_stages() {
    for (const ValueId id : base_.inputs) {
      if (is_constant(id)) return Error("input \"", base_[id].name, "\" has no elements");
      TRY_ASSIGN(const size_t tensor, tensor_of(id));
      pipeline_.inputs.push_back(tensor);
      ready_[tensor] = {};
    }
    std::vector<std::set<ValueId>> seen(pipeline_.stages.size());
    for (size_t n = 0; n < base_.nodes.size(); ++n) {
      if (stage_of_[n] < 0) continue;
      const auto s = static_cast<size_t>(stage_of_[n]);
      for (const ValueId id : base_.nodes[n].inputs) TRY(add_read(s, id, seen[s]));
    }
    for (const ValueId id : base_.outputs) {
      TRY_ASSIGN(const size_t tensor, tensor_of(id));
      pipeline_.outputs.push_back(tensor);
      add_output(id, tensor);
    }
    for (const Node& node : base_.nodes) {
      for (const ValueId id : read_between(node)) {
        TRY_ASSIGN(const size_t tensor, tensor_of(id));
        add_output(id, tensor);
      }
    }
    TRY(note_conditions());
    for (size_t s = 0; s < pipeline_.stages.size(); ++s) {
      const auto by_name = [&](size_t tensor) { return pipeline_.tensors[tensor].name; };
      Pipeline::Stage& stage = pipeline_.stages[s];
      stage.inputs = {inputs_[s].begin(), inputs_[s].end()};
      stage.outputs = {outputs_[s].begin(), outputs_[s].end()};
      std::ranges::sort(stage.inputs, {}, by_name);
      std::ranges::sort(stage.outputs, {}, by_name);
      for (const size_t tensor : stage.outputs) ready_[tensor] = {s, false};
      // What a stage reads is given with its elements.
      for (const size_t tensor : stage.inputs) stage.shapes.erase(pipeline_.tensors[tensor].name);
    }
    find_stage_ranges();
    for (size_t n = 0; n < base_.nodes.size(); ++n)
      if (is_found(base_.nodes[n])) TRY(add_found(base_.nodes[n], loop_of_[n]));
    return Unit{};
  }

  /// When a tensor is there.
  Ready ready_after(size_t tensor, ValueId id) const {
    if (const auto known = ready_.find(tensor); known != ready_.end()) return known->second;
    const Node* maker = maker_of(id);
    CHECK(maker != nullptr && is_loop_node(*maker)) << base_[id].name;
    const Pipeline::Loop& loop = pipeline_.loops[loop_of(*maker)];
    return maker->op == kLoopBegin ? Ready{loop.first, false} : Ready{loop.last, true};
  }
  /// What is done then.
  Pipeline::Parts& parts_at(Ready ready) {
    if (!ready.behind_loop) return pipeline_.stages[ready.stage].then;
    return std::ranges::find(pipeline_.loops, ready.stage, &Pipeline::Loop::last)->then;
  }

  /// A stage that has a part of an If, of which both branches are computed, is given the condition.
  Result<Unit> note_conditions() {
    for (size_t v = 0; v < base_.values.size(); ++v) {
      const Value& condition = base_.values[v];
      const ValueId id{static_cast<int32_t>(v)};
      const int from = maker_stage(id);
      if (!condition.name.ends_with(kCondition) || from < 0) continue;
      const std::string prefix =
          condition.name.substr(0, condition.name.size() - kCondition.size()) + "/";
      for (size_t n = 0; n < base_.nodes.size(); ++n) {
        if (stage_of_[n] < 0 || stage_of_[n] == from) continue;
        if (!base_[base_.nodes[n].outputs[0]].name.starts_with(prefix)) continue;
        TRY(give_shape(static_cast<size_t>(stage_of_[n]), id));
      }
    }
    return Unit{};
  }

  bool is_joined(ValueId id) const {
    const Node* maker = maker_of(id);
    return maker != nullptr && is_join(*maker);
  }

  /// A tensor that somebody else than a stage reads.
  void add_output(ValueId id, size_t tensor) {
    const int from = maker_stage(id);
    if (from >= 0) {
      outputs_[static_cast<size_t>(from)].insert(tensor);
    } else if (is_constant(id) && !is_found(id)) {
      // The first stage hands it on.
      outputs_.front().insert(tensor);
    }
  }

  /// The stages of each loop. What they begin with is there before them, what they make when all
  /// rounds have been run.
  void find_stage_ranges() {
    pipeline_.loops.resize(loop_ends_.size());
    for (size_t loop = 0; loop < loop_ends_.size(); ++loop) {
      Pipeline::Loop& made = pipeline_.loops[loop];
      made.first = pipeline_.stages.size();
      for (size_t n = 0; n < base_.nodes.size(); ++n) {
        if (loop_of_[n] != static_cast<int>(loop) || stage_of_[n] < 0) continue;
        made.first = std::min(made.first, static_cast<size_t>(stage_of_[n]));
        made.last = std::max(made.last, static_cast<size_t>(stage_of_[n]));
      }
    }
  }

  bool has_nothing(ValueId id) const {
    return is_constant(id) && element_count(base_[id].shape) == 0;
  }
  bool is_true(ValueId id) const {
    return base_[id].dtype == DType::kBool && pruner::is_true(base_[id].constant);
  }

  /// Whether what the rounds of a loop make together is always as long, or longer by a round for
  /// each one that a symbol has more.
  bool is_as_long_as_symbol(size_t stack) const {
    const Symbols& of = depends(base_.nodes[stack].outputs[0]);
    return of.empty() || (of.size() == 1 && !stack_rests_.contains(stack));
  }

  /// A trip count that is no extent, but a sum of two, say, becomes one. Returns whether there is
  /// such a one.
  bool give_trips_symbols() {
    bool given = false;
    for (const std::vector<size_t>& ends : loop_ends_) {
      for (const size_t n : ends) {
        if (base_.nodes[n].op != kLoopStack || is_as_long_as_symbol(n)) continue;
        // The loop is called after its first output.
        std::string name = OpCall{base_, base_.nodes[n]}.text("loop", "");
        name.pop_back();
        const auto loop = pipeline_.expanded.find(name);
        if (loop == pipeline_.expanded.end() || loop->second.own_trips) continue;
        loop->second.own_trips = given = true;
      }
    }
    return given;
  }

  Result<Unit> check_stacks() const {
    for (const std::vector<size_t>& ends : loop_ends_) {
      for (const size_t n : ends) {
        const Node& node = base_.nodes[n];
        if (node.op == kLoopBegin) continue;
        const bool appends = node.op == kLoopStack && node.inputs.size() > 2;
        const ValueId made = node.op == kLoopStack ? node.inputs[1] : node.outputs[0];
        if (!appends && node.op != kLoopRounds && shape_varies_.contains(made))
          return Error(node_label(base_, node),
                       ": \"",
                       base_[made].name,
                       "\" is of another shape in each round, or with each number of rounds");
        if (node.op == kLoopStack && !is_as_long_as_symbol(n))
          return Error(node_label(base_, node),
                       ": how long \"",
                       base_[node.outputs[0]].name,
                       "\" is is no number of rounds");
      }
    }
    return Unit{};
  }

  /// Tensors of the nodes around each loop.
  Result<Unit> make_loops() {
    for (size_t loop = 0; loop < loop_ends_.size(); ++loop) {
      Pipeline::Loop& made = pipeline_.loops[loop];
      const Node* begin = nullptr;
      for (const size_t n : loop_ends_[loop])
        if (base_.nodes[n].op == kLoopBegin) begin = &base_.nodes[n];
      CHECK(begin != nullptr);
      if (made.first > made.last)
        return Error(node_label(base_, *begin), ": no round of the loop computes anything");
      const auto tensor = [&](ValueId id, std::optional<size_t>& to) -> Result<Unit> {
        if (!id.valid() || is_true(id) || has_nothing(id)) return Unit{};
        TRY_ASSIGN(to, tensor_of(id));
        return Unit{};
      };
      const OpCall call{base_, *begin};
      if (call.has(0)) TRY(tensor(begin->inputs[0], made.trips));
      if (call.has(1)) TRY(tensor(begin->inputs[1], made.condition));
      TRY_ASSIGN(made.round, tensor_of(begin->outputs[0]));
      for (const size_t n : loop_ends_[loop]) {
        const Node& node = base_.nodes[n];
        if (node.op == kLoopRounds) {
          TRY(tensor(node.inputs[0], made.next));
          TRY(tensor(node.outputs[0], made.rounds));
        } else if (node.op == kLoopLast) {
          const auto place =
              std::ranges::find(begin->outputs, node.inputs[0]) - begin->outputs.begin();
          Pipeline::Loop::Carried state;
          TRY_ASSIGN(state.init, tensor_of(begin->inputs[static_cast<size_t>(place) + 1]));
          TRY_ASSIGN(state.state, tensor_of(node.inputs[0]));
          TRY_ASSIGN(state.next, tensor_of(node.inputs[1]));
          TRY_ASSIGN(state.last, tensor_of(node.outputs[0]));
          made.carried.push_back(state);
        } else if (node.op == kLoopStack) {
          Pipeline::Loop::Stack stack;
          if (node.inputs.size() > 2) TRY(tensor(node.inputs[2], stack.init));
          TRY_ASSIGN(stack.part, tensor_of(node.inputs[1]));
          TRY_ASSIGN(stack.whole, tensor_of(node.outputs[0]));
          made.stacks.push_back(stack);
        }
      }
    }
    std::ranges::sort(pipeline_.loops, {}, &Pipeline::Loop::first);
    return Unit{};
  }

  Result<Unit> add_found(const Node& node, int loop) {
    const OpCall call{base_, node};
    const size_t symbol = symbol_of(node);
    if (loop >= 0) {
      std::vector<size_t>& found = pipeline_.loops[static_cast<size_t>(loop)].symbols;
      if (std::ranges::find(found, symbol) == found.end()) found.push_back(symbol);
    }
    const int64_t axis = call.integer("axis", 0);
    TRY_ASSIGN(const size_t part, tensor_of(node.outputs[0]));
    if (is_joined(node.inputs[0])) {
      Pipeline::Join join{{}, part, axis, symbol};
      Ready after;
      for (const ValueId id : maker_of(node.inputs[0])->inputs) {
        TRY_ASSIGN(const size_t tensor, tensor_of(id));
        join.parts.push_back(tensor);
        after = std::max(after, ready_after(tensor, id));
      }
      ready_[part] = after;
      parts_at(after).joins.push_back(std::move(join));
      return Unit{};
    }
    if (node.op == kExtent) {
      TRY_ASSIGN(const size_t number, tensor_of(node.inputs[0]));
      const Pipeline::Found found{{}, part, number, axis, symbol};
      ready_[part] = ready_after(number, node.inputs[0]);
      Pipeline::Parts& parts = begins_loop(node.inputs[0])
                                   ? pipeline_.loops[static_cast<size_t>(loop)].begin
                                   : parts_at(ready_[part]);
      parts.found.push_back(found);
      return Unit{};
    }
    TRY_ASSIGN(const size_t room, tensor_of(node.inputs[0]));
    TRY_ASSIGN(const size_t count, tensor_of(node.inputs[1]));
    const int from = maker_stage(node.inputs[0]);
    if (from >= 0 && maker_stage(node.inputs[1]) != from) {
      // The file's node reads the number, too, as that of a TopK.
      const auto s = static_cast<size_t>(from);
      if (!inputs_[s].contains(count)) TRY(give_shape(s, node.inputs[1]));
    }
    pipeline_.tensors[part].part_of = room;
    const Ready after =
        std::max(ready_after(room, node.inputs[0]), ready_after(count, node.inputs[1]));
    ready_[part] = after;
    parts_at(after).found.push_back({room, part, count, axis, symbol});
    return Unit{};
  }

  const ImportStage& import_;
  Graph base_;
  Pipeline pipeline_;
  std::vector<Symbols> depends_;                         // by value
  std::map<size_t, std::vector<int64_t>> part_extents_;  // by node
  std::vector<int> makers_;                     // by value: the node; -1: an input or a constant
  std::map<std::string, int> names_;            // how many values have each
  std::set<ValueId> rooms_;                     // values of which a part is used
  std::set<ValueId> read_outside_;              // what is joined, and outputs
  std::vector<int> stage_of_;                   // by node; -1: no stage computes it
  std::map<std::string, size_t> loop_numbers_;  // by name
  std::vector<std::vector<size_t>> loop_ends_;  // by loop: the nodes around its rounds
  std::vector<int> loop_of_;                    // by node: in whose rounds it is run; -1: in none
  std::vector<int> begin_levels_;               // by loop
  // By value: of a constant, all symbols that shapes depend on of which it is made.
  std::vector<Symbols> asked_;
  std::vector<int> levels_;  // by value: of the stage behind which it is there
  // What tells values (fingerprints()), by value: at the greatest extents, and by symbol where that
  // one alone is small.
  std::vector<uint64_t> base_prints_;
  std::vector<std::vector<uint64_t>> single_;
  std::set<ValueId> shape_varies_;                  // values of other shapes at other extents
  std::set<size_t> stack_rests_;                    // LoopStacks that do not just grow by a round
  std::vector<std::set<size_t>> inputs_, outputs_;  // by stage: tensors
  std::map<ValueId, size_t> tensors_;
  std::map<size_t, Ready> ready_;  // by tensor
};

}  // namespace

std::shared_ptr<FoundExtents> greatest_extents(const Pipeline& pipeline) {
  auto found = std::make_shared<FoundExtents>();
  found->all_known = true;
  found->joined = pipeline.joined;
  found->limits = pipeline.limits;
  found->expanded = pipeline.expanded;
  for (const Symbol& symbol : pipeline.symbols) found->extents[symbol.name] = symbol.max;
  return found;
}

ImportStage import_from(const std::string& file, NetworkOptions options) {
  options.cache = std::make_shared<ImportCache>();
  return [file, options](const std::shared_ptr<const FoundExtents>& found,
                         const std::shared_ptr<const ImportPart>& part) {
    NetworkOptions of = options;
    of.found = found;
    of.part = part;
    return import_onnx(file, of);
  };
}

Result<std::optional<Pipeline>> cut_into_stages(const ImportStage& import) {
  return Cutter(import).run();
}

}  // namespace pruner
