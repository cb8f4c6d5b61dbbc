// The tensors that stages hand on to each other, and what is done with them in between.
#include <algorithm>

#include "graph/evaluate.h"
#include "graph/found_values.h"
#include "graph/pipeline/placement.h"
#include "support/check.h"

namespace pruner {
namespace {

/// A time: after a stage (in each round, if the stage is a loop's), or after all rounds of a loop.
struct Ready {
  size_t stage = 0;
  bool behind_loop = false;
  friend auto operator<=>(const Ready&, const Ready&) = default;
};

/// The pipeline that a network becomes, and what is made of what.
struct Cut {
  const VaryingNetwork& network;
  const Graph& graph;
  const Placement& placement;
  Pipeline& pipeline;
  std::map<std::string, int> names = {};   // how many values have each
  std::map<ValueId, size_t> tensors = {};  // numbers of the pipeline's tensors

  Cut(const VaryingNetwork& of, const Placement& places, Pipeline& made)
      : network(of), graph(of.graph), placement(places), pipeline(made) {
    for (const Value& value : graph.values) ++names[value.name];
  }

  /// A stage is imported by the names of the values that it begins and ends with.
  Result<Unit> check_name(const Value& value) const {
    if (!value.name.empty() && names.at(value.name) == 1) return Unit{};
    return Error("\"", value.name, "\" is a value that the network cannot be cut at");
  }

  /// The number of a value among the pipeline's tensors.
  Result<size_t> tensor_of(ValueId id) {
    const auto known = tensors.find(id);
    if (known != tensors.end()) return known->second;
    const Value& value = graph[id];
    TRY(check_name(value));
    const Symbols& symbols = network.depends_on(id);
    pipeline.tensors.push_back(
        {value.name, value.dtype, value.shape, {symbols.begin(), symbols.end()}});
    return tensors[id] = pipeline.tensors.size() - 1;
  }

  /// The stage that computes a value; -1: an input, or what was found or joined.
  int maker_stage(ValueId id) const {
    const int maker = network.makers[id.value];
    return maker < 0 ? -1 : placement.stage_of[static_cast<size_t>(maker)];
  }

  /// Stage `s` is given the shape of a value, of which it reads no elements.
  Result<Unit> give_shape(size_t s, ValueId id) {
    const Value& value = graph[id];
    TRY(check_name(value));
    pipeline.stages[s].shapes[value.name] = {value.dtype, value.shape};
    return Unit{};
  }
};

/// Makes the stages, each with the tensors that it reads and the tensors of it that others read.
class StageMaker {
 public:
  explicit StageMaker(Cut& cut)
      : cut_(cut),
        network_(cut.network),
        graph_(cut.graph),
        placement_(cut.placement),
        pipeline_(cut.pipeline),
        inputs_(placement_.stages.size()),
        outputs_(placement_.stages.size()) {}

  Result<Unit> run() {
    for (const Symbols& symbols : placement_.stages)
      pipeline_.stages.push_back({{symbols.begin(), symbols.end()}});
    TRY(add_reads());
    TRY(add_outputs());
    TRY(note_conditions());
    finish();
    return Unit{};
  }

 private:
  Result<Unit> add_reads() {
    for (const ValueId id : graph_.inputs) {
      if (network_.is_constant(id)) return Error("input \"", graph_[id].name, "\" has no elements");
      TRY_ASSIGN(const size_t tensor, cut_.tensor_of(id));
      pipeline_.inputs.push_back(tensor);
    }
    std::vector<std::set<ValueId>> seen(pipeline_.stages.size());
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (placement_.stage_of[n] < 0) continue;
      const auto s = static_cast<size_t>(placement_.stage_of[n]);
      for (const ValueId id : graph_.nodes[n].inputs) TRY(add_read(s, id, seen[s]));
    }
    return Unit{};
  }

  /// Stage `s` reads a value.
  Result<Unit> add_read(size_t s, ValueId id, std::set<ValueId>& seen) {
    if (!id.valid() || !seen.insert(id).second) return Unit{};
    if (network_.is_constant(id)) {
      // A constant that is made of shapes is made anew at other shapes.
      const Node* maker = network_.maker_of(id);
      if (maker == nullptr || VaryingNetwork::is_found(*maker)) return Unit{};
      for (const ValueId input : maker->inputs) {
        if (network_.is_constant(input) || !asks_shape(*maker)) {
          TRY(add_read(s, input, seen));
        } else {
          TRY(add_shape(s, input, seen));
        }
      }
      return Unit{};
    }
    const int from = cut_.maker_stage(id);
    if (from == static_cast<int>(s)) return Unit{};
    TRY_ASSIGN(const size_t tensor, cut_.tensor_of(id));
    inputs_[s].insert(tensor);
    if (from >= 0) outputs_[static_cast<size_t>(from)].insert(tensor);
    return note_number(s, id);
  }

