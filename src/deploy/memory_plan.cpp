#include "deploy/memory_plan.h"

#include <algorithm>

#include "graph/ops/op.h"
#include "support/check.h"

namespace pruner {
namespace {

/// Returns the lowest offset of the tightest gap between placed blocks that live at the same time.
int64_t best_fit(const ArenaBlock& block, const std::vector<ArenaBlock*>& placed) {
  int64_t end = 0;  // end of the blocks below
  int64_t best = -1;
  int64_t best_gap = 0;
  for (const ArenaBlock* other : placed) {
    if (!block.meets(*other)) continue;
    const int64_t gap = other->offset - end;
    if (gap >= block.bytes && (best < 0 || gap < best_gap)) {
      best = end;
      best_gap = gap;
    }
    end = std::max(end, other->offset + other->bytes);
  }
  return best >= 0 ? best : end;
}

}  // namespace

int64_t place_blocks(std::vector<ArenaBlock>& blocks) {
  std::vector<ArenaBlock*> order;
  for (ArenaBlock& block : blocks) order.push_back(&block);
  std::stable_sort(order.begin(), order.end(), [](const ArenaBlock* a, const ArenaBlock* b) {
    return a->bytes > b->bytes;
  });
  std::vector<ArenaBlock*> placed;  // ascending offsets
  int64_t arena_bytes = 0;
  for (ArenaBlock* block : order) {
    block->offset = best_fit(*block, placed);
    arena_bytes = std::max(arena_bytes, block->offset + block->bytes);
    placed.insert(std::upper_bound(placed.begin(),
                                   placed.end(),
                                   block,
                                   [](const ArenaBlock* a, const ArenaBlock* b) {
                                     return a->offset < b->offset;
                                   }),
                  block);
  }
  return arena_bytes;
}

namespace {

class Planner {
 public:
  Planner(const Partition& partition,
          std::span<const KernelMemory> kernels,
          int64_t alignment,
          const StateMemory& states,
          const PartitionRange* range)
      : partition_(partition),
        kernels_(kernels),
        alignment_(alignment),
        states_(states),
        range_(range),
        places_(partition.values.size()),
        last_use_(partition.values.size(), -1),
        block_of_(partition.values.size(), -1) {}

  MemoryPlan plan() {
    place_outside();
    for (size_t g = 0; g < partition_.groups.size(); ++g) {
      for (const ValueId input : partition_.groups[g].inputs)
        last_use_[index(base(input))] = static_cast<int>(g);
    }
    for (size_t i = 0; i < partition_.outputs.size(); ++i) {
      // A state's next content, and a state that is an output as it is, are copied at the end.
      const ValueId output = partition_.outputs[i];
      if (state_of_output(i) >= 0 || is_state(output))
        last_use_[index(base(output))] = static_cast<int>(partition_.groups.size());
    }
    MemoryPlan result;
    std::vector<int> workspaces;
    for (size_t g = 0; g < partition_.groups.size(); ++g) {
      workspaces.push_back(
          add_block(static_cast<int>(g), static_cast<int>(g), kernels_[g].workspace_bytes));
      add_output(static_cast<int>(g));
    }
    const std::vector<int> aside = blocks_of_exchanged_states();
    result.arena_bytes = states_.bytes + place_blocks(blocks_);
    for (const int block : workspaces) result.workspaces.push_back(place_of(block).index);
    for (size_t v = 0; v < places_.size(); ++v) {
      const Storage storage = partition_.storage_of(ValueId{static_cast<int32_t>(v)});
      const size_t owner = index(storage.owner);
      ValuePlace place = places_[owner];
      if (block_of_[owner] >= 0) {
        const int64_t start = storage.first * dtype_bytes(partition_.values[owner].dtype);
        place = place_of(block_of_[owner]);
        place.index += start;
      }
      result.values.push_back(place);
    }
    for (size_t i = 0; i < partition_.outputs.size(); ++i) {
      const ValueId output = partition_.outputs[i];
      const ValuePlace from = result.values[index(output)];
      const ValuePlace to = callers(Place::kOutput, i, &State::output);
      if (from != to && state_of_output(i) < 0)
        result.copies.push_back({from, to, value_bytes(partition_[output]), output});
    }
    copy_states(result, aside);
    return result;
  }

 private:
  static size_t index(ValueId id) { return static_cast<size_t>(id.value); }

  ValueId base(ValueId id) const { return partition_.storage_of(id).owner; }

  ValuePlace place_of(int block) const {
    return {Place::kArena, states_.bytes + blocks_[block].offset};
  }
  ValuePlace place_of_state(size_t s) const { return {Place::kArena, states_.offsets[s]}; }

