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

/// What an import takes for all that there is room for.
std::shared_ptr<FoundExtents> greatest_extents(const Pipeline& pipeline) {
  auto found = std::make_shared<FoundExtents>();
  found->all_known = true;
  found->joined = pipeline.joined;
  found->limits = pipeline.limits;
  for (const Symbol& symbol : pipeline.symbols) found->extents[symbol.name] = symbol.max;
  return found;
}

/// A network at all the extents that there is room for, and which symbols its values depend on.
class Cutter {
 public:
  explicit Cutter(const ImportStage& import) : import_(import) {}

  Result<std::optional<Pipeline>> run() {
    TRY(import_base());
    if (pipeline_.symbols.empty()) return std::optional<Pipeline>();
    if (add_limits()) TRY(import_base());
    // What joins parts of several symbols has a symbol of its own.
    while (true) {
      TRY(find_dependences());
      if (!add_joins()) break;
      TRY(import_base());
    }
    index();
    place_nodes();
    TRY(make_stages());
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
    auto found = greatest_extents(pipeline_);
    found->all_known = false;
    found->extents.clear();
    TRY_ASSIGN(base_, import_(found, nullptr));
    pipeline_.symbols.clear();
    for (const Node& node : base_.nodes) {
      if (node.op != kFound) continue;
      const OpCall call{base_, node};
      const std::string name = call.text("symbol", "");
      if (std::ranges::find(pipeline_.symbols, name, &Symbol::name) != pipeline_.symbols.end())
        continue;
      const int64_t room = call.output().shape[static_cast<size_t>(call.integer("axis", 0))];
      if (room > kMostSymbolExtent)
        return Error("\"", name, "\" may be ", room, " long, more than ", kMostSymbolExtent);
      pipeline_.symbols.push_back({name, 0, room, {}, true});
    }
    return Unit{};
  }

  /// What differs where one symbol has another extent depends on it.
  Result<Unit> find_dependences() {
    depends_.assign(base_.values.size(), {});
    part_extents_.clear();
    note_part_extents(base_);
    pipeline_.branches = base_.branches;
    for (size_t s = 0; s < pipeline_.symbols.size(); ++s) {
      for (const int64_t extent : {int64_t{1}, pipeline_.symbols[s].max / 2 + 1}) {
        if (extent >= pipeline_.symbols[s].max) continue;
        TRY_ASSIGN(const Graph at, import_where(s, extent));
        if (at.values.size() != base_.values.size() || at.nodes.size() != base_.nodes.size())
          return another_network(s, extent);
        note_part_extents(at);
        for (size_t v = 0; v < depends_.size(); ++v) {
          const Value &a = base_.values[v], &b = at.values[v];
          if (a.shape != b.shape || !same_bytes(a.constant, b.constant)) depends_[v].insert(s);
        }
      }
    }
    const std::vector<Symbols> at_others = depends_;
    for (size_t s = 0; s < pipeline_.symbols.size(); ++s) {
      TRY_ASSIGN(const Graph at, import_where(s, 0));
      compare_by_name(at, s, at_others);
    }
    return Unit{};
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
    if (at->branches != base_.branches) return another_network(s, extent);
    return at;
  }

