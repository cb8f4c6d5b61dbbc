// Places every value of a running module: constants among the weights, the model's inputs and
// outputs in the caller's tensors, everything else in one arena. Values that are alive at the same
// time share no byte. Only an output may take the bytes of an input that is read at the same
// position. States have places of their own at the arena's begin. A kernel writes a state's next
// content there, if it may; else that content is copied after the last kernel.
#pragma once

#include <span>
#include <vector>

#include "graph/partition_range.h"
#include "support/ceil_div.h"

namespace pruner {

inline constexpr int64_t kArenaAlignment = 64;  // bytes: of a CPU; a GPU's is kPlanGpuAlignment

/// Returns the least multiple of `alignment` that has room for `bytes`.
constexpr int64_t aligned(int64_t bytes, int64_t alignment) {
  return ceil_div(bytes, alignment) * alignment;
}

/// Bytes of an arena that are taken from one step of a run to another, both included.
struct ArenaBlock {
  int64_t bytes = 0;
  int first = 0, last = 0;
  int64_t offset = -1;  // bytes from the arena's beginning; -1: not placed

  /// Whether some step needs both.
  bool meets(const ArenaBlock& other) const { return first <= other.last && other.first <= last; }
};

/// Gives every block its offset, the largest first; returns the bytes of the arena.
int64_t place_blocks(std::vector<ArenaBlock>& blocks);

/// Holds the facts about a group's kernel that the plan needs.
struct KernelMemory {
  int64_t workspace_bytes = 0;
  bool rewrites = false;  // its output must not share memory with an input (Artifact::rewrites)
};

enum class Place : uint8_t {
  kNone,      // nobody writes it, or nobody reads it
  kArena,     // index: byte offset
  kConstant,  // index: the value that has the data
  kInput,     // index: among the model's inputs without the states
  kOutput,    // index: among its outputs without them
  kNumbers,   // index: among the numbers that a plan works out of the shapes
  kFailures,  // index: byte offset among the words in which a GPU's checks of indices leave errors
};

struct ValuePlace {
  Place place = Place::kNone;
  int64_t index = 0;
  friend bool operator==(const ValuePlace&, const ValuePlace&) = default;
};

/// Bytes that are copied after the last kernel: an output that no kernel writes in the caller's
/// tensor, or a state's next content.
struct PlannedCopy {
  ValuePlace from, to;
  int64_t bytes = 0;
  ValueId value = {};  // the value that has the bytes
};

/// The states of a module at the begin of its arena, all phases' together.
struct StateMemory {
  std::vector<int64_t> offsets;  // arena offset of each of the partition's states
  int64_t bytes = 0;             // size of all states
};

/// Holds the decisions of plan_memory(), by number of value and of group.
struct MemoryPlan {
  std::vector<ValuePlace> values;   // one a value; an alias or a slice is where its bytes are
  std::vector<int64_t> workspaces;  // arena offset, one a group
  std::vector<PlannedCopy> copies;  // outputs first
  int64_t arena_bytes = 0;
};

/// Plans the memory of a partition with one of `kernels` a group. Offsets are multiples of
/// `alignment`. Without `states` the partition's states are inputs and outputs of the caller.
/// `range` holds the shapes of the plan, the partition being the greatest; null: one shape.
MemoryPlan plan_memory(const Partition& partition,
                       std::span<const KernelMemory> kernels,
                       int64_t alignment = kArenaAlignment,
                       const StateMemory& states = {},
                       const PartitionRange* range = nullptr);

/// Returns the bytes of a value's elements, which lie densely.
int64_t value_bytes(const PlannedValue& value);

/// Whether the DAG's output may overwrite `input`: every element of it that output element i
/// depends on is element i.
bool reads_in_place(const ComputeDag& dag, StageId input);
/// Whether the output may overwrite `input` at every shape of a range.
bool reads_in_place(const DagRange& range, StageId input);

}  // namespace pruner