  /// Stage `s` is given a value whose extent a number says. The file's nodes make the one of the
  /// other, so that the stage is given the number, too, of which it reads nothing.
  Result<Unit> note_number(size_t s, ValueId id) {
    const Node* extent = network_.maker_of(id);
    if (extent == nullptr || extent->op != kExtent) return Unit{};
    const ValueId number = extent->inputs[0];
    return cut_.maker_stage(number) == static_cast<int>(s) ? Unit{} : cut_.give_shape(s, number);
  }

  /// Stage `s` asks for the shape of a value.
  Result<Unit> add_shape(size_t s, ValueId id, std::set<ValueId>& seen) {
    if (cut_.maker_stage(id) == static_cast<int>(s) || seen.contains(id)) return Unit{};
    const std::vector<size_t>& own = pipeline_.stages[s].symbols;
    const Symbols& of = network_.depends_on(id);
    // If the shape depends on symbols that the stage does not have, the stage reads only extents of
    // the shape that do not vary, as the placement ensures. So the stage gets the greatest shape.
    if (!of.empty() && std::ranges::includes(own, of)) return add_read(s, id, seen);
    TRY(cut_.give_shape(s, id));
    return note_number(s, id);
  }

  /// Adds the tensors that are read by the caller and between stages.
  Result<Unit> add_outputs() {
    for (const ValueId id : graph_.outputs) {
      TRY_ASSIGN(const size_t tensor, cut_.tensor_of(id));
      pipeline_.outputs.push_back(tensor);
      add_output(id, tensor);
    }
    for (const Node& node : graph_.nodes) {
      for (const ValueId id : network_.read_between(node)) {
        TRY_ASSIGN(const size_t tensor, cut_.tensor_of(id));
        add_output(id, tensor);
      }
    }
    return Unit{};
  }

  /// Adds a tensor that is read outside of the stages.
  void add_output(ValueId id, size_t tensor) {
    const int from = cut_.maker_stage(id);
    if (from >= 0) {
      outputs_[static_cast<size_t>(from)].insert(tensor);
    } else if (network_.is_constant(id) && !network_.is_found(id)) {
      // No stage computes a constant: the first one copies it into the tensor.
      outputs_.front().insert(tensor);
    }
  }

  /// A stage that has a part of an If, of which both branches are computed, is given the condition.
  Result<Unit> note_conditions() {
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      const std::string& name = graph_.values[v].name;
      const ValueId id{static_cast<int32_t>(v)};
      const int from = cut_.maker_stage(id);
      if (!name.ends_with(kCondition) || from < 0) continue;
      const std::string prefix = name.substr(0, name.size() - kCondition.size()) + "/";
      for (size_t n = 0; n < graph_.nodes.size(); ++n) {
        const int stage = placement_.stage_of[n];
        if (stage < 0 || stage == from) continue;
        if (!graph_[graph_.nodes[n].outputs[0]].name.starts_with(prefix)) continue;
        TRY(cut_.give_shape(static_cast<size_t>(stage), id));
      }
    }
    return Unit{};
  }

  void finish() {
    const auto by_name = [&](size_t tensor) { return pipeline_.tensors[tensor].name; };
    for (size_t s = 0; s < pipeline_.stages.size(); ++s) {
      Pipeline::Stage& stage = pipeline_.stages[s];
      stage.inputs = {inputs_[s].begin(), inputs_[s].end()};
      stage.outputs = {outputs_[s].begin(), outputs_[s].end()};
      std::ranges::sort(stage.inputs, {}, by_name);
      std::ranges::sort(stage.outputs, {}, by_name);
      // A tensor that a stage reads is given with its elements, not only its shape.
      for (const size_t tensor : stage.inputs) stage.shapes.erase(pipeline_.tensors[tensor].name);
    }
  }

  Cut& cut_;
  const VaryingNetwork& network_;
  const Graph& graph_;
  const Placement& placement_;
  Pipeline& pipeline_;
  std::vector<std::set<size_t>> inputs_, outputs_;  // tensors of each stage
};

/// Makes what is run between stages: found parts, joins and loops.
class BetweenStages {
 public:
  explicit BetweenStages(Cut& cut)
      : cut_(cut),
        network_(cut.network),
        graph_(cut.graph),
        loops_(cut.placement.loops),
        pipeline_(cut.pipeline) {}