  /// What has another shape where symbol `s` is 0 depends on it, too: of the first few, say, there
  /// are as many at all other extents. Nodes may be others there, so that values are found by their
  /// names. Where nothing is found in nothing, it is the extent of that which makes the difference,
  /// for what depends on it at other extents (`at_others`).
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
    makers_.assign(base_.values.size(), -1);
    for (size_t n = 0; n < base_.nodes.size(); ++n)
      for (const ValueId id : base_.nodes[n].outputs) makers_[id.value] = static_cast<int>(n);
    for (const Value& value : base_.values) ++names_[value.name];
  }

  bool is_join(const Node& node) const {
    return node.op == "Concat" && rooms_.contains(node.outputs[0]);
  }

  size_t symbol_of(const Node& found) const {
    const std::string& name = std::get<std::string>(found.attributes.at("symbol"));
    return static_cast<size_t>(std::ranges::find(pipeline_.symbols, name, &Symbol::name) -
                               pipeline_.symbols.begin());
  }

  /// Which of the stages computes each node: those that are equally deep and depend on the same.
  void place_nodes() {
    for (const Node& node : base_.nodes)
      if (node.op == kFound) rooms_.insert(node.inputs[0]);
    read_outside_ = {base_.outputs.begin(), base_.outputs.end()};
    for (const Node& node : base_.nodes)
      if (is_join(node)) read_outside_.insert(node.inputs.begin(), node.inputs.end());
    std::set<std::pair<int, Symbols>> stages;
    // By value: what has to have been run for it to be there, with the symbols of the stage that
    // runs it (null: it is found, joined or an input). Of a constant, for the shapes that it is
    // made of.
    using Sources = std::set<std::pair<int, const Symbols*>>;
    std::vector<Sources> sources(base_.values.size());
    std::vector<const std::pair<int, Symbols>*> places(base_.nodes.size(), nullptr);
    std::map<std::string, const std::pair<int, Symbols>*> finders;  // by what has room for all
    for (size_t n = 0; n < base_.nodes.size(); ++n) {
      const Node& node = base_.nodes[n];
      Sources before;
      for (const ValueId id : node.inputs)
        if (id.valid()) before.insert(sources[id.value].begin(), sources[id.value].end());
      if (node.op == kFound || is_join(node)) {
        int level = 0;
        for (const auto& [other, key] : before) level = std::max(level, other + 1);
        for (const ValueId id : node.outputs) sources[id.value] = {{level, nullptr}};
        continue;
      }
      Symbols key;
      for (const ValueId id : node.outputs) key.insert(depends(id).begin(), depends(id).end());
      if (std::ranges::all_of(node.outputs, [&](ValueId id) { return is_constant(id); })) {
        for (const ValueId id : node.outputs) sources[id.value] = before;
        // What a shape says is computed where somebody else than a stage reads it.
        const auto read = [&](ValueId id) { return read_outside_.contains(id); };
        if (key.empty() || std::ranges::none_of(node.outputs, read)) continue;
      }
      for (const ValueId id : node.inputs)
        if (id.valid()) key.insert(depends(id).begin(), depends(id).end());
      int level = 0;
      for (const auto& [other, others] : before)
        level = std::max(level, other + (others != nullptr && *others != key ? 1 : 0));
      places[n] = &*stages.emplace(level, key).first;
      // What is found is counted where it is found: the file has one node for both.
      const std::string& name = base_[node.outputs[0]].name;
      const auto finder = finders.find(name.substr(0, name.find("/count")));
      if (finder != finders.end()) places[n] = finder->second;
      if (rooms_.contains(node.outputs[0])) finders[name] = places[n];
      for (const ValueId id : node.outputs)
        sources[id.value] = {{places[n]->first, &places[n]->second}};
    }
    const std::vector<std::pair<int, Symbols>> order(stages.begin(), stages.end());
    stage_of_.assign(base_.nodes.size(), -1);
    for (size_t n = 0; n < base_.nodes.size(); ++n) {
      if (places[n] == nullptr) continue;
      stage_of_[n] = static_cast<int>(std::ranges::lower_bound(order, *places[n]) - order.begin());
    }
    for (const auto& [level, key] : order) pipeline_.stages.push_back({{key.begin(), key.end()}});
    inputs_.resize(order.size());
    outputs_.resize(order.size());
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
      const int maker = makers_[id.value];
      if (maker < 0) return Unit{};
      const Node& node = base_.nodes[static_cast<size_t>(maker)];
      if (node.op == kFound) return Unit{};
      for (const ValueId input : node.inputs) {
        if (is_constant(input) || (node.op != "Shape" && node.op != "Size")) {
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
    return Unit{};
  }

  /// Stage `s` asks for the shape of a value.
  Result<Unit> add_shape(size_t s, ValueId id, std::set<ValueId>& seen) {
    if (maker_stage(id) == static_cast<int>(s) || seen.contains(id)) return Unit{};
    const Value& value = base_[id];
    const std::vector<size_t>& own = pipeline_.stages[s].symbols;
    const Symbols& of = depends(id);
    // Where the stage knows nothing of a symbol, it asks for extents that do not depend on it.
    if (!of.empty() && std::ranges::includes(own, of)) return add_read(s, id, seen);
    TRY(check_name(value));
    pipeline_.stages[s].shapes[value.name] = {value.dtype, value.shape};
    return Unit{};
  }

  Result<Unit> make_stages() {
    for (const ValueId id : base_.inputs) {
      if (is_constant(id)) return Error("input \"", base_[id].name, "\" has no elements");
      TRY_ASSIGN(const size_t tensor, tensor_of(id));
      pipeline_.inputs.push_back(tensor);
      ready_[tensor] = 0;
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
      TRY(add_output(id, tensor));
    }
    for (const Node& node : base_.nodes) {
      if (node.op == kFound || is_join(node)) {
        for (const ValueId id : node.inputs) {
          if (!id.valid() || (node.op == kFound && is_joined(id))) continue;
          TRY_ASSIGN(const size_t tensor, tensor_of(id));
          TRY(add_output(id, tensor));
        }
      }
    }
    for (size_t s = 0; s < pipeline_.stages.size(); ++s) {
      const auto by_name = [&](size_t tensor) { return pipeline_.tensors[tensor].name; };
      Pipeline::Stage& stage = pipeline_.stages[s];
      stage.inputs = {inputs_[s].begin(), inputs_[s].end()};
      stage.outputs = {outputs_[s].begin(), outputs_[s].end()};
      std::ranges::sort(stage.inputs, {}, by_name);
      std::ranges::sort(stage.outputs, {}, by_name);
      for (const size_t tensor : stage.outputs) ready_[tensor] = s;
    }
    for (const Node& node : base_.nodes)
      if (node.op == kFound) TRY(add_found(node));
    return Unit{};
  }

  bool is_joined(ValueId id) const {
    const int maker = makers_[id.value];
    return maker >= 0 && is_join(base_.nodes[static_cast<size_t>(maker)]);
  }

  /// A tensor that somebody else than a stage reads.
  Result<Unit> add_output(ValueId id, size_t tensor) {
    const int from = maker_stage(id);
    const int maker = makers_[id.value];
    const bool found = maker >= 0 && base_.nodes[static_cast<size_t>(maker)].op == kFound;
    if (from >= 0) {
      outputs_[static_cast<size_t>(from)].insert(tensor);
    } else if (is_constant(id) && !found) {
      // The first stage hands it on.
      outputs_.front().insert(tensor);
    }
    return Unit{};
  }

  Result<Unit> add_found(const Node& node) {
    const OpCall call{base_, node};
    const size_t symbol = symbol_of(node);
    const int64_t axis = call.integer("axis", 0);
    TRY_ASSIGN(const size_t part, tensor_of(node.outputs[0]));
    if (is_joined(node.inputs[0])) {
      const Node& concat = base_.nodes[static_cast<size_t>(makers_[node.inputs[0].value])];
      Pipeline::Join join{{}, part, axis, symbol};
      size_t after = 0;
      for (const ValueId id : concat.inputs) {
        TRY_ASSIGN(const size_t tensor, tensor_of(id));
        join.parts.push_back(tensor);
        after = std::max(after, ready_.at(tensor));
      }
      ready_[part] = after;
      pipeline_.stages[after].joins.push_back(std::move(join));
      return Unit{};
    }
    TRY_ASSIGN(const size_t room, tensor_of(node.inputs[0]));
    TRY_ASSIGN(const size_t count, tensor_of(node.inputs[1]));
    const int from = maker_stage(node.inputs[0]);
    if (from >= 0 && maker_stage(node.inputs[1]) != from) {
      // The file's node reads the number, too, as that of a TopK.
      const Value& number = base_[node.inputs[1]];
      Pipeline::Stage& stage = pipeline_.stages[static_cast<size_t>(from)];
      if (std::ranges::find(stage.inputs, count) == stage.inputs.end())
        stage.shapes[number.name] = {number.dtype, number.shape};
    }
    pipeline_.tensors[part].part_of = room;
    const size_t after = std::max(ready_.at(room), ready_.at(count));
    ready_[part] = after;
    pipeline_.stages[after].found.push_back({room, part, count, axis, symbol});
    return Unit{};
  }

  const ImportStage& import_;
  Graph base_;
  Pipeline pipeline_;
  std::vector<Symbols> depends_;                         // by value
  std::map<size_t, std::vector<int64_t>> part_extents_;  // by node
  std::vector<int> makers_;           // by value: the node; -1: an input or a constant
  std::map<std::string, int> names_;  // how many values have each
  std::set<ValueId> rooms_;           // values of which a part is used
  std::set<ValueId> read_outside_;    // what is joined, and outputs
  std::vector<int> stage_of_;         // by node; -1: no stage computes it
  std::vector<std::set<size_t>> inputs_, outputs_;  // by stage: tensors
  std::map<ValueId, size_t> tensors_;
  std::map<size_t, size_t> ready_;  // by tensor: the stage after which it is there
};

}  // namespace

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

