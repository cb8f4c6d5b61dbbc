// A kernel's time is that of its multiprocessors, whose blocks run together as far as registers,
// shared memory and threads allow and each wait for memory once a chunk of the reduction, and that
// of the bytes that it moves.
#include "analysis/gpu_draft.h"

#include <algorithm>
#include <cmath>

namespace pruner {
namespace {

// Of every device and task alike; chosen on half of the public records (docs/analysis.md).
constexpr double kOtherRegisters = 28;     // of a thread beside its accumulators ...
constexpr double kRegistersEach = 1.15;    // ... which take more than one each
constexpr double kHidingWork = 34;         // warps x independent operations that hide latencies
constexpr double kIndependent = 5;         // most operations of a thread that overlap
constexpr double kChunkCycles = 3000;      // from a fetch to the barrier behind it
constexpr double kSharedShare = 0.5;       // of a load's cycles that arithmetic does not hide
constexpr double kFetchShare = 5;          // of a store to shared memory's: nothing overlaps it
constexpr double kGlobalShare = 0.7;       // of a load's from L1 or local memory
constexpr double kL2Share = 0.1;           // of memory's time for a byte that L2 has
constexpr double kL2Misses = 0.25;         // of repeated reads of what L2 does not hold
constexpr double kCallOperations = 4;      // of a math function, the choice of a guarded value
constexpr double kDivisionOperations = 4;  // an integer division by a constant
constexpr double kIntegerShare = 0.36;     // of integer operations that are not hoisted
constexpr double kCompilerUnrolls = 128;   // operations of loops that the compiler unrolls unasked
constexpr double kDefaultUnroll = 16;      // iterations, likewise
constexpr double kBlockCacheBytes = 32 << 10;  // of L1 for what a block reads directly
constexpr double kSpillOperations = 100;       // for an operation whose registers are spilled
constexpr double kCodeInstructions = 2200;     // that the instruction cache of 64 lanes holds
constexpr double kCodePenalty = 1.75;          // of code that it does not

class KernelAnalyzer {
 public:
  KernelAnalyzer(const Statements& program,
                 const Gpu& gpu,
                 int kernel,
                 const ThreadResources& thread,
                 Penalties penalties)
      : program_(program), gpu_(gpu), kernel_(kernel), penalties_(penalties) {
    k_.registers = thread.registers;
    k_.local_bytes = thread.local_bytes;
  }

  KernelSymbols run() {
    for (const Statement& s : program_.statements) {
      if (s.kernel != kernel_) continue;
      k_.root = s.buffer;  // the last one's
      set_block(s);
    }
    warps_ = std::ceil(k_.threads / gpu_.warp_size);
    for (const Statement& s : program_.statements) {
      if (s.kernel == kernel_) add(s);
    }
    occupy();
    return k_;
  }

 private:
  void set_block(const Statement& s) {
    double blocks = 1, threads[3] = {1, 1, 1};
    for (const StatementLoop& loop : program_.loops_of(s)) {
      const auto extent = static_cast<double>(loop.extent);
      if (is_block(loop.role)) blocks *= extent;
      if (is_thread(loop.role))
        threads[(static_cast<int>(loop.role) - static_cast<int>(LoopRole::kThreadX)) / 2] = extent;
    }
    k_.blocks = std::max(k_.blocks, blocks);
    k_.threads = std::max(k_.threads, threads[0] * threads[1] * threads[2]);
  }

  // Iterations of one thread: virtual threads count where they do other work, not where they would
  // repeat what a block fetches.
  double thread_iterations(const Statement& s) const {
    const auto loops = program_.loops_of(s);
    double iterations = s.work;
    for (size_t i = 0; i < loops.size(); ++i) {
      const bool used = std::ranges::any_of(program_.accesses_of(s), [&](const StatementAccess& a) {
        return program_.uses_of(s, a)[i].used;
      });
      if (loops[i].role == LoopRole::kVThread && !used)
        iterations /= static_cast<double>(loops[i].extent);
    }
    return iterations;
  }

