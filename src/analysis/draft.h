// The Symbol-based Analyzer for CPUs, first version: the structure of Pruner's analyzer (symbols of
// each statement at levels L0, L1, L2, a penalty at each, a latency; Pruner, section 4.2) with CPU
// meanings. Closed form on the loop nest, a few microseconds a candidate.
#pragma once

#include <string>
#include <vector>

#include "space/loop_nest.h"
#include "target/target.h"

namespace pruner {

/// What one stage costs all threads together. Cycles are of the target's vector pipeline.
struct StageSymbols {
  StageId stage;
  double visits = 1;            // times its loops are entered
  double steps = 1;             // evaluations of its register tile
  double operation_cycles = 0;  // of one step: vector operations, idle lanes included
  double memory_cycles = 0;     // of one step: loads and stores that reach L1
  double chain_cycles = 0;  // of one step: the dependence chain of the accumulators (penalty at L0)
  double overhead_cycles = 0;  // of all: loop control, tiles set up and written back
  double l2_bytes = 0;         // that L1 does not hold
  double l3_bytes = 0;         // that L2 does not hold
  double dram_bytes = 0;       // constants: cold in a network, streamed once
};

struct Draft {
  std::vector<StageSymbols> stages;  // in the nest's order
  double latency_s = 0;
};

Draft draft(const LoopNest& nest, const Target& target);

/// The seconds alone.
double draft_latency_s(const LoopNest& nest, const Target& target);

/// One line a stage: what --print=draft shows.
std::string print(const Draft& draft, const ComputeDag& dag);

}  // namespace pruner