Result<Graph> stage_graph(const Pipeline& pipeline,
                          size_t number,
                          const std::vector<std::vector<int64_t>>& input_shapes,
                          const ImportStage& import) {
  const Pipeline::Stage& stage = pipeline.stages[number];
  auto part = std::make_shared<ImportPart>();
  part->given = stage.shapes;
  part->branches = pipeline.branches;
  for (size_t i = 0; i < stage.inputs.size(); ++i) {
    const Pipeline::Tensor& tensor = pipeline.tensors[stage.inputs[i]];
    part->given[tensor.name] = {tensor.dtype, input_shapes[i]};
  }
  for (const size_t tensor : stage.outputs) part->wanted.insert(pipeline.tensors[tensor].name);
  TRY_ASSIGN(Graph graph, import(greatest_extents(pipeline), part));
  // Values whose shapes alone are read are no inputs.
  std::erase_if(graph.inputs, [&](ValueId id) { return stage.shapes.contains(graph[id].name); });
  graph.is_stage = true;
  // Unlike remove_dead this keeps what makes constants: a kernel may have to compute them.
  std::set<ValueId> read(graph.outputs.begin(), graph.outputs.end());
  std::vector<Node> needed;
  for (Node& node : graph.nodes | std::views::reverse) {
    if (std::ranges::none_of(node.outputs, [&](ValueId id) { return read.contains(id); })) continue;
    read.insert(node.inputs.begin(), node.inputs.end());
    needed.push_back(std::move(node));
  }
  std::ranges::reverse(needed);
  graph.nodes = std::move(needed);
  return graph;
}

