// How a sketch's decisions become loops: one plan for each compute stage. A cluster is a root
// stage, tiled, with the stages attached inside its loops; level 0 of its loops runs in parallel.
// One cluster may run inside another's loops: then it computes, in tiles of its own, what a tile of
// the other reads (a convolution inside the pooling that follows it).
// On a GPU a cluster is a kernel, and level 0 are its blocks.
#pragma once

#include <array>
#include <vector>

#include "space/access.h"
#include "tensor/operation_counts.h"

namespace pruner {

/// A decision of the sketch by its place; kFixed means that there is none and the value is 1 (a
/// factor) or 0 (an order, a location).
using DecisionRef = int;
inline constexpr DecisionRef kFixed = -1;

/// The tiles of one axis of a cluster's root: outer (the rest) | middle | inner | registers. For
/// the vector axis the register tile counts vectors.
struct AxisPlan {
  int axis = 0;
  bool vector = false;
  DecisionRef middle = kFixed, inner = kFixed, registers = kFixed;
};

/// The tiles of one axis on a GPU. A spatial axis: blocks (the rest) | virtual threads | threads |
/// outer | inner, the five S of Ansor's SSSRRSRS. A reduce axis: chunks (the rest) | outer | inner,
/// its three R.
struct GpuAxisPlan {
  int axis = 0;  // iterator of the stage
  DecisionRef vthreads = kFixed, threads = kFixed, outer = kFixed, inner = kFixed;
};

enum class StageRole : uint8_t {
  kTileRoot,       // the root of a cluster: writes what the others computed for a tile
  kAnchor,         // its contraction or windowed reduction, accumulated in registers
  kAttached,       // computed where a location decision says
  kRowPart,        // an rfactor stage: lanes of partial results of the stage that consumes it
  kTransform,      // a root whose tile is unrolled (Stage::unrolled), one tile after the other
  kTransformPart,  // what a transform reads of one tile, in registers

  kBlockTile,     // GPU: the root of a contraction's kernel: each block computes a tile
  kThreadTile,    // ... the contraction: each thread accumulates its part of the tile
  kSharedTile,    // ... what the block's threads fetch of an operand for a chunk of the reduction
  kElements,      // GPU: a root of which each thread computes a few elements
  kElement,       // ... a reduction that one element of its root needs
  kRows,          // GPU: a root of which a block computes rows, each with a few threads
  kRowReduction,  // ... a reduction that a row needs, with all threads of the row
};

/// Where an attached stage or a cache tile may hang in the root's loops.
enum class Location : int32_t { kRoot = 0, kAfterParallel = 1, kAfterMiddle = 2 };

struct StagePlan {
  StageId stage;
  StageRole role = StageRole::kTileRoot;
  StageId root;   // of the cluster (kRowPart, kTransformPart: the stage it is attached to)
  int lanes = 1;  // of the vectorised innermost loop; 1: none

  // kTileRoot
  std::vector<AxisPlan> axes;
  bool overlaps = false;  // along the vector axis too: no packed operand asks for whole blocks
  StageId inside;         // the root in whose loops `location` may put the cluster
  DecisionRef parallel_order = kFixed, order = kFixed, streaming = kFixed;

  // kAnchor
  bool cache_tile = false;  // SSRSRS: accumulates a tile in cache over chunks of the reduction
  bool window = false;      // no operand is shared by a tile's points: loads need registers too
  int chunk_axis = -1;      // reduce axis (iterator number) that is chunked
  DecisionRef chunk = kFixed, unroll = kFixed, prefetch = kFixed;
  struct Packed {
    StageId operand;
    int dim;                 // the dimension that the vector axis indexes
    std::vector<int> order;  // packed order of the dims, `dim` first
  };
  std::vector<Packed> packed;

  // kAttached; kTileRoot with `inside`
  DecisionRef location = kFixed;

  // kBlockTile: spatial axes; kThreadTile: reduce axes
  std::vector<GpuAxisPlan> tiles;
  DecisionRef double_buffer = kFixed;  // kThreadTile: fetch the next chunk beside the sums of this
  DecisionRef vectors = kFixed;        // kSharedTile: elements that a thread fetches at once
  DecisionRef threads = kFixed;        // kElements: of a block; kRows: of a row
  DecisionRef elements = kFixed;       // kElements: a thread; kRows: rows of a block
  int row_axes = 0;                    // kRows: leading axes that number the rows
};

/// What make_loop_nest needs of a sketch beyond the plans, computed once.
struct SketchTables {
  AccessTable accesses;
  std::vector<std::vector<StageId>> consumers;  // by stage
  std::vector<int> plan_of;                     // by stage; -1: placeholder
  std::vector<double> body_operations;          // by stage: vector instructions of one evaluation
  std::vector<OperationCounts> counts;          // by stage: of its body, iterators as they stand
  std::vector<std::vector<int>> iterator_uses;  // by stage and iterator: how often it stands there
};

}  // namespace pruner