  /// Returns the states that have a place; without any, all states are the caller's.
  std::span<const State> states() const {
    return std::span(partition_.states).first(states_.offsets.size());
  }
  /// Returns the state whose next content is output `i`; -1 if the output is the caller's.
  int state_of_output(size_t i) const {
    for (size_t s = 0; s < states().size(); ++s)
      if (states()[s].output == static_cast<int>(i)) return static_cast<int>(s);
    return -1;
  }
  /// Returns the place of input or output `i`; its number leaves out the states before.
  ValuePlace callers(Place place, size_t i, int State::*member) const {
    const auto before = std::ranges::count_if(
        states(), [&](const State& s) { return s.*member < static_cast<int>(i); });
    return {place, static_cast<int64_t>(i) - before};
  }
  ValueId input_of(const State& state) const { return partition_.inputs[state.input]; }
  ValueId next_of(const State& state) const { return partition_.outputs[state.output]; }
  bool is_state(ValueId id) const {
    return std::ranges::any_of(states(),
                               [&](const State& s) { return base(input_of(s)) == base(id); });
  }

  /// Returns for each state whose next content is another state: the block that holds the content
  /// until all states are copied; -1 for other states.
  std::vector<int> blocks_of_exchanged_states() {
    std::vector<int> blocks;
    const int end = static_cast<int>(partition_.groups.size());
    for (const State& state : states()) {
      const ValueId next = next_of(state);
      const bool exchanged = is_state(next) && base(next) != base(input_of(state));
      blocks.push_back(exchanged ? add_block(0, end, value_bytes(partition_[next])) : -1);
    }
    return blocks;
  }

  void copy_states(MemoryPlan& plan, const std::vector<int>& aside) const {
    const auto from = [&](size_t s) { return plan.values[index(next_of(states()[s]))]; };
    const auto copy = [&](size_t s, ValuePlace of, ValuePlace to) {
      const ValueId next = next_of(states()[s]);
      if (of != to) plan.copies.push_back({of, to, value_bytes(partition_[next]), next});
    };
    for (size_t s = 0; s < aside.size(); ++s)
      if (aside[s] >= 0) copy(s, from(s), place_of(aside[s]));
    for (size_t s = 0; s < aside.size(); ++s)
      copy(s, aside[s] >= 0 ? place_of(aside[s]) : from(s), place_of_state(s));
  }

  /// Places constants, states, and the values in the caller's tensors.
  void place_outside() {
    for (size_t v = 0; v < places_.size(); ++v) {
      if (partition_.values[v].constant) places_[v] = {Place::kConstant, static_cast<int64_t>(v)};
    }
    for (size_t i = 0; i < partition_.inputs.size(); ++i) {
      places_[index(partition_.inputs[i])] = callers(Place::kInput, i, &State::input);
    }
    for (size_t s = 0; s < states().size(); ++s)
      places_[index(input_of(states()[s]))] = place_of_state(s);
    for (size_t i = 0; i < partition_.outputs.size(); ++i) {
      if (state_of_output(i) >= 0) continue;
      ValuePlace& place = places_[index(base(partition_.outputs[i]))];
      if (place.place == Place::kNone) place = callers(Place::kOutput, i, &State::output);
    }
  }

  int add_block(int first, int last, int64_t bytes) {
    blocks_.push_back({aligned(bytes, alignment_), first, last});
    return static_cast<int>(blocks_.size()) - 1;
  }

  /// Places group g's output: in the state whose next content it is, the block of an input that
  /// dies here, or a new block.
  void add_output(int g) {
    const Group& group = partition_.groups[g];
    const size_t output = index(base(group.output));
    if (places_[output].place != Place::kNone) return;
    if (block_of_[output] >= 0) return;  // another part of the tensor has been written
    for (size_t s = 0; s < states().size(); ++s) {
      const ValueId state = input_of(states()[s]);
      if (index(base(next_of(states()[s]))) != output || !may_overwrite(g, state)) continue;
      places_[output] = place_of_state(s);
      return;
    }
    const int last = std::max(g, last_use_[output]);
    for (const ValueId input : group.inputs) {
      if (block_of_[index(base(input))] < 0 || !may_overwrite(g, input)) continue;
      block_of_[output] = block_of_[index(base(input))];
      blocks_[block_of_[output]].last = last;
      return;
    }
    block_of_[output] = add_block(g, last, most_bytes(output));
  }

  /// Returns the bytes of a value at the shape where it has most. This need not be the greatest
  /// shape: an extent may be the remainder of a division.
  int64_t most_bytes(size_t value) const {
    if (range_ == nullptr) return value_bytes(partition_.values[value]);
    int64_t bytes = dtype_bytes(partition_.values[value].dtype);
    for (const Expr& extent : range_->shapes[value]) bytes *= bounds_in(extent, range_->box).second;
    return bytes;
  }

  bool have_one_size(ValueId a, ValueId b) const {
    if (range_ == nullptr || range_->shapes[index(a)].size() != range_->shapes[index(b)].size())
      return value_bytes(partition_[a]) == value_bytes(partition_[b]);
    return dtype_bytes(partition_[a].dtype) == dtype_bytes(partition_[b].dtype) &&
           std::ranges::equal(range_->shapes[index(a)], range_->shapes[index(b)], structural_equal);
  }

