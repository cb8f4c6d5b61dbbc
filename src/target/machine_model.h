// The numbers that the drafts (analysis/) and the limits of a schedule (space/) take a machine to
// have beside its caches and rates, each with its unit and source. A GPU's are alike for all GPUs.
// A CPU's are part of its Target: these, or those that were fitted to programs measured on it
// (dataset/draft_fit.h).
//
// - manuals: the vendors' optimization manuals; for GPUs the CUDA C++ Programming Guide
// - fitted: by random search on 71 tasks of public K80 and V100 records (f378c86;
//   docs/inside/analysis.md)
// - swept: set where bench/operator_sweep.py --drawn found the draft wrong (bench/results)
// - draft_transfer: set by how well the draft chooses in bench/draft_transfer.py (Zen 5)
// - cubins: held against the cubins of sampled candidates (11f475e; bench/results)
// - judged: by who wrote it; the commit tells of no measurement
#pragma once

#include <cstdint>

namespace pruner {

/// A CPU: cycles are of one core; a vector is the widest that the target has.
struct CpuModel {
  double assumed_peak_flops = 50e9;  // peak of a core if nobody knows it (judged, bc05b9d)
  // A step of a register tile.
  double fma_latency_cycles = 5;     // manuals: 4; a chain of just 4 leaves gaps (judged, c614492)
  double window_instructions = 300;  // look-ahead of a core (manuals: 224 to 512; draft_transfer)
  double narrow_per_cycle = 2;  // loads or operations below a vector, at least (swept, 0aac60a)
  double gather_cycles_per_lane = 1;  // cost on a vector whose lanes lie apart (judged, bc05b9d)
  double spread_cycles = 0.6;         // cost of spreading a run over the lanes (measured, Zen 5)
  double spill_cycles = 3;        // to store and reload a vector without register (swept, 0061a58)
  double masked_step_factor = 3;  // on a step whose vectors have masks each (swept, 8f18c7e)
  double prefetch_cycles = 0.5;   // cost of one prefetch (judged, e305651)
  double exposed_step_share = 0.15;  // part of the shorter, operations or loads (judged, 70e4b9d)
  // A step of matrix instructions (measured on sapphirerapids, 2026-11).
  double least_matrix_rows = 9.3;   // fewer rows take as long
  double matrix_l2_factor = 1.8;    // on bytes from L2, whose lines no prefetcher fetches ahead
  double matrix_store_cycles = 32;  // to store one and read it again
  // Loops around a register tile.
  double loop_cycles = 1;           // to count an iteration and go back (judged, 70e4b9d)
  double entry_cycles = 6;          // to enter a stage's loops (judged, 70e4b9d)
  double tile_cycles = 12;          // to begin and end a tile of a reduction (judged, bc05b9d)
  double accumulator_cycles = 1.5;  // more for each of its vectors (judged, bc05b9d)
  double most_unrolled = 16;        // iterations that share one's loop control (judged, bc05b9d)
  double exposed_share = 0.25;      // part of all terms but the longest (judged, 70e4b9d)
  // Caches.
  double usable_cache_share = 0.75;    // usable part; neighbours evict the rest (judged, 70e4b9d)
  double set_ways = 6;                 // ways of 8, beside what streams (judged, bc05b9d)
  double set_conflict_factor = 2.5;    // on loads of more rows in one set (judged, bc05b9d)
  double run_start_lines = 2;          // lines L3 brings while a new run starts (draft_transfer)
  double parted_pair_factor = 1.5;     // lines fetched for each one used in time (draft_transfer)
  double contended_piece_bytes = 512;  // longer pieces have few ends (judged, 33bdcc3)
  double contention_transfers = 4;     // between cores for a contended line (judged, 33bdcc3)
  // Memory.
  double stream_start_bytes = 8192;  // bytes brought while a new stream starts (judged, 7ea9e14)
  double most_starts = 1;        // part of the stream time when starts overlap (judged, 19a9fcc)
  double streams_in_turns = 16;  // a line of each, that prefetchers follow (judged, 19a9fcc)
  double prefetched_wait_share = 0.85;  // part of the time when code prefetches (judged, 33bdcc3)
  double round_wait_share = 0.65;       // ... a round ahead (measured on sapphirerapids, 2026-11)