  static double vector_width(std::span<const StatementLoop> loops) {
    const bool vector = !loops.empty() && loops.back().role == LoopRole::kVectorize;
    return vector ? static_cast<double>(loops.back().extent) : 1;
  }

  // Times that a thread loads an operand: a loop that does not move it repeats the load unless all
  // inside is unrolled and keeps it in a register.
  double loads(const Statement& s, const StatementAccess& a) const {
    const auto loops = program_.loops_of(s);
    const auto uses = program_.uses_of(s, a);
    const double unrolled = std::max(kDefaultUnroll, static_cast<double>(s.unroll_steps));
    double count = 1, body = 1;
    for (size_t i = loops.size(); i-- > 0;) {
      if (is_block(loops[i].role) || is_thread(loops[i].role)) continue;
      const auto extent = static_cast<double>(loops[i].extent);
      body *= extent;
      if (uses[i].used || body > unrolled) count *= extent;
    }
    return count;
  }

  void add(const Statement& s) {
    const auto loops = program_.loops_of(s);
    const StatementBuffer& stored = program_.buffer(s.buffer);
    const double iterations = thread_iterations(s), width = vector_width(loops);
    const bool fetch = stored.scope == BufferScope::kShared && s.counts.float_arithmetic() == 0;
    add_instructions(s, iterations / width, fetch);
    add_code(s, fetch);
    for (const StatementAccess& a : program_.accesses_of(s)) {
      const StatementBuffer& buffer = program_.buffer(a.buffer);
      const bool read = a.kind == AccessKind::kRead;
      if (buffer.scope == BufferScope::kLocal) continue;
      const double times = fetch || !read ? iterations / width : loads(s, a);
      if (buffer.scope == BufferScope::kShared) {
        shared_cycles_ += (fetch ? kFetchShare : kSharedShare) * warps_ * times *
                          std::max(1, a.warp_transactions);
      } else if (s.counts.of != OperationCounts{}.of || a.kind != AccessKind::kReadWrite) {
        add_global(s, a, times, fetch);
      }
    }
    if (stored.scope == BufferScope::kShared && !counted(s.buffer)) {
      shared_bytes_ += stored.allocated * stored.element_bytes;
      chunks_ =
          std::max(chunks_, stored.realize_iterations / (k_.blocks * k_.threads * vthreads(s)));
    }
    if (stored.scope == BufferScope::kLocal && !counted(s.buffer))
      accumulators_ += stored.allocated * vthreads(s);
    seen_.push_back(s.buffer);
  }

  // Iterations that are written out one after the other: loops from the innermost outwards, as far
  // as the schedule's limit goes.
  static double unrolled(std::span<const StatementLoop> loops, double limit) {
    double product = 1;
    for (size_t i = loops.size(); i-- > 0;) {
      if (is_binding(loops[i].role)) break;
      const double more = product * static_cast<double>(loops[i].extent);
      if (more > limit) break;
      product = more;
    }
    return product;
  }

  // Unrolled code, and accumulators that stay in local memory because a loop over them is not.
  void add_code(const Statement& s, bool fetch) {
    const auto loops = program_.loops_of(s);
    const auto limit = static_cast<double>(s.unroll_steps);
    const OperationCounts& c = s.counts;
    const double copies = fetch ? 1 : vthreads(s);
    const double each = fetch ? 4.0 + c[Operation::kIntAddSub] + c[Operation::kIntMul] +
                                    kDivisionOperations * c[Operation::kIntDivMod]
                              : 1.0;
    code_ += unrolled(loops, limit) * copies * each;
    const StatementAccess& stored = program_.accesses_of(s).back();
    if (stored.kind != AccessKind::kReadWrite ||
        program_.buffer(s.buffer).scope != BufferScope::kLocal)
      return;
    const auto uses = program_.uses_of(s, stored);
    double body = 1, needed = 1;  // up to the outermost loop over accumulators
    for (size_t i = loops.size(); i-- > 0;) {
      if (is_binding(loops[i].role)) break;
      body *= static_cast<double>(loops[i].extent);
      if (uses[i].used && loops[i].extent > 1) needed = body;
    }
    if (needed > limit && needed * copies > kCompilerUnrolls)
      local_accesses_ += 2 * thread_iterations(s);
  }