namespace {

/// The shapes of tensors where the symbols have some extents.
class TensorShapes {
 public:
  explicit TensorShapes(const Pipeline& pipeline) : pipeline_(pipeline) {
    for (size_t s = 0; s < pipeline.stages.size(); ++s) {
      const Pipeline::Stage& stage = pipeline.stages[s];
      for (size_t o = 0; o < stage.outputs.size(); ++o) made_[stage.outputs[o]] = {s, o};
      for (const Pipeline::Found& found : stage.found)
        taken_[found.part] = {found.room, found.axis, found.symbol};
      for (const Pipeline::Join& join : stage.joins)
        taken_[join.whole] = {join.parts[0], join.axis, join.symbol};
    }
  }

  /// Of the next stage; null: it has one shape.
  void add(std::shared_ptr<const NetworkRanges> ranges) { ranges_.push_back(std::move(ranges)); }

  std::vector<int64_t> at(size_t tensor, const SymbolValues& extents) const {
    const Pipeline::Tensor& of = pipeline_.tensors[tensor];
    if (of.symbols.empty()) return of.shape;
    if (const auto taken = taken_.find(tensor); taken != taken_.end()) {
      std::vector<int64_t> shape = at(taken->second.from, extents);
      int64_t& extent = shape[static_cast<size_t>(taken->second.axis)];
      // Nothing is found in nothing.
      if (extent > 0) extent = extents[taken->second.symbol];
      return shape;
    }
    const auto [s, output] = made_.at(tensor);
    SymbolValues own;
    for (const size_t symbol : pipeline_.stages[s].symbols) own.push_back(extents[symbol]);
    CHECK(ranges_[s] != nullptr) << of.name;
    for (const PartitionRange& range : ranges_[s]->ranges) {
      if (!range.box.contains(own)) continue;
      std::vector<int64_t> shape;
      for (const Expr& extent : range.shapes[range.largest.outputs[output].value])
        shape.push_back(evaluate_formula(extent, own));
      return shape;
    }
    CHECK(false) << of.name << " has no shape";
    return {};
  }