  Result<Unit> run() {
    TRY(check_stacks());
    for (const size_t tensor : pipeline_.inputs) ready_[tensor] = {};
    for (size_t s = 0; s < pipeline_.stages.size(); ++s)
      for (const size_t tensor : pipeline_.stages[s].outputs) ready_[tensor] = {s, false};
    find_stages_of_loops();
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (VaryingNetwork::is_found(graph_.nodes[n]))
        TRY(add_found(graph_.nodes[n], loops_.round_of[n]));
    for (size_t loop = 0; loop < loops_.around.size(); ++loop) TRY(add_loop(loop));
    std::ranges::sort(pipeline_.loops, {}, &Pipeline::Loop::first);
    return Unit{};
  }

 private:
  Result<Unit> check_stacks() const {
    for (const std::vector<size_t>& around : loops_.around) {
      for (const size_t n : around) {
        const Node& node = graph_.nodes[n];
        if (node.op == kLoopBegin) continue;
        const bool appends = node.op == kLoopStack && node.inputs.size() > 2;
        const ValueId made = node.op == kLoopStack ? node.inputs[1] : node.outputs[0];
        if (!appends && node.op != kLoopRounds && network_.shape_varies.contains(made))
          return Error(node_label(graph_, node),
                       ": \"",
                       graph_[made].name,
                       "\" is of another shape in each round, or with each number of rounds");
        if (node.op == kLoopStack && !network_.grows_evenly(n))
          return Error(node_label(graph_, node),
                       ": how long \"",
                       graph_[node.outputs[0]].name,
                       "\" is is no number of rounds");
      }
    }
    return Unit{};
  }