  bool counted(StageId buffer) const { return std::ranges::find(seen_, buffer) != seen_.end(); }

  double vthreads(const Statement& s) const {
    double product = 1;
    for (const StatementLoop& loop : program_.loops_of(s))
      product *= loop.role == LoopRole::kVThread ? static_cast<double>(loop.extent) : 1;
    return product;
  }

  // Multiplications and additions pair up; indices are computed for each fetch, and but for a
  // constant offset outside of unrolled loops.
  void add_instructions(const Statement& s, double times, bool fetch) {
    const OperationCounts& c = s.counts;
    const double pairs = std::max(c[Operation::kFloatAddSub], c[Operation::kFloatMul]);
    const double floats = pairs + c[Operation::kFloatCompare] +
                          kCallOperations * (c[Operation::kFloatDivMod] + c[Operation::kFloatMath]);
    const double integers = c[Operation::kIntAddSub] + c[Operation::kIntMul] +
                            c[Operation::kIntCompare] + c[Operation::kLogic] +
                            kDivisionOperations * c[Operation::kIntDivMod];
    float_instructions_ += times * floats;
    other_instructions_ += fetch ? times * (integers + 2) : times * 0.1 * integers;
  }

  // Sectors that a warp's lanes touch; a block that reads them again finds them in L1 if it reads
  // little.
  void add_global(const Statement& s, const StatementAccess& a, double times, bool fetch) {
    const StatementBuffer& buffer = program_.buffer(a.buffer);
    const auto loops = program_.loops_of(s);
    double transactions = std::max(1, a.warp_transactions);
    if (!penalties_.counts(Penalty::kMemoryL2))
      transactions = std::min(transactions, gpu_.warp_size * buffer.element_bytes / 32.0);
    double fetched = k_.blocks * warps_ * times * transactions * 32;
    if (fetch) fetched *= filled_lanes(s);
    if (loops.empty()) return;
    const auto bytes_inside = [&](size_t loop) {
      double elements = 1;
      for (const int64_t size : program_.region(a, static_cast<int>(loop)))
        elements *= static_cast<double>(size);
      return elements * buffer.element_bytes;
    };
    size_t inside = 0;
    while (inside + 1 < loops.size() && is_block(loops[inside].role)) ++inside;
    const double block_bytes = bytes_inside(inside);
    if (!fetch && a.kind == AccessKind::kRead && block_bytes < kBlockCacheBytes)
      fetched = std::min(fetched, 2 * k_.blocks * block_bytes);
    global_cycles_ +=
        warps_ * times * std::max(1.0, a.warp_transactions / 4.0) * (fetch ? filled_lanes(s) : 1);
    const double once = std::min(fetched, bytes_inside(0));
    const double held = static_cast<double>(gpu_.l2_bytes);
    k_.l2_bytes += fetched;
    k_.dram_bytes += once + (once > held ? kL2Misses * (fetched - once) * (1 - held / once) : 0);
  }

  // Share of the lanes' iterations of a fetch that have an element to fetch.
  double filled_lanes(const Statement& s) const {
    const StatementBuffer& buffer = program_.buffer(s.buffer);
    const double slots = static_cast<double>(s.iterations) / buffer.realize_iterations;
    return std::min(1.0, buffer.allocated / slots);
  }

  // Blocks of a multiprocessor at a time.
  double held_blocks(double registers) const {
    const double lanes = warps_ * gpu_.warp_size;
    double held = static_cast<double>(gpu_.max_blocks_per_sm);
    const auto limit = [&](double blocks) { held = std::min(held, std::floor(blocks)); };
    limit(static_cast<double>(gpu_.max_threads_per_sm) / lanes);
    limit(static_cast<double>(gpu_.registers_per_sm) / (registers * lanes));
    if (shared_bytes_ > 0) limit(static_cast<double>(gpu_.shared_bytes_per_sm) / shared_bytes_);
    return std::max(1.0, held);
  }