 private:
  struct Taken {
    size_t from;  // the tensor whose other extents it has
    int64_t axis;
    size_t symbol;
  };
  const Pipeline& pipeline_;
  std::map<size_t, std::pair<size_t, size_t>> made_;  // the stage and which of its outputs it is
  std::map<size_t, Taken> taken_;
  std::vector<std::shared_ptr<const NetworkRanges>> ranges_;  // by stage
};

}  // namespace

Result<std::vector<Phase>> stage_phases(const std::shared_ptr<const Pipeline>& pipeline,
                                        const ImportStage& import,
                                        const CutStage& cut) {
  const auto shapes = std::make_shared<TensorShapes>(*pipeline);
  std::vector<Phase> phases;
  for (size_t s = 0; s < pipeline->stages.size(); ++s) {
    const Pipeline::Stage& stage = pipeline->stages[s];
    std::vector<Symbol> symbols;
    for (const size_t symbol : stage.symbols) symbols.push_back(pipeline->symbols[symbol]);
    const auto graph_at = [pipeline, shapes, s, import](const SymbolValues& own) {
      const Pipeline::Stage& of = pipeline->stages[s];
      SymbolValues extents;
      for (const Symbol& symbol : pipeline->symbols) extents.push_back(symbol.max);
      for (size_t i = 0; i < own.size(); ++i) extents[of.symbols[i]] = own[i];
      std::vector<std::vector<int64_t>> inputs;
      for (const size_t tensor : of.inputs) inputs.push_back(shapes->at(tensor, extents));
      return stage_graph(*pipeline, s, inputs, import);
    };
    const auto at = [graph_at, cut](
                        const SymbolValues& own,
                        const std::shared_ptr<const RangeHints>& hints) -> Result<Partition> {
      TRY_ASSIGN(Graph graph, graph_at(own));
      graph.hints = hints;
      return cut(std::move(graph));
    };
    const auto make = [&]() -> Result<Phase> {
      const std::string name = fmt::format("stage{}", s);
      if (symbols.empty()) {
        TRY_ASSIGN(Partition partition, at({}, nullptr));
        return Phase{name, std::move(partition), {}, graph_at};
      }
      TRY_ASSIGN(NetworkRanges ranges, partition_over(symbols, at));
      Partition greatest = ranges.ranges.front().largest;
      auto shared = std::make_shared<const NetworkRanges>(std::move(ranges));
      return Phase{name, std::move(greatest), std::move(shared), graph_at};
    };
    Result<Phase> phase = make();
    if (!phase.ok()) {
      const std::string made =
          stage.outputs.empty() ? "nothing" : pipeline->tensors[stage.outputs[0]].name;
      return Error("what makes \"", made, "\": ", phase.error().message());
    }
    shapes->add(phase->ranges);
    phases.push_back(*std::move(phase));
  }
  phases.front().pipeline = pipeline;
  return phases;
}

}  // namespace pruner