  /// Finds the first and the last stage of each loop. The values that a loop begins with exist
  /// before its first stage, the results when all rounds have been run.
  void find_stages_of_loops() {
    pipeline_.loops.resize(loops_.around.size());
    for (Pipeline::Loop& loop : pipeline_.loops) loop.first = pipeline_.stages.size();
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (loops_.round_of[n] < 0 || cut_.placement.stage_of[n] < 0) continue;
      Pipeline::Loop& loop = pipeline_.loops[static_cast<size_t>(loops_.round_of[n])];
      loop.first = std::min(loop.first, static_cast<size_t>(cut_.placement.stage_of[n]));
      loop.last = std::max(loop.last, static_cast<size_t>(cut_.placement.stage_of[n]));
    }
  }

  /// Returns the time from which a tensor exists.
  Ready ready_after(size_t tensor, ValueId id) const {
    if (const auto known = ready_.find(tensor); known != ready_.end()) return known->second;
    const Node* maker = network_.maker_of(id);
    CHECK(maker != nullptr && is_loop_node(*maker)) << graph_[id].name;
    const Pipeline::Loop& loop = pipeline_.loops[loops_.loop_of(*maker)];
    return maker->op == kLoopBegin ? Ready{loop.first, false} : Ready{loop.last, true};
  }
  /// Returns the list of the parts that are made at a time.
  Pipeline::Parts& parts_at(Ready ready) {
    if (!ready.behind_loop) return pipeline_.stages[ready.stage].then;
    return std::ranges::find(pipeline_.loops, ready.stage, &Pipeline::Loop::last)->then;
  }

  /// A node kFound or kExtent, in the rounds of a loop (-1: in none).
  Result<Unit> add_found(const Node& node, int loop) {
    const size_t symbol = symbol_of(pipeline_, node);
    if (loop >= 0) {
      std::vector<size_t>& found = pipeline_.loops[static_cast<size_t>(loop)].symbols;
      if (std::ranges::find(found, symbol) == found.end()) found.push_back(symbol);
    }
    const int64_t axis = OpCall{graph_, node}.integer("axis", 0);
    TRY_ASSIGN(const size_t part, cut_.tensor_of(node.outputs[0]));
    if (network_.is_joined(node.inputs[0])) return add_join(node, {{}, part, axis, symbol});
    if (node.op == kExtent) {
      TRY_ASSIGN(const size_t number, cut_.tensor_of(node.inputs[0]));
      ready_[part] = ready_after(number, node.inputs[0]);
      Pipeline::Parts& parts = network_.begins_loop(node.inputs[0])
                                   ? pipeline_.loops[static_cast<size_t>(loop)].begin
                                   : parts_at(ready_[part]);
      parts.found.push_back({{}, part, number, axis, symbol});
      return Unit{};
    }
    TRY_ASSIGN(const size_t room, cut_.tensor_of(node.inputs[0]));
    TRY_ASSIGN(const size_t count, cut_.tensor_of(node.inputs[1]));
    const int from = cut_.maker_stage(node.inputs[0]);
    if (from >= 0 && cut_.maker_stage(node.inputs[1]) != from) {
      // The file's node reads the number, too, as that of a TopK.
      const auto s = static_cast<size_t>(from);
      const std::vector<size_t>& given = pipeline_.stages[s].inputs;
      if (std::ranges::find(given, count) == given.end()) TRY(cut_.give_shape(s, node.inputs[1]));
    }
    pipeline_.tensors[part].part_of = room;
    const Ready after =
        std::max(ready_after(room, node.inputs[0]), ready_after(count, node.inputs[1]));
    ready_[part] = after;
    parts_at(after).found.push_back({room, part, count, axis, symbol});
    return Unit{};
  }

  /// Adds the Concat before a node kFound: its inputs are the parts, what kFound makes is the
  /// whole.
  Result<Unit> add_join(const Node& node, Pipeline::Join join) {
    Ready after;
    for (const ValueId id : network_.maker_of(node.inputs[0])->inputs) {
      TRY_ASSIGN(const size_t tensor, cut_.tensor_of(id));
      join.parts.push_back(tensor);
      after = std::max(after, ready_after(tensor, id));
    }
    ready_[join.whole] = after;
    parts_at(after).joins.push_back(std::move(join));
    return Unit{};
  }

  /// Tensors of the nodes around a loop.
  Result<Unit> add_loop(size_t number) {
    Pipeline::Loop& loop = pipeline_.loops[number];
    const std::vector<size_t>& around = loops_.around[number];
    const auto begins = [&](size_t n) { return graph_.nodes[n].op == kLoopBegin; };
    const Node& begin = graph_.nodes[*std::ranges::find_if(around, begins)];
    if (loop.first > loop.last)
      return Error(node_label(graph_, begin), ": no round of the loop computes anything");
    const OpCall call{graph_, begin};
    if (call.has(0)) TRY(set_tensor(begin.inputs[0], loop.trips));
    if (call.has(1)) TRY(set_tensor(begin.inputs[1], loop.condition));
    TRY_ASSIGN(loop.round, cut_.tensor_of(begin.outputs[0]));
    for (const size_t n : around) {
      const Node& node = graph_.nodes[n];
      if (node.op == kLoopRounds) {
        TRY(set_tensor(node.inputs[0], loop.next));
        TRY(set_tensor(node.outputs[0], loop.rounds));
      } else if (node.op == kLoopLast) {
        const auto place = std::ranges::find(begin.outputs, node.inputs[0]) - begin.outputs.begin();
        Pipeline::Loop::Carried carried;
        TRY_ASSIGN(carried.init, cut_.tensor_of(begin.inputs[static_cast<size_t>(place) + 1]));
        TRY_ASSIGN(carried.state, cut_.tensor_of(node.inputs[0]));
        TRY_ASSIGN(carried.next, cut_.tensor_of(node.inputs[1]));
        TRY_ASSIGN(carried.last, cut_.tensor_of(node.outputs[0]));
        loop.carried.push_back(carried);
      } else if (node.op == kLoopStack) {
        Pipeline::Loop::Stack stack;
        if (node.inputs.size() > 2) TRY(set_tensor(node.inputs[2], stack.init));
        TRY_ASSIGN(stack.part, cut_.tensor_of(node.inputs[1]));
        TRY_ASSIGN(stack.whole, cut_.tensor_of(node.outputs[0]));
        loop.stacks.push_back(stack);
      }
    }
    return Unit{};
  }

  /// Leaves out what is absent, true or has no elements: nobody has to look at it.
  Result<Unit> set_tensor(ValueId id, std::optional<size_t>& tensor) {
    if (!id.valid() || network_.is_true(id) || network_.has_nothing(id)) return Unit{};
    TRY_ASSIGN(tensor, cut_.tensor_of(id));
    return Unit{};
  }

  Cut& cut_;
  const VaryingNetwork& network_;
  const Graph& graph_;
  const LoopNodes& loops_;
  Pipeline& pipeline_;
  std::map<size_t, Ready> ready_;  // time from which each tensor exists
};

}  // namespace

Result<std::optional<Pipeline>> cut_into_stages(const ImportStage& import) {
  Pipeline pipeline;
  TRY_ASSIGN(const std::optional<VaryingNetwork> network, find_dependences(import, pipeline));
  if (!network) return std::optional<Pipeline>();
  TRY_ASSIGN(const Placement placement, place_nodes(*network));
  Cut cut(*network, placement, pipeline);
  TRY(StageMaker(cut).run());
  TRY(BetweenStages(cut).run());
  return std::optional(std::move(pipeline));
}

}  // namespace pruner
