// How a sketch's decisions become loops: one plan for each compute stage. A cluster is a root
// stage, tiled, with the stages attached inside its loops; on a CPU level 0 of its loops runs in
// parallel, on a GPU a cluster is a kernel. One cluster may run inside another's loops: then it
// computes, in tiles of its own, what a tile of the other reads (a convolution inside the pooling
// that follows it).
#pragma once

#include <array>
#include <vector>

#include "space/access.h"
#include "space/gpu/attention.h"
#include "space/structure.h"
#include "tensor/constant_part.h"
#include "tensor/operation_counts.h"

namespace pruner {

struct DotInstruction;

/// A decision of the sketch by its place; kFixed means that there is none and the value is 1 (a
/// factor) or 0 (an order, a location).
using DecisionRef = int;
inline constexpr DecisionRef kFixed = -1;

/// The iterations of one level's loop over an axis: a decision's value, or a number.
struct Factor {
  /// Numbers with a meaning (structure.h).
  static constexpr int32_t kRest = 0, kBlockThreads = -1, kBlockWarps = -2;
  DecisionRef decision = kFixed;
  int32_t count = 1;
};

/// The loops over one axis of a stage, or over several fused.
struct AxisTiles {
  /// The treatment of tiles that reach past the end of an axis.
  enum class Ends : uint8_t {
    kBeyond,   // nothing is done past the end of the axis
    kCut,      // the loops of the tiles are cut short
    kOverlap,  // the tiles start earlier
  };
  int axis = 0;  // iterator of the stage, or kFused... (loop_nest.h)
  bool vector = false;
  Ends ends = Ends::kBeyond;
  std::array<Factor, kMostLevels> factors = {};  // one per level of the structure
  uint32_t looped = 0;                           // bit l: level l may have more than 1 iteration

  /// Returns the decision of a level; kFixed if it has none.
  DecisionRef decision(int level) const { return factors[level].decision; }
};

/// In how many of a root's levels an attached stage may hang.
enum class Location : int32_t { kRoot = 0, kAfterParallel = 1, kAfterMiddle = 2 };

struct StagePlan {
  StageId stage;
  StageId root;  // root of the cluster; for a part of a transform or a row, its reader
  const LoopStructure* structure = nullptr;
  int first = 0;                // first level of the structure that the stage has
  std::vector<uint8_t> levels;  // levels of the stage in loop order, outermost first
  std::vector<AxisTiles> tiles;
  int lanes = 1;  // lanes of the vectorised innermost loop; 1: none

  // Fields that say where the stage is computed.
  StageId at;                     // stage whose loops are around; invalid: at the root
  int at_levels = -1;             // number of its levels that are around; < 0: at the root
  DecisionRef location = kFixed;  // decision in place of at_levels, if there is one
  bool box = false;               // computes all that is read there, not just one tile
  bool operand = false;           // is an operand of a GPU's contraction, in shared memory
  Scope memory = Scope::kLocal;   // memory of the results there; kWorkspace: they are kept

  // Fields of a root.
  bool overlaps = false;  // along the vector axis too: no packed operand asks for whole blocks
  DecisionRef parallel_order = kFixed, order = kFixed, streaming = kFixed;
  DecisionRef raster = kFixed;  // rows of blocks that go along the columns together
  int row_axes = 0;             // kBlockRows, kHeldRows: leading axes that number the rows

  // Fields of a stage that accumulates.
  bool window = false;  // no operand is shared by a tile's points: loads need registers too
  DecisionRef unroll = kFixed, prefetch = kFixed;
  DecisionRef buffers = kFixed;   // 2: the next chunk is fetched beside the sums of this one
  DecisionRef epilogue = kFixed;  // 1: the sums go through shared memory to the root
  struct Packed {
    StageId operand;
    int dim;                 // the dimension that the vector axis indexes
    std::vector<int> order;  // packed order of the dims, `dim` first
    int terms_dim = -1;      // the dimension whose neighbours one instruction reads; -1: none
  };
  std::vector<Packed> packed;

  /// Whether the stage accumulates the reduction of a cluster's anchor.
  bool accumulates() const { return first > 0 && first == structure->sum.level; }
  /// Whether the stage is an operand that lies in shared memory whole, before the chunks.
  bool is_held() const { return operand && at_levels == 0; }
  /// Whether the stage is the tiled root of a cluster whose tiles overlap.
  bool overlapped() const { return structure->overlaps && first == 0; }
  /// Whether other clusters read the stage, too.
  bool is_kept() const { return memory == Scope::kWorkspace; }
  /// Whether the stage's location follows from its readers' locations.
  bool follows_readers() const { return structure == &kBox || structure == &kFold; }
};

/// Facts of a sketch, beside the plans, that make_loop_nest() needs; computed once, by stage.
struct SketchTables {
  AccessTable accesses;
  /// The readers of a stage; for a kept stage only the readers in the cluster that computes it.
  IdMap<StageId, std::vector<StageId>> consumers;
  /// The stages that must be computed at the same place as a stage or further inside: its readers.
  /// A cluster's root is also followed by the readers elsewhere of what the cluster keeps.
  IdMap<StageId, std::vector<StageId>> followers;
  IdMap<StageId, int> plan_of;                 // place of the stage in the plans; -1: a placeholder
  IdMap<StageId, double> body_operations;      // vector instructions of one evaluation
  ConstantParts constant_parts;                // constant ranges before which loops end
  IdMap<StageId, const DotInstruction*> dots;  // dot instruction; null: none
  IdMap<StageId, double> dot_rates;            // rate of the dot instruction
  IdMap<StageId, std::optional<MmaContraction>> mmas;  // contractions that warps accumulate
  std::optional<AttentionKernel> attention;            // the kernel of is_attention()
  IdMap<StageId, OperationCounts> counts;  // operations of the body, iterators as they stand
  IdMap<StageId, std::vector<int>> iterator_uses;  // uses of each iterator in the body
};

}  // namespace pruner
