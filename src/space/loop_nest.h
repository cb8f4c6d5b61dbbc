// The loop nest of a candidate, before any IR: stages, their loops, where each is attached and
// where it is stored. Legality, symbols, features and lowering all read this; it is plain data made
// in microseconds.
//
// The DAG is the sketch's (cache-write, cache-read and rfactor stages added, inlined stages gone).
// Tiles are always full: a loop with clamp >= 0 starts its last tile at `clamp` instead of beyond
// the end, so neighbouring tiles overlap and recompute a few elements.
//
// On a GPU each root is a kernel: its kBlock loops, then its kThread loops, then what a thread
// does. Tiles reach beyond the end of an axis, where nothing is loaded, folded or stored. A loop
// may run over several axes fused (kFused...). The kThread loops of stages attached in a kernel are
// its threads again, numbered anew.
#pragma once

#include <cstdint>
#include <vector>

#include "space/loop_kind.h"
#include "tensor/compute_dag.h"
#include "tensor/pack.h"

namespace pruner {

/// Axes of a NestLoop that stand for several, fused in row-major order.
inline constexpr int kFusedSpatial = -1;  // the spatial axes from NestStage::row_axes on
inline constexpr int kFusedReduce = -2;   // the reduce axes
inline constexpr int kFusedRows = -3;     // the spatial axes before NestStage::row_axes

/// One loop: its axis advances by `step` an iteration.
struct NestLoop {
  int axis = 0;        // iterator of the stage: spatial axes, then reduce axes; or kFused...
  int64_t extent = 1;  // iterations
  int64_t step = 1;    // elements of the axis an iteration advances
  LoopKind kind = LoopKind::kSerial;
  int64_t clamp = -1;   // >= 0: the axis' start is min(i * step, clamp)
  int64_t unit = 1;     // divisor of step and clamp, at every extent of an open axis
  bool ragged = false;  // a reduce loop under an outer one that does not divide its axis: it runs
                        // min(extent, what is left) times
};

struct NestStage {
  StageId stage;
  const struct LoopStructure* structure = nullptr;  // structure that the loops follow
  StageId at;                      // attached inside this stage's loops; invalid: at root
  int depth = 0;                   // ... inside its first `depth` loops
  Scope scope = Scope::kArgument;  // memory of the stage's results
  int parallel_loops = 0;          // the first n loops, fused, run in parallel (root stages)
  std::vector<NestLoop> loops;     // outer to inner
  std::vector<int64_t> extents;    // elements of each spatial axis computed at one visit
  int64_t unroll_steps = 0;        // statements that the unrolled reduction body may hold
  int64_t prefetch_bytes = 0;      // distance ahead for streamed operands; 0: none; kPrefetchRound
  bool streaming = false;          // its stores go past the caches
  int row_axes = 0;                // GPU kernel of rows: leading axes that number the rows
  int chunk_loops = 0;             // GPU contraction: number of its first loops, over chunks
  int64_t buffers = 1;             // GPU: chunks of operands that shared memory holds at a time
  bool epilogue = false;           // GPU: its sums go through shared memory to the root

  /// Returns the chunks of a GPU contraction.
  int64_t chunks() const;
  /// Returns the iterations of a GPU contraction over an axis in one chunk.
  int64_t chunk_extent(int axis) const;
  /// Returns the elements of an axis that one block of a GPU kernel computes.
  int64_t block_extent(int axis) const;
};

/// A weight, or a copy in the kernel's workspace, that lies in the order of the loops that read it.
struct PackedOperand {
  StageId operand;
  PackSpec spec;
};

struct LoopNest {
  const ComputeDag* dag = nullptr;              // DAG of the sketch
  const struct SketchTables* tables = nullptr;  // tables of the sketch
  std::vector<NestStage> stages;                // compute stages, producers first
  std::vector<PackedOperand> packed;

  const NestStage& of(StageId id) const;
};

/// Returns how an operand is packed; null if it is not.
const PackSpec* packing_of(const LoopNest& nest, StageId operand);
/// Returns how an argument of the nest's program is stored: transformed, packed, both or neither.
PackSpec stored_form(const LoopNest& nest, StageId argument);

std::string print(const LoopNest& nest);

}  // namespace pruner