  // Cycles that a multiprocessor works for one block.
  double busy_cycles(double spilled) const {
    const double lanes =
        penalties_.counts(Penalty::kComputeL1) ? warps_ * gpu_.warp_size : k_.threads;
    const bool shared = penalties_.counts(Penalty::kMemoryL1);
    const double others =
        kIntegerShare * other_instructions_ + kSpillOperations * spilled * float_instructions_;
    const double arithmetic = float_instructions_ * lanes / gpu_.fp32_lanes_per_sm;
    const double issue = (float_instructions_ + others) * warps_ / gpu_.partitions_per_sm;
    const double loads = kGlobalShare * (global_cycles_ + local_accesses_ * warps_);
    const double capacity = kCodeInstructions * (gpu_.fp32_lanes_per_sm > 64 ? 1 : 2);
    return std::hypot(std::max(arithmetic, issue), shared ? shared_cycles_ : 0, loads) *
           (code_ > capacity ? kCodePenalty : 1);
  }

  void occupy() {
    const double most = static_cast<double>(gpu_.max_registers_per_thread);
    if (k_.registers == 0) k_.registers = kRegistersEach * accumulators_ + kOtherRegisters;
    const double wanted = k_.registers;
    const double held = held_blocks(std::min(most, wanted));
    const bool spills = penalties_.counts(Penalty::kMemoryL0);
    const double busy = busy_cycles(spills ? std::max(0.0, 1 - most / wanted) : 0);
    const double waves = k_.blocks / gpu_.sms;
    const double rounds = penalties_.counts(Penalty::kComputeL2) ? std::ceil(waves) : waves;
    k_.active_warps = std::min(held, rounds) * warps_;
    k_.filled = k_.blocks / (rounds * gpu_.sms);
    // Of so many blocks together: their work, or one's chain of chunks.
    const double independent = std::clamp(accumulators_, 1.0, kIndependent);
    const auto cycles = [&](double blocks) {
      if (blocks <= 0) return 0.0;
      const auto hidden = [&](double n) {
        if (!penalties_.counts(Penalty::kComputeL0)) return 1.0;
        return std::min(1.0, n * warps_ * independent / kHidingWork);
      };
      const double work = blocks * busy / hidden(blocks);
      const double chain = chunks_ * kChunkCycles + busy / hidden(1);
      return std::sqrt(std::hypot(work * work, chain * chain));
    };
    const double full = std::floor(rounds / held);
    k_.compute_s = (full * cycles(held) + cycles(rounds - full * held)) / gpu_.clock_hz;
    k_.shared_s = rounds * shared_cycles_ / gpu_.clock_hz;
  }

  const Statements& program_;
  const Gpu& gpu_;
  const int kernel_;
  const Penalties penalties_;
  KernelSymbols k_;
  double warps_ = 1;          // of a block
  double accumulators_ = 0;   // registers of a thread
  double shared_bytes_ = 0;   // of a block
  double chunks_ = 1;         // times that a block fetches and waits
  double shared_cycles_ = 0;  // of a block's accesses to shared memory
  double float_instructions_ = 0, other_instructions_ = 0;  // of a thread
  double code_ = 0;            // instructions that stand in the code, roughly
  double local_accesses_ = 0;  // of a thread, to accumulators that are no registers
  double global_cycles_ = 0;   // of a block's accesses to L1
  std::vector<StageId> seen_;
};

// As published, compute and memory are added.
double seconds(const KernelSymbols& k, const Gpu& gpu) {
  const double bytes = k.dram_bytes + kL2Share * k.l2_bytes;
  return k.compute_s + bytes / gpu.dram_bandwidth + gpu.launch_s;
}

}  // namespace

Draft gpu_draft(const Statements& program,
                const Gpu& gpu,
                std::span<const ThreadResources> threads,
                Penalties penalties) {
  Draft draft;
  for (int kernel = 0; kernel < program.kernels; ++kernel) {
    const ThreadResources thread = threads.empty() ? ThreadResources{} : threads[kernel];
    draft.kernels.push_back(KernelAnalyzer(program, gpu, kernel, thread, penalties).run());
    draft.latency_s += seconds(draft.kernels.back(), gpu);
  }
  return draft;
}

}  // namespace pruner
