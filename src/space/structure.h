// Schedules as data. A structure lists the levels of a stage's loops, from outside in: which axes
// each splits, what its loops are bound to, and what decides how many iterations they have; and
// where, between them, a reduction is accumulated and its operands are fetched. Ansor writes them
// as strings (section 4.1: SSRSRS on CPUs, SSSRRSRS on GPUs); MetaSchedule adds what they are bound
// to. A structure is a row in structures.cpp, and all else follows from it: decisions, loop nest,
// limits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "space/loop_kind.h"
#include "tensor/task.h"

namespace pruner {

enum class DecisionKind : uint8_t;

/// The axes of a stage that a level splits.
enum class Axes : uint8_t {
  kSpace,           // each spatial axis
  kReduction,       // each reduce axis
  kFusedSpace,      // the spatial axes, fused: those that number no rows, in tiles of
                    // Stage::unrolled
  kFusedRows,       // ... those that number rows
  kFusedReduction,  // the reduce axes, fused
};
inline bool is_fused(Axes axes) { return axes >= Axes::kFusedSpace; }

/// The part of a machine, or the kind of code, that the loops of a level are bound to.
enum class Bind : uint8_t {
  kCores,           // the threads of a CPU
  kBlocks,          // the blocks of a GPU's grid
  kVirtualThreads,  // tiles that a thread computes in turns, strided over the block
  kThreads,
  kWarps,        // warps, or groups of four, that issue one instruction together
  kSerial,       // a loop
  kUnrolled,     // copies in registers
  kVector,       // lanes
  kTerms,        // products that one instruction adds to the sum in each lane
  kMatrix,       // vectors of sums, or of terms, that a matrix instruction takes at once
  kInstruction,  // a tile that one instruction computes
};

/// The source of the iterations of a level's loop over an axis.
enum class Iterations : uint8_t {
  kRest,           // the rest of the axis, which the levels inside leave
  kDecided,        // a decision
  kOfLongest,      // a decision for the longest reduce axis, all of the others
  kLanes,          // lanes of the vector, for the vector axis
  kTile,           // extent in Stage::unrolled, for the axes that are named there
  kBlockThreads,   // the threads of the block
  kBlockWarps,     // the warps of the block
  kLanesOfWarp,    // the lanes of a warp
  kShape,          // the instruction's extent along the axis
  kRows,           // matrix_rows(), for the last axis longer than 1 before the vector axis
  kSteps,          // matrix_steps(), for the last reduce axis longer than 1
  kFragmentLanes,  // lanes of a warp along the rows or the columns of an instruction's sums
  kFragment,       // rows or columns of the sums that each lane has
};

/// An axis whose levels are to be decided.
struct TiledAxis {
  int64_t extent = 1;  // in elements, vectors (vector axis) or tiles of an instruction
  int lanes = 1;       // lanes of a vector axis
  bool vector = false;
  int64_t element_bytes = 4;
  const Target* target = nullptr;
  int64_t of_instruction = 1;  // elements of an instruction's tile along the axis
};

/// One level of a structure: how some axes of a stage are split at one depth of its loops.
struct Level {
  Axes axes;
  Bind bind;
  Iterations iterations = Iterations::kRest;
  DecisionKind kind = {};
  /// `name` is the end of a decision's name, after the axis's name or, if axes are fused, after the
  /// stage's. `vector_name` replaces `name` for the vector axis unless null.
  const char* name = "";
  const char* vector_name = nullptr;
  /// Returns the choices of a decision; nullptr: the root's decision of the same name is used.
  std::vector<int32_t> (*choices)(const TiledAxis& axis) = nullptr;
};

/// A place between the levels of a structure at which sums or operands are held.
struct Staging {
  int level = -1;    // first of the levels inside the place; < 0: no such place
  int loops_of = 0;  // number of levels around the place, in the order of their loops
  Scope memory = Scope::kRegister;
};

struct LoopStructure {
  const char* name;
  std::span<const Level> levels;
  /// `sum` is the place at which a separate stage accumulates the reduction; that stage has the
  /// levels from there on. Without `sum` the reduction is among the stage's own levels.
  Staging sum = {};
  /// `fetch` is the place at which the operands are fetched, each by a stage of structure kFetch.
  Staging fetch = {};
  std::span<const int32_t> unroll = {};   // choices of the statements in an unrolled reduction
  std::span<const int32_t> buffers = {};  // ... of the chunks of operands that there is room for
  std::span<const int32_t> raster = {};  // ... of rows of blocks that go along the columns together
  std::span<const int32_t> epilogue = {};  // ... of how the sums get to the root: 1: through shared
                                           // memory
  /// Tiles that would leave an axis start earlier and overlap; else they reach beyond its end.
  bool overlaps = false;
  /// Extents of its instruction's tile along the last spatial axes and, last, the last reduce axis.
  std::span<const int64_t> instruction = {};
  int warps = 1;  // warps that run the instruction together: the four of a group, or one
  /// Rows and steps that an instruction on tiles takes at most, and the vector registers that one
  /// tile of sums is in; 0: tiles have registers of their own.
  int tile_rows = 1, tile_steps = 1, tile_vectors = 0;

