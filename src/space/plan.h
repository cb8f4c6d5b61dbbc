// How a sketch's decisions become loops: one plan for each compute stage. A cluster is a root
// stage, tiled, with the stages attached inside its loops; on a CPU level 0 of its loops runs in
// parallel, on a GPU a cluster is a kernel. One cluster may run inside another's loops: then it
// computes, in tiles of its own, what a tile of the other reads (a convolution inside the pooling
// that follows it).
#pragma once

#include <array>
#include <vector>

#include "space/access.h"
#include "space/gpu/mma_contraction.h"
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
  static constexpr int32_t kRest = 0, kBlockThreads = -1;  // numbers with a meaning (structure.h)
  DecisionRef decision = kFixed;
  int32_t count = 1;
};

/// The loops over one axis of a stage, or over several fused.
struct AxisTiles {
  /// Where the tiles of an axis leave it.
  enum class Ends : uint8_t {
    kBeyond,   // nothing is done with what lies past its end
    kCut,      // their loops are cut short
    kOverlap,  // they start earlier
  };
  int axis = 0;  // iterator of the stage, or kFused... (loop_nest.h)
  bool vector = false;
  Ends ends = Ends::kBeyond;
  std::array<Factor, kMostLevels> factors = {};  // by level of the structure
  uint32_t looped = 0;                           // bit l: level l may have more than 1 iteration

  /// The decision of a level; kFixed: it has none.
  DecisionRef decision(int level) const { return factors[level].decision; }
};

/// In how many of a root's levels an attached stage may hang.
enum class Location : int32_t { kRoot = 0, kAfterParallel = 1, kAfterMiddle = 2 };

struct StagePlan {
  StageId stage;
  StageId root;  // of the cluster; of a part of a transform or a row: the stage that reads it
  const LoopStructure* structure = nullptr;
  int first = 0;                // it has the structure's levels from here on
  std::vector<uint8_t> levels;  // its levels in the order of their loops, the outermost first
  std::vector<AxisTiles> tiles;
  int lanes = 1;  // of the vectorised innermost loop; 1: none

  // Where it is computed.
  StageId at;                     // in the loops of this stage; invalid: at the root
  int at_levels = -1;             // ... in so many of its levels; < 0: at the root
  DecisionRef location = kFixed;  // where chosen, in place of at_levels
  bool box = false;               // of all that is read there, not just one tile
  Scope memory = Scope::kLocal;   // of what it writes there; kWorkspace: it is kept

  // A root.
  bool overlaps = false;  // along the vector axis too: no packed operand asks for whole blocks
  DecisionRef parallel_order = kFixed, order = kFixed, streaming = kFixed;
  DecisionRef raster = kFixed;  // rows of blocks that go along the columns together
  int row_axes = 0;             // kBlockRows: leading axes that number the rows

  // A stage that accumulates.
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

  /// Whether it accumulates the reduction of a cluster's anchor.
  bool accumulates() const { return first > 0 && first == structure->sum.level; }
  /// Whether it is the tiled root of a cluster that overlaps.
  bool overlapped() const { return structure->overlaps && first == 0; }
  /// Whether other clusters read it, too.
  bool is_kept() const { return memory == Scope::kWorkspace; }
  /// Whether its location follows from that of what it feeds.
  bool follows_readers() const { return structure == &kBox || structure == &kFold; }
};

/// What make_loop_nest needs of a sketch beyond the plans, computed once; by stage.
struct SketchTables {
  AccessTable accesses;
  /// What reads a stage; of one that is kept, in the loops that it is computed in.
  IdMap<StageId, std::vector<StageId>> consumers;
  /// What must be computed at the same place as a stage or further inside: what reads it and, of a
  /// cluster's root, what reads there what the cluster keeps.
  IdMap<StageId, std::vector<StageId>> followers;
  IdMap<StageId, int> plan_of;                         // its place in the plans; -1: a placeholder
  IdMap<StageId, double> body_operations;              // vector instructions of one evaluation
  ConstantParts constant_parts;                        // where loops end early
  IdMap<StageId, const DotInstruction*> dots;          // null: it has none
  IdMap<StageId, double> dot_rates;                    // DotRates' of it
  IdMap<StageId, std::optional<MmaContraction>> mmas;  // of what accumulates, by warps
  IdMap<StageId, OperationCounts> counts;              // of its body, iterators as they stand
  IdMap<StageId, std::vector<int>> iterator_uses;      // by iterator: how often it stands there
};

}  // namespace pruner