  bool may_overwrite(int g, ValueId input) const {
    const Group& group = partition_.groups[g];
    const size_t owner = index(base(input));
    // A slice shares its owner's bytes with others, which may be read later.
    if (partition_[input].slice || partition_[group.output].slice) return false;
    if (kernels_[g].rewrites || last_use_[owner] != g || !have_one_size(input, group.output))
      return false;
    if (group.routine != nullptr) {
      const auto uses =
          std::ranges::count_if(group.inputs, [&](ValueId id) { return index(base(id)) == owner; });
      return group.routine->in_place && index(base(group.inputs[0])) == owner && uses == 1;
    }
    const std::vector<StageId> stages = group.dag.inputs();
    for (size_t i = 0; i < group.inputs.size(); ++i) {  // the same bytes may come in more than once
      if (index(base(group.inputs[i])) != owner) continue;
      const bool in_place = range_ == nullptr
                                ? reads_in_place(group.dag, stages[i])
                                : reads_in_place(range_->dags[static_cast<size_t>(g)], stages[i]);
      if (!in_place) return false;
    }
    return true;
  }

  const Partition& partition_;
  std::span<const KernelMemory> kernels_;
  int64_t alignment_;
  const StateMemory& states_;
  const PartitionRange* range_;     // null: one shape
  std::vector<ValuePlace> places_;  // places of values outside of the arena
  std::vector<int> last_use_;       // last group that reads each value
  std::vector<int> block_of_;       // block in the arena of each owner; -1: none
  std::vector<ArenaBlock> blocks_;
};

/// Whether `indices` are exactly the variables of axes of these extents.
bool is_own_position(const std::vector<Expr>& axes, const std::vector<Expr>& indices) {
  if (indices.size() != axes.size()) return false;
  for (size_t d = 0; d < indices.size(); ++d) {
    const Var* var = as<Var>(indices[d]);
    const int64_t *constant = as_int(indices[d]), *extent = as_int(axes[d]);
    const bool own = var != nullptr && var->id.value == static_cast<int32_t>(d);
    const bool is_one = extent != nullptr && *extent == 1;
    // An axis of one element may be read at 0 as well.
    if (!own && !(is_one && constant != nullptr && *constant == 0)) return false;
  }
  return true;
}

/// reads_in_place(), with the extents of a stage's axes and its body.
template <typename Axes, typename Body>
bool reads_own_elements(const ComputeDag& dag, StageId input, const Axes& axes, const Body& body) {
  const std::vector<StageId> outputs = dag.outputs();
  if (outputs.size() != 1 || dag[input].dtype != dag[outputs.front()].dtype) return false;
  const std::vector<Expr> shape = axes(outputs.front());
  const auto has_its_shape = [&](StageId id) {
    return std::ranges::equal(axes(id), shape, structural_equal);
  };
  std::vector<bool> depends(dag.stages.size(), false);  // on `input`
  depends[input.value] = true;
  for (int s = 0; s < dag.size(); ++s) {
    const StageId id{s};
    if (dag[id].is_placeholder()) continue;
    const std::vector<Expr> own = axes(id);
    bool in_place = true;
    visit(body(id), [&](const Expr& e) {
      const Load* load = as<Load>(e);
      if (load == nullptr || !depends[load->tensor.value]) return;
      depends[s] = true;
      in_place &= is_own_position(own, load->indices);
    });
    if (!depends[s]) continue;
    if (!in_place || dag[id].is_reduction() || !has_its_shape(id)) return false;
  }
  return has_its_shape(input);
}

}  // namespace

MemoryPlan plan_memory(const Partition& partition,
                       std::span<const KernelMemory> kernels,
                       int64_t alignment,
                       const StateMemory& states,
                       const PartitionRange* range) {
  CHECK(kernels.size() == partition.groups.size());
  CHECK(states.offsets.empty() || states.offsets.size() == partition.states.size());
  return Planner(partition, kernels, alignment, states, range).plan();
}

int64_t value_bytes(const PlannedValue& value) {
  int64_t bytes = dtype_bytes(value.dtype);
  for (const int64_t extent : value.shape) bytes *= extent;
  return bytes;
}

bool reads_in_place(const ComputeDag& dag, StageId input) {
  const auto axes = [&](StageId id) {
    std::vector<Expr> extents;
    for (const Iterator& axis : dag[id].axes) extents.emplace_back(axis.extent);
    return extents;
  };
  return reads_own_elements(dag, input, axes, [&](StageId id) { return dag[id].body; });
}

bool reads_in_place(const DagRange& range, StageId input) {
  return reads_own_elements(
      range.form(),
      input,
      [&](StageId id) { return range.axes(id); },
      [&](StageId id) { return range.body(id); });
}

}  // namespace pruner
