// The stages of a pipeline as networks over ranges of their symbols.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ranges>

#include "graph/found_values.h"
#include "graph/partition_range.h"
#include "graph/pipeline/pipeline.h"
#include "support/check.h"

namespace pruner {

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

/// Computes the shapes of tensors at given extents of the symbols.
class TensorShapes {
 public:
  explicit TensorShapes(const Pipeline& pipeline) : pipeline_(pipeline) {
    for (size_t s = 0; s < pipeline.stages.size(); ++s) {
      const Pipeline::Stage& stage = pipeline.stages[s];
      for (size_t o = 0; o < stage.outputs.size(); ++o) made_[stage.outputs[o]] = {s, o};
      add(stage.then);
    }
    for (const Pipeline::Loop& loop : pipeline.loops) {
      add(loop.begin);
      add(loop.then);
      for (const Pipeline::Loop::Stack& stack : loop.stacks) {
        const Pipeline::Tensor &part = pipeline.tensors[stack.part],
                               &whole = pipeline.tensors[stack.whole];
        const bool appends = part.shape.size() == whole.shape.size();
        wholes_[stack.whole] = appends ? part.shape[0] : 1;
      }
    }
  }

  /// Adds the ranges of the next stage; null: the stage has one shape.
  void add(std::shared_ptr<const NetworkRanges> ranges) { ranges_.push_back(std::move(ranges)); }

  std::vector<int64_t> at(size_t tensor, const SymbolValues& extents) const {
    const Pipeline::Tensor& of = pipeline_.tensors[tensor];
    if (of.symbols.empty()) return of.shape;
    if (const auto whole = wholes_.find(tensor); whole != wholes_.end()) {
      const size_t symbol = of.symbols[0];
      std::vector<int64_t> shape = of.shape;
      shape[0] -= whole->second * (pipeline_.symbols[symbol].max - extents[symbol]);
      return shape;
    }
    if (const auto taken = taken_.find(tensor); taken != taken_.end()) {
      if (taken->second.from == tensor) return {extents[taken->second.symbol]};
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
      return evaluate_formulas(range.shapes[range.largest.outputs[output].value], own);
    }
    CHECK(false) << of.name << " has no shape";
    return {};
  }

 private:
  void add(const Pipeline::Parts& parts) {
    for (const Pipeline::Found& found : parts.found)
      taken_[found.part] = {found.room.value_or(found.part), found.axis, found.symbol};
    for (const Pipeline::Join& join : parts.joins)
      taken_[join.whole] = {join.parts[0], join.axis, join.symbol};
  }

  struct Taken {
    size_t from;  // the tensor whose other extents it has; itself: it has one extent
    int64_t axis;
    size_t symbol;
  };
  const Pipeline& pipeline_;
  std::map<size_t, std::pair<size_t, size_t>> made_;  // the stage and which of its outputs it is
  std::map<size_t, Taken> taken_;
  // The tensors that the rounds of a loop make together, and how much longer each round makes them.
  std::map<size_t, int64_t> wholes_;
  std::vector<std::shared_ptr<const NetworkRanges>> ranges_;  // ranges of each stage
};

void take_greater(std::vector<int64_t>& shape,
                  const std::vector<int64_t>& other,
                  std::optional<int64_t> but_axis = {}) {
  for (size_t d = 0; d < shape.size(); ++d)
    if (static_cast<int64_t>(d) != but_axis) shape[d] = std::max(shape[d], other[d]);
}

/// Gives tensors room for the greatest extent that each of their axes has at any extents of the
/// symbols: what is left behind the first n rows is longest where n is least.
void give_room(Pipeline& pipeline,
               const std::vector<std::shared_ptr<const NetworkRanges>>& ranges) {
  for (size_t s = 0; s < pipeline.stages.size(); ++s) {
    if (ranges[s] == nullptr) continue;
    const std::vector<size_t>& outputs = pipeline.stages[s].outputs;
    for (const PartitionRange& range : ranges[s]->ranges) {
      const CheckedShapes looked_at =
          checked_shapes(range.box, extents_of(range), checked_counts(ranges[s]->symbols));
      for (const SymbolValues& at : looked_at.shapes)
        for (size_t o = 0; o < outputs.size(); ++o)
          take_greater(pipeline.tensors[outputs[o]].shape,
                       evaluate_formulas(range.shapes[range.largest.outputs[o].value], at));
    }
  }
  const auto hand_on = [&](const Pipeline::Parts& parts) {
    for (const Pipeline::Found& found : parts.found)
      if (found.room)
        take_greater(
            pipeline.tensors[found.part].shape, pipeline.tensors[*found.room].shape, found.axis);
    for (const Pipeline::Join& join : parts.joins)
      for (const size_t part : join.parts)
        take_greater(pipeline.tensors[join.whole].shape, pipeline.tensors[part].shape, join.axis);
  };
  for (size_t s = 0; s < pipeline.stages.size(); ++s) {
    for (const Pipeline::Loop& loop : pipeline.loops)
      if (loop.first == s) hand_on(loop.begin);
    hand_on(pipeline.stages[s].then);
    for (const Pipeline::Loop& loop : pipeline.loops)
      if (loop.last == s) hand_on(loop.then);
  }
}

}  // namespace

Result<std::optional<std::vector<Phase>>> stage_phases(const ImportStage& import,
                                                       const CutStage& cut) {
  TRY_ASSIGN(std::optional<Pipeline> stages, cut_into_stages(import));
  if (!stages) return std::optional<std::vector<Phase>>();
  const auto pipeline = std::make_shared<const Pipeline>(*std::move(stages));
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
  const auto sized = std::make_shared<Pipeline>(*pipeline);
  std::vector<std::shared_ptr<const NetworkRanges>> ranges;
  for (const Phase& phase : phases) ranges.push_back(phase.ranges);
  give_room(*sized, ranges);
  phases.front().pipeline = sized;
  return std::optional(std::move(phases));
}

}  // namespace pruner
