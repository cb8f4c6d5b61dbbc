// The loop nest of a candidate, before any IR: stages, their loops, where each is attached and
// where it is stored. Legality, symbols, features and lowering all read this; it is plain data made
// in microseconds.
//
// The DAG is the sketch's (cache-write, cache-read and rfactor stages added, inlined stages gone).
// Tiles are always full: a loop with clamp >= 0 starts its last tile at `clamp` instead of beyond
// the end, so neighbouring tiles overlap and recompute a few elements.
#pragma once

#include <cstdint>
#include <vector>

#include "space/loop_kind.h"
#include "tensor/compute_dag.h"
#include "tensor/pack.h"

namespace pruner {

/// One loop: its axis advances by `step` an iteration.
struct NestLoop {
  int axis = 0;        // iterator of the stage: spatial axes, then reduce axes
  int64_t extent = 1;  // iterations
  int64_t step = 1;    // elements of the axis an iteration advances
  LoopKind kind = LoopKind::kSerial;
  int64_t clamp = -1;   // >= 0: the axis' start is min(i * step, clamp)
  bool ragged = false;  // a reduce loop under an outer one that does not divide its axis: it runs
                        // min(extent, what is left) times
};

struct NestStage {
  StageId stage;
  StageId at;                      // attached inside this stage's loops; invalid: at root
  int depth = 0;                   // ... inside its first `depth` loops
  Scope scope = Scope::kArgument;  // of the buffer it writes
  int parallel_loops = 0;          // the first n loops, fused, run in parallel (root stages)
  std::vector<NestLoop> loops;     // outer to inner
  std::vector<int64_t> extents;    // elements of each spatial axis computed at one visit
  int64_t unroll_steps = 0;        // statements that the unrolled reduction body may hold
  int64_t prefetch_bytes = 0;      // ahead, of operands that stream; 0: none
  bool streaming = false;          // its stores go past the caches
};

/// A weight read in the order of the loops.
struct PackedOperand {
  StageId operand;
  PackSpec spec;
};

struct LoopNest {
  const ComputeDag* dag = nullptr;              // of the sketch
  const struct SketchTables* tables = nullptr;  // of the sketch
  std::vector<NestStage> stages;                // compute stages, producers first
  std::vector<PackedOperand> packed;

  const NestStage& of(StageId id) const;
};

std::string print(const LoopNest& nest);

}  // namespace pruner