  bool operator==(const CpuModel&) const = default;
};

/// The numbers below are alike for every CPU: code is made with them, and no fit moves
/// formulas that use them.
inline constexpr int64_t kMatrixRegisters = 8;    // tile registers of AMX (Intel's manual)
inline constexpr int64_t kSetPeriodBytes = 4096;  // sets x line of an x86 L1, 64 x 64 (manuals)
inline constexpr int64_t kMostRoundBytes = 512 << 10;  // prefetched, beside the next in L2 (judged)

/// CpuModelRow gives a number of CpuModel its name in device files and says whether a fit may move
/// the number. A fit may not move the numbers of matrix instructions, which few programs have.
struct CpuModelRow {
  const char* name;
  double CpuModel::*field;
  bool fitted = true;
  double most = 1e12;  // upper bound; 1 for a share
};
inline constexpr CpuModelRow kCpuModelRows[] = {
    {"assumed_peak_flops", &CpuModel::assumed_peak_flops, false},
    {"fma_latency_cycles", &CpuModel::fma_latency_cycles},
    {"window_instructions", &CpuModel::window_instructions},
    {"narrow_per_cycle", &CpuModel::narrow_per_cycle},
    {"gather_cycles_per_lane", &CpuModel::gather_cycles_per_lane},
    {"spread_cycles", &CpuModel::spread_cycles},
    {"spill_cycles", &CpuModel::spill_cycles},
    {"masked_step_factor", &CpuModel::masked_step_factor},
    {"prefetch_cycles", &CpuModel::prefetch_cycles},
    {"exposed_step_share", &CpuModel::exposed_step_share, true, 1},
    {"least_matrix_rows", &CpuModel::least_matrix_rows, false},
    {"matrix_l2_factor", &CpuModel::matrix_l2_factor, false},
    {"matrix_store_cycles", &CpuModel::matrix_store_cycles, false},
    {"loop_cycles", &CpuModel::loop_cycles},
    {"entry_cycles", &CpuModel::entry_cycles},
    {"tile_cycles", &CpuModel::tile_cycles},
    {"accumulator_cycles", &CpuModel::accumulator_cycles},
    {"most_unrolled", &CpuModel::most_unrolled},
    {"exposed_share", &CpuModel::exposed_share, true, 1},
    {"usable_cache_share", &CpuModel::usable_cache_share, true, 1},
    {"set_ways", &CpuModel::set_ways},
    {"set_conflict_factor", &CpuModel::set_conflict_factor},
    {"run_start_lines", &CpuModel::run_start_lines},
    {"parted_pair_factor", &CpuModel::parted_pair_factor},
    {"contended_piece_bytes", &CpuModel::contended_piece_bytes},
    {"contention_transfers", &CpuModel::contention_transfers},
    {"stream_start_bytes", &CpuModel::stream_start_bytes},
    {"most_starts", &CpuModel::most_starts},
    {"streams_in_turns", &CpuModel::streams_in_turns},
    {"prefetched_wait_share", &CpuModel::prefetched_wait_share, true, 1},
    {"round_wait_share", &CpuModel::round_wait_share, true, 1},
};

/// A GPU: registers are of a thread, instructions and cycles of a multiprocessor unless said.
struct GpuModel {
  // Memory.
  int sector_bytes = 32;            // unit in which global memory is moved (manuals)
  int banks = 32, bank_bytes = 4;   // shared memory; each bank gives a word a cycle (manuals)
  int register_bytes = 4;           // size of a thread's register (manuals)
  double l1_sectors_per_cycle = 4;  // a line of 128 bytes (judged, f378c86)
  // Registers: beside accumulators a limit too, of which NVRTC rejected 0 of 2,204 candidates; the
  // fit on records gave 28, and 32 keeps better ones (docs/inside/analysis.md, The parameters).
  int64_t registers_beside_accumulators = 32;  // addresses, operands (judged, 05cd9bd; records)
  double exchange_cycles = 30;  // an exchange with another lane, and its sum (judged)
  double warp_registers = 18;   // a warp's registers beside sums, fragments and copies (cubins)
  double group_tile_registers = 30;  // a group's registers beside sums and copies (cubins)
  int64_t group_registers = 28;      // descriptors and addresses of a group, beside these (cubins)
  double attention_registers = 46;   // beside attention's sums, scores and weights (cubins)
  double copy_registers = 2, odd_copy_registers = 9;  // registers per copy of an operand (cubins)
  double copies_apart = 16;                           // an operand's copies with registers (cubins)
  double registers_per_accumulator = 1.15;            // a little more than one each (fitted)
  double contraction_registers = 24;                  // beside tile, operands and fetches (cubins)
  double element_registers = 12, row_registers = 12;  // beside terms (cubins)
  double row_reduction_registers = 4;                 // registers per reduction of a row (cubins)
  double element_terms = 32, row_terms = 16;  // unrolled by the compiler, in registers (cubins)
  int64_t rounds_in_flight = 4;               // rounds of a loop that fetches (cubins)
  // The compiler.
  double unrolled_copies = 128;     // copies of a body, unrolled unasked (fitted; cubins)
  double reused_copies = 16;        // most copies that keep a load in a register (judged, cc9e18f)
  double call_operations = 4;       // cost of a math function or a division (judged, cc9e18f)
  double division_operations = 4;   // cost of an integer division by a constant (judged, cc9e18f)
  double fetch_instructions = 2;    // a load and a store, beside indices (judged, f378c86)
  double fetch_code = 4;            // instructions of a fetch in unrolled code (judged, f378c86)
  double unhoisted_share = 0.1;     // part of index operations outside of fetches (judged, f378c86)
  double integer_share = 0.36;      // part of other instructions that costs issue slots (fitted)
  double code_instructions = 2200;  // instructions that the instruction cache holds (fitted)
  double narrow_code_instructions = 4400;  // the same with 64 lanes or fewer (fitted)
  double code_factor = 1.75;               // on code beyond the instruction cache (fitted)
  double spill_operations = 100;           // cost of an operation with spilled registers (fitted)
  // Waits.
  double hiding_work = 34;      // warps x operations in flight that hide latencies (fitted)
  double most_independent = 5;  // operations of a thread in flight (fitted)
  double chunk_cycles = 3000;   // time from a fetch to the barrier behind it (fitted)
  // copy_cycles is the time of an asynchronous copy under load: 20 to 40 KB in flight keep an
  // A100's share of L2, some 30 bytes a cycle, busy (Little's law; judged).
  double copy_cycles = 1000;
  double barrier_cycles = 64;    // a chunk's barrier until its first products, as a step's (judged)
  double step_wait_cycles = 64;  // shared memory and tensor cores, 32 each (judged)
  double shared_load_factor = 0.5;  // on cycles of loads from shared memory (fitted)
  double shared_store_factor = 5;   // on cycles of a fetch's stores (fitted)
  double global_factor = 0.7;       // on cycles of L1 and local memory (fitted)
  // Bytes.
  double block_cache_bytes = 32 << 10;  // part of L1 for a block's direct reads (judged, cc9e18f)
  double block_reads = 2;               // reads of the same bytes from L2 then (judged, f378c86)
  double l2_share = 0.1;                // part of memory's time that a byte of L2 takes (fitted)
  double l2_miss_share = 0.25;          // part of repeated reads beyond L2's size (judged, cc9e18f)
};

inline constexpr GpuModel kGpuModel;

}  // namespace pruner
