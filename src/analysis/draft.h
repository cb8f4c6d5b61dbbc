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

/// The cost of one stage for all threads together, in cycles of the target's vector pipeline.
struct StageSymbols {
  StageId stage;
  double visits = 1;            // times that the stage's loops are entered
  double steps = 1;             // evaluations of the register tile
  double operation_cycles = 0;  // vector operations of one step, idle lanes included
  double memory_cycles = 0;     // loads and stores of one step that reach L1
  double chain_cycles = 0;      // dependence chain of a step's accumulators (penalty at L0)
  double overhead_cycles = 0;   // total of loop control, tiles set up and written back
  double l2_bytes = 0;          // bytes that L1 does not hold
  double l3_bytes = 0;          // bytes that L2 does not hold
  double dram_bytes = 0;        // bytes of memory; constants are cold in a network, streamed once
};

/// The cost of one kernel on a GPU.
struct KernelSymbols {
  StageId root;
  double blocks = 1, threads = 1;  // threads of a block
  double registers = 0;            // need of a thread (gpu_registers.h), maybe more than it gets
  double active_warps = 1;         // warps of all blocks that a multiprocessor holds at a time
  double filled = 1;               // share of the multiprocessors' time that has a block to run
  double compute_s = 0;            // operations of all threads, idle lanes and idle time included
  double shared_s = 0;             // loads from shared memory
  double l2_bytes = 0;             // bytes that the blocks fetch, in whole transactions
  double dram_bytes = 0;           // bytes of each operand and the result once, and L2's misses
};

struct Draft {
  std::vector<StageSymbols> stages;    // stages on a CPU, in the nest's order
  std::vector<KernelSymbols> kernels;  // kernels on a GPU, in launch order
  double latency_s = 0;
};

Draft draft(const LoopNest& nest, const Target& target, Penalties penalties = {});

/// Returns the latency_s of draft() alone.
double draft_latency_s(const LoopNest& nest, const Target& target, Penalties penalties = {});

/// One line a stage: what --print=draft shows.
std::string print(const Draft& draft, const ComputeDag& dag);

}  // namespace pruner