  /// Whether the operands are fetched: the structure is a contraction's in a GPU kernel.
  constexpr bool fetches() const { return fetch.level >= 0; }
  /// Whether its instruction computes tiles of sums from rows of terms.
  constexpr bool has_matrix() const {
    for (const Level& level : levels)
      if (level.bind == Bind::kMatrix) return true;
    return false;
  }
  /// Whether the lanes of a warp hold its instruction's matrices together (space/fragment.h).
  constexpr bool has_fragments() const {
    for (const Level& level : levels)
      if (level.iterations == Iterations::kFragment) return true;
    return false;
  }
  /// Whether groups of warps compute it by instructions that read shared memory.
  constexpr bool is_of_groups() const { return warps > 1; }
  /// The first level whose loops are unrolled or are lanes: what is inside stands in registers.
  constexpr int registers() const {
    int level = 0;
    while (level < static_cast<int>(levels.size()) && levels[level].bind < Bind::kUnrolled) ++level;
    return level;
  }
};

/// Most levels that a structure has.
inline constexpr int kMostLevels = 10;

/// How a level's loops run in a program; of a stage at whose root they are bound to cores.
constexpr LoopKind loop_kind(Bind bind) {
  switch (bind) {
    case Bind::kBlocks: return LoopKind::kBlock;
    case Bind::kThreads:
    case Bind::kWarps: return LoopKind::kThread;
    case Bind::kVirtualThreads:
    case Bind::kUnrolled:
    case Bind::kInstruction: return LoopKind::kUnroll;
    case Bind::kTerms: return LoopKind::kDot;
    case Bind::kMatrix: return LoopKind::kMatrix;
    case Bind::kVector: return LoopKind::kVectorize;
    case Bind::kCores:
    case Bind::kSerial: break;
  }
  return LoopKind::kSerial;
}

/// "SSRSRS": the levels that split axes one by one, but for those of constant iterations.
std::string print(const LoopStructure& structure);

// On CPUs. A cluster with an anchor, and one without.
extern const LoopStructure kRegisterTile, kCacheTile, kPointwise;
// A stage attached to a cluster: loops over the box that is read there, the folding of an rfactor
// stage's lanes, that stage, and the tiles of Stage::unrolled.
extern const LoopStructure kBox, kFold, kRowPart, kTransform;
// On GPUs: a contraction, what fetches its operands, a few elements a thread, rows of a block, a
// tile of Stage::unrolled a thread.
extern const LoopStructure kBlockTile, kFetch, kThreadElements, kBlockRows, kThreadTransform;
/// Rows of a contraction's first operand that the warps of a block compute, a warp a row, and keep
/// in shared memory whole; and the reductions of these rows.
extern const LoopStructure kHeldRows;
/// Returns how many of its `rows` rows of `elements` a warp of kHeldRows loads before it reduces
/// the first of them: a divisor, as far as a lane has registers.
int64_t rows_at_once(int64_t rows, int64_t elements);
/// Returns the most registers of a lane that these rows take.
int64_t row_lane_registers(int64_t elements);

/// The most elements that a thread of kBlockRows keeps in registers, of all tensors whose rows it
/// keeps.
inline constexpr int64_t kMostHeldElements = 64;
/// Attention as one kernel (gpu/attention.h), of single warps or of groups of them: the weighed
/// values and their root, which have the same levels; the products of queries and keys; what each
/// thread makes of its scores in registers.
extern const LoopStructure kAttentionTile, kGroupAttentionTile, kAttentionScores, kAttentionPart;
inline bool is_attention(const LoopStructure& structure) {
  return &structure == &kAttentionTile || &structure == &kGroupAttentionTile;
}

/// Levels of kAttentionTile, kGroupAttentionTile and kAttentionScores, by their numbers.
enum AttentionLevel : uint8_t {
  kAttentionBlocks,
  kAttentionWarps,
  kAttentionLanes,
  kAttentionChunks,
  kAttentionSteps,
  kAttentionFragments,
  kAttentionTerms,
  kAttentionElements,
};
/// ... of kAttentionPart.
enum AttentionPartLevel : uint8_t {
  kPartFragments,
  kPartSteps,
  kPartElements,
  kPartTerms,
};

/// Whether a thread of a GPU moves a run of so many elements at once: both of its languages have
/// vectors of up to 8.
constexpr bool is_gpu_vector(int64_t run, int64_t element_bytes, const Gpu& gpu) {
  return run >= 1 && run <= 8 && (run & (run - 1)) == 0 && run * element_bytes <= gpu.vector_bytes;
}

/// A structure of the contractions of a sketch: one sketch each, where it applies.
struct StructureRule {
  const LoopStructure* structure;
  /// Whether a DAG has such a sketch on this target.
  bool (*applies)(const ComputeDag& dag, const Target& target);
  /// Whether sample() draws from it; null: always.
  bool (*drawn)(const ComputeDag& dag, const Target& target) = nullptr;
};
extern const std::span<const StructureRule> kStructureRules;

}  // namespace pruner
