// Our Symbol-based Analyzer: the structure of Pruner's (symbols of each statement at levels L0, L1,
// L2, a penalty at each, a latency; Pruner, section 4.2) with the meanings of a CPU, and of a GPU
// by kernel. Closed form on the loop nest, a few microseconds a candidate; its numbers are those of
// target/machine_model.h.
#pragma once

#include <string>
#include <vector>

#include "analysis/penalty.h"
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

/// What one kernel costs a GPU.
struct KernelSymbols {
  StageId root;
  double blocks = 1, threads = 1;  // threads of a block
  double registers = 0;            // of a thread (gpu_registers.h); may be more than it gets
  double active_warps = 1;         // of a multiprocessor, of all blocks that it holds at a time
  double filled = 1;               // share of the multiprocessors' time that has a block to run
  double compute_s = 0;            // operations of all threads, idle lanes and idle time included
  double shared_s = 0;             // loads from shared memory
  double l2_bytes = 0;             // that the blocks fetch, in whole transactions
  double dram_bytes = 0;           // each operand and the result once
};

struct Draft {
  std::vector<StageSymbols> stages;    // of a CPU, in the nest's order
  std::vector<KernelSymbols> kernels;  // of a GPU, in the order of their launches
  double latency_s = 0;
};

Draft draft(const LoopNest& nest, const Target& target, Penalties penalties = {});

/// The seconds alone.
double draft_latency_s(const LoopNest& nest, const Target& target, Penalties penalties = {});

/// One line a stage: what --print=draft shows.
std::string print(const Draft& draft, const ComputeDag& dag);

}  // namespace pruner
