// A kernel's time is the time of the multiprocessors plus the time of the bytes that the kernel
// moves. Blocks run together on a multiprocessor as far as registers, shared memory and threads
// allow; each block waits for memory once a chunk of the reduction.
#include "analysis/gpu_draft.h"

#include <algorithm>
#include <cmath>

#include "analysis/gpu_limits.h"
#include "space/gpu/mma_contraction.h"
#include "space/structure.h"
#include "target/machine_model.h"

namespace pruner {
namespace {

class KernelAnalyzer {
 public:
  KernelAnalyzer(
      const Statements& program, const Gpu& gpu, int kernel, double registers, Penalties penalties)
      : program_(program),
        gpu_(gpu),
        kernel_(kernel),
        penalties_(penalties),
        own_code_(registers > 0) {
    k_.registers = registers;
  }

  KernelSymbols run() {
    for (const Statement& s : program_.statements) {
      if (s.kernel != kernel_) continue;
      k_.root = s.buffer;  // the last statement's buffer
      set_block(s);
      if (s.unit.mma != nullptr) unit_ = s.unit;
    }
    warps_ = std::ceil(k_.threads / gpu_.warp_size);
    copies_ahead_ = compute_capability(gpu_) >= kFirstWithAsyncCopy;
    for (const Statement& s : program_.statements) {
      if (s.kernel == kernel_) add(s);
    }
    occupy();
    return k_;
  }

 private:
  void set_block(const Statement& s) {
    const Bindings bound = bindings_of(program_.loops_of(s));
    k_.blocks = std::max(k_.blocks, double{bound.extents[0]} * bound.extents[2] * bound.extents[4]);
    k_.threads = std::max(k_.threads, double{bound.threads()});
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
    const double unrolled = std::max(kGpuModel.reused_copies, static_cast<double>(s.unroll_steps));
    double count = 1, body = 1;
    for (size_t i = loops.size(); i-- > 0;) {
      // One load takes a vector.
      const bool vector = loops[i].role == LoopRole::kVectorize;
      if (vector || is_block(loops[i].role) || is_thread(loops[i].role)) continue;
      const auto extent = static_cast<double>(loops[i].extent);
      body *= extent;
      if (uses[i].used || body > unrolled) count *= extent;
    }
    return count;
  }

  void add(const Statement& s) {
    const StatementBuffer& stored = program_.buffer(s.buffer);
    const double iterations = thread_iterations(s) / vector_width(program_.loops_of(s));
    const bool fetch = stored.scope == BufferScope::kShared && s.counts.float_arithmetic() == 0;
    vthreads_ = 1;
    for (const StatementLoop& loop : program_.loops_of(s))
      vthreads_ *= loop.role == LoopRole::kVThread ? static_cast<double>(loop.extent) : 1;
    if (folds_row(s, stored)) add_fold(s);
    if (s.batches > 0) add_batches(s);
    if (s.unit.mma != nullptr) {
      add_mma(s.unit, iterations);
    } else {
      const bool moves = of_warps() && stored.scope != BufferScope::kLocal;
      const double times = moves ? warp_accesses(s, iterations, fetch) : iterations;
      add_instructions(s, times, fetch);
      add_code(s, fetch);
      for (const StatementAccess& a : program_.accesses_of(s)) add_access(s, a, times, fetch);
    }
    if (!counted(s.buffer)) hold(stored);
    seen_.push_back(s.buffer);
  }

  bool of_warps() const { return unit_.mma != nullptr; }

  // Whether the threads of a row add up their shares in the statement, in a kernel of our own.
  bool folds_row(const Statement& s, const StatementBuffer& stored) const {
    return own_code_ && stored.scope == BufferScope::kShared &&
           program_.accesses_of(s).back().kind == AccessKind::kReadWrite;
  }
  // Lanes exchange their sums and add them, log2(threads) times, one after the other; blocks of
  // more than a warp meet in between. If a thread has its elements of the row in registers, as many
  // loads are on their way.
  void add_fold(const Statement& s) {
    const double exchanges = std::log2(k_.threads);
    other_instructions_ += 2 * exchanges;
    folding_cycles_ += exchanges * kGpuModel.exchange_cycles +
                       (k_.threads > gpu_.warp_size ? kGpuModel.barrier_cycles : 0);
    if (s.work <= kMostHeldElements) accumulators_ = std::max(accumulators_, double{s.work});
  }

  // The warps of a contraction load rows, a batch at a time, and their lanes exchange what they
  // have of each. The first reduction of rows waits for their loads.
  void add_batches(const Statement& s) {
    const double wait = folding_cycles_ == 0 ? kGpuModel.copy_cycles : 0;
    folding_cycles_ += s.batches * (wait + std::log2(gpu_.warp_size) * kGpuModel.exchange_cycles);
  }

  // Returns a thread's accesses in a kernel of matrix instructions. A fetch copies as many bytes at
  // once as the rows of the tensor allow; copies of four bytes or more go ahead. Sums are stored in
  // pairs of neighbours, or in runs if the sums went through shared memory.
  double warp_accesses(const Statement& s, double iterations, bool fetch) {
    if (!fetch) {
      const int64_t row = program_.shape_of(s.buffer).back();
      const bool runs = unit_.epilogue_bytes > 0;
      return iterations /
             static_cast<double>(runs ? epilogue_run(row, program_.buffer(s.buffer).element_bytes)
                                      : unit_.mma->sum_fragment().run);
    }
    const StatementAccess& read = program_.accesses_of(s).front();
    const int64_t row = program_.shape_of(read.buffer).back();
    const int bytes = program_.buffer(read.buffer).element_bytes;
    int64_t run = gpu_.vector_bytes / bytes;
    while (run > 1 && row % run != 0) run /= 2;
    copies_ahead_ = copies_ahead_ && run * bytes >= kLeastAsyncCopyBytes;
    return iterations * vector_width(program_.loops_of(s)) / static_cast<double>(run);
  }

  // Adds the cycles of all warps together. Tensor cores: operations / rate. Shared memory: bytes /
  // 128 (CUDA C++ Programming Guide), for both operands' fragments and for sums that go there and
  // back. `iterations` is a thread's share of the products.
  void add_mma(const UnitUse& unit, double iterations) {
    const MmaInstruction& mma = *unit.mma;
    const double rate = gpu_.tensor_rates.*mma.rate;
    const double fragments = unit.rows * unit.columns, units = warps_ / mma.warps;
    const double products = double{1} * mma.m * mma.n * mma.k;
    const double instructions = iterations * gpu_.warp_size * mma.warps / products;
    const double steps = instructions / fragments;
    // The warps of a group lie in all partitions.
    const double partitions = gpu_.partitions_per_sm / mma.warps;
    const double step_cycles = 2 * products * fragments * std::max(1.0, partitions) / rate;
    // The products of a group go on while it waits for none but those of the chunk before.
    const bool waits = penalties_.counts(Penalty::kComputeL0) && !mma.of_group();
    steps_ += steps;
    steps_cycles_ += steps * std::max(step_cycles, waits ? kGpuModel.step_wait_cycles : 0);
    tensor_cycles_ += 2 * iterations * gpu_.warp_size * warps_ / rate;
    // A group's instruction for each fragment of the rows reads all columns.
    const double columns = double{unit.columns} * (mma.of_group() ? unit.rows : 1);
    const double bytes = (double{unit.rows} * mma.m + columns * mma.n) * mma.k *
                         static_cast<double>(dtype_bytes(mma.a));
    shared_cycles_ += (units * steps * bytes + 2 * double{unit.epilogue_bytes}) /
                      (kGpuModel.banks * kGpuModel.bank_bytes);
    // A load of matrices for each fragment of the rows and for two of the columns.
    const double step =
        mma.of_group() ? double{unit.rows} : fragments + unit.rows + unit.columns / 2;
    other_instructions_ += steps * step;
    code_ += step;
  }

  // cycles of shared memory = factor * warps * times * cycles of its banks for one (warp_lanes.h).
  void add_access(const Statement& s, const StatementAccess& a, double iterations, bool fetch) {
    const BufferScope scope = program_.buffer(a.buffer).scope;
    if (scope == BufferScope::kLocal) return;
    const double times = fetch || a.kind != AccessKind::kRead ? iterations : loads(s, a);
    if (scope == BufferScope::kShared) {
      const double factor = of_warps() ? 1
                            : fetch    ? kGpuModel.shared_store_factor
                                       : kGpuModel.shared_load_factor;
      shared_cycles_ += factor * warps_ * times * std::max(1, a.warp_transactions);
    } else if (s.counts.of != OperationCounts{}.of || a.kind != AccessKind::kReadWrite) {
      add_global(s, a, times, fetch);
    }
  }

  // Counts the shared memory or the registers in which the kernel keeps a buffer.
  void hold(const StatementBuffer& stored) {
    if (stored.scope == BufferScope::kShared) {
      shared_bytes_ += stored.allocated * stored.element_bytes;
      chunks_ = std::max(chunks_, stored.realize_iterations / (k_.blocks * k_.threads * vthreads_));
    }
    if (stored.scope == BufferScope::kLocal) accumulators_ += stored.allocated * vthreads_;
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
    const double copies = fetch ? 1 : vthreads_;
    const double each = fetch ? kGpuModel.fetch_code + c[Operation::kIntAddSub] +
                                    c[Operation::kIntMul] +
                                    kGpuModel.division_operations * c[Operation::kIntDivMod]
                              : 1.0;
    const StatementAccess& stored = program_.accesses_of(s).back();
    const bool accumulates = stored.kind == AccessKind::kReadWrite &&
                             program_.buffer(s.buffer).scope == BufferScope::kLocal;
    const double at_least = accumulates && own_code_ ? program_.buffer(s.buffer).allocated : 1;
    code_ += std::max(unrolled(loops, limit), at_least) * copies * each;
    if (!accumulates || own_code_) return;
    const auto uses = program_.uses_of(s, stored);
    double body = 1, needed = 1;  // up to the outermost loop over accumulators
    for (size_t i = loops.size(); i-- > 0;) {
      if (is_binding(loops[i].role)) break;
      body *= static_cast<double>(loops[i].extent);
      if (uses[i].used && loops[i].extent > 1) needed = body;
    }
    if (needed > limit && needed * copies > kGpuModel.unrolled_copies)
      local_accesses_ += 2 * thread_iterations(s);  // one read, one write
  }

  bool counted(StageId buffer) const { return std::ranges::find(seen_, buffer) != seen_.end(); }

  // floats = multiply-adds + comparisons + 4 calls; others = integers + 2 of each fetch, else a
  // tenth of the integers: indices are computed for each fetch, and but for a constant offset
  // outside of unrolled loops.
  void add_instructions(const Statement& s, double times, bool fetch) {
    const OperationCounts& c = s.counts;
    const double pairs = std::max(c[Operation::kFloatAddSub], c[Operation::kFloatMul]);
    const double floats =
        pairs + c[Operation::kFloatCompare] +
        kGpuModel.call_operations * (c[Operation::kFloatDivMod] + c[Operation::kFloatMath]);
    const double integers = c[Operation::kIntAddSub] + c[Operation::kIntMul] +
                            c[Operation::kIntCompare] + c[Operation::kLogic] +
                            kGpuModel.division_operations * c[Operation::kIntDivMod];
    float_instructions_ += times * floats;
    other_instructions_ += fetch ? times * (integers + kGpuModel.fetch_instructions)
                                 : times * kGpuModel.unhoisted_share * integers;
  }

  // L2 = blocks * warps * times * sectors * 32 bytes; a block that reads little directly, and that
  // again, finds it in L1. Memory = what is touched once + the share of the rest that L2, which
  // holds `held` of it, misses. L1 takes a cycle for 4 sectors, a line (CUDA C++ Programming
  // Guide).
  void add_global(const Statement& s, const StatementAccess& a, double times, bool fetch) {
    const GpuModel& m = kGpuModel;
    const StatementBuffer& buffer = program_.buffer(a.buffer);
    const auto loops = program_.loops_of(s);
    double sectors = std::max(1, a.warp_transactions);
    if (!penalties_.counts(Penalty::kMemoryL2)) {
      const double full = gpu_.warp_size * buffer.element_bytes / double{m.sector_bytes};
      sectors = std::min(sectors, full);
    }
    const double filled = fetch ? filled_lanes(s) : 1;
    double fetched = k_.blocks * warps_ * times * sectors * m.sector_bytes * filled;
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
    if (!fetch && a.kind == AccessKind::kRead && block_bytes < m.block_cache_bytes)
      fetched = std::min(fetched, m.block_reads * k_.blocks * block_bytes);
    const double lines = std::max(1.0, a.warp_transactions / m.l1_sectors_per_cycle);
    global_cycles_ += warps_ * times * lines * filled;
    const double once = std::min(fetched, bytes_inside(0));
    const double held = static_cast<double>(gpu_.l2_bytes);
    k_.l2_bytes += fetched;
    k_.dram_bytes +=
        once + (once > held ? m.l2_miss_share * (fetched - once) * (1 - held / once) : 0);
  }

  // Share of the lanes' iterations of a fetch that have an element to fetch.
  double filled_lanes(const Statement& s) const {
    const StatementBuffer& buffer = program_.buffer(s.buffer);
    const double slots = static_cast<double>(s.iterations) / buffer.realize_iterations;
    return std::min(1.0, buffer.allocated / slots);
  }

  // Blocks of a multiprocessor at a time: the least of what it has of blocks, threads, registers
  // and shared memory over what one takes (CUDA C++ guide, occupancy).
  double held_blocks(double registers) const {
    const double lanes = warps_ * gpu_.warp_size;
    double held = static_cast<double>(gpu_.max_blocks_per_sm);
    const auto limit = [&](double blocks) { held = std::min(held, std::floor(blocks)); };
    limit(static_cast<double>(gpu_.max_threads_per_sm) / lanes);
    limit(static_cast<double>(gpu_.registers_per_sm) / (registers * lanes));
    if (shared_bytes_ > 0) limit(static_cast<double>(gpu_.shared_bytes_per_sm) / shared_bytes_);
    return std::max(1.0, held);
  }

  // busy = |(max(arithmetic, issue), shared, loads)| cycles of a multiprocessor for one block. The
  // Euclidean norm lies between the longest, of pipes that overlap wholly, and their sum.
  double busy_cycles(double spilled) const {
    const GpuModel& m = kGpuModel;
    const double lanes =
        penalties_.counts(Penalty::kComputeL1) ? warps_ * gpu_.warp_size : k_.threads;
    const bool shared = penalties_.counts(Penalty::kMemoryL1);
    const double others =
        m.integer_share * other_instructions_ + m.spill_operations * spilled * float_instructions_;
    const double arithmetic = float_instructions_ * lanes / gpu_.fp32_lanes_per_sm;
    const double issue = (float_instructions_ + others) * warps_ / gpu_.partitions_per_sm;
    const double loads = m.global_factor * (global_cycles_ + local_accesses_ * warps_);
    const double capacity =
        gpu_.fp32_lanes_per_sm > 64 ? m.code_instructions : m.narrow_code_instructions;
    return std::hypot(
               std::max({arithmetic, issue, tensor_cycles_}), shared ? shared_cycles_ : 0, loads) *
           (code_ > capacity ? m.code_factor : 1);
  }

  // cycles = (work^4 + chain^4)^(1/4) of so many blocks together: their work, n * busy / hidden, or
  // one's chain of chunks, 3000 each. The norm is the longer one but where both are about alike.
  double together_cycles(double blocks, double busy) const {
    if (blocks <= 0) return 0;
    const GpuModel& m = kGpuModel;
    const double independent = std::clamp(accumulators_, 1.0, m.most_independent);
    const auto hidden = [&](double n) {
      if (!penalties_.counts(Penalty::kComputeL0)) return 1.0;
      return std::min(1.0, n * warps_ * independent / m.hiding_work);
    };
    const double work = blocks * busy / hidden(blocks);
    const double chain = chunks_ * m.chunk_cycles + busy / hidden(1) + folding_cycles_;
    return std::sqrt(std::hypot(work * work, chain * chain));
  }

  // cycles of so many blocks of warps together, the longest of: their work, n * busy; one's chain,
  // the wait for its first chunk, its work or else a warp's steps one after the other, whose loads
  // are hidden by the products of the one before, and a barrier a chunk; and its copies, of which a
  // stage less than there are, of groups two less, is on its way at a time (Little's law), in
  // chunks + stages - 1 waits.
  double warp_cycles(double blocks, double busy) const {
    if (blocks <= 0) return 0;
    const GpuModel& m = kGpuModel;
    const double multiplied = unit_.mma->of_group() ? 2 : 1;  // chunks that stay for products
    const double ahead = copies_ahead_ ? static_cast<double>(unit_.stages) - multiplied : 0;
    const double waits = copies_ahead_ ? 1 : chunks_;
    const double own = std::max(busy, steps_cycles_);
    const double barriers = chunks_ + (unit_.epilogue_bytes > 0 ? 2 : 0);
    const double chain =
        waits * m.copy_cycles + folding_cycles_ + own + barriers * m.barrier_cycles;
    const double copies = ahead > 0 ? (chunks_ + ahead) * m.copy_cycles / ahead : 0;
    return std::max({blocks * busy, chain, copies});
  }

  // seconds = (full rounds of `held` blocks + the last one) / clock.
  void occupy() {
    double most = static_cast<double>(gpu_.max_registers_per_thread);
    if (of_warps())
      most = std::min(
          most,
          std::floor(static_cast<double>(gpu_.registers_per_block) / (warps_ * gpu_.warp_size)));
    if (k_.registers == 0)
      k_.registers = kGpuModel.registers_per_accumulator * accumulators_ +
                     static_cast<double>(kGpuModel.registers_beside_accumulators);
    const double wanted = k_.registers;
    shared_bytes_ = std::max(shared_bytes_, double{unit_.epilogue_bytes});
    const double held = held_blocks(std::min(most, wanted));
    const bool spills = penalties_.counts(Penalty::kMemoryL0);
    // Values that a warp has no registers for are stored and loaded again once a step.
    if (of_warps() && spills) local_accesses_ += 2 * steps_ * std::max(0.0, wanted - most);
    const double busy = busy_cycles(spills ? std::max(0.0, 1 - most / wanted) : 0);
    const double waves = k_.blocks / gpu_.sms;
    const double rounds = penalties_.counts(Penalty::kComputeL2) ? std::ceil(waves) : waves;
    k_.active_warps = std::min(held, rounds) * warps_;
    k_.filled = k_.blocks / (rounds * gpu_.sms);
    const double full = std::floor(rounds / held);
    const auto cycles = [&](double blocks) {
      return of_warps() ? warp_cycles(blocks, busy) : together_cycles(blocks, busy);
    };
    k_.compute_s = (full * cycles(held) + cycles(rounds - full * held)) / gpu_.clock_hz;
    k_.shared_s = rounds * shared_cycles_ / gpu_.clock_hz;
  }

  const Statements& program_;
  const Gpu& gpu_;
  const int kernel_;
  const Penalties penalties_;
  const bool own_code_;  // loops over accumulators are always unrolled
  KernelSymbols k_;
  double warps_ = 1;           // warps of a block
  double vthreads_ = 1;        // virtual threads of the statement at hand
  double accumulators_ = 0;    // registers of a thread
  double shared_bytes_ = 0;    // shared memory of a block
  double chunks_ = 1;          // times that a block fetches and waits
  double shared_cycles_ = 0;   // cycles of a block's accesses to shared memory
  UnitUse unit_;               // the kernel's matrix instructions, if there are any
  bool copies_ahead_ = false;  // the operands are copied beside the work
  double tensor_cycles_ = 0;   // cycles of tensor cores for a block
  double steps_ = 0;           // steps of a warp, each with all its fragments once
  double steps_cycles_ = 0;    // cycles of a warp's steps, one after the other, on its tensor core
  double float_instructions_ = 0, other_instructions_ = 0;  // executed by a thread
  double code_ = 0;            // instructions that stand in the code, roughly
  double local_accesses_ = 0;  // a thread's accesses to accumulators that are no registers
  double global_cycles_ = 0;   // cycles of a block's accesses to L1
  double folding_cycles_ = 0;  // cycles in which the threads of rows fold, one after the other
  std::vector<StageId> seen_;
};

// seconds = compute + (memory's bytes + 0.1 L2's) / bandwidth + launch: compute and memory are
// added, as published (Pruner, section 4.2).
double seconds(const KernelSymbols& k, const Gpu& gpu) {
  const double bytes = k.dram_bytes + kGpuModel.l2_share * k.l2_bytes;
  return k.compute_s + bytes / gpu.dram_bandwidth + gpu.launch_s;
}

}  // namespace

Draft gpu_draft(const Statements& program,
                const Gpu& gpu,
                std::span<const double> registers,
                Penalties penalties) {
  Draft draft;
  for (int kernel = 0; kernel < program.kernels; ++kernel) {
    const double own = registers.empty() ? 0 : registers[static_cast<size_t>(kernel)];
    draft.kernels.push_back(KernelAnalyzer(program, gpu, kernel, own, penalties).run());
    draft.latency_s += seconds(draft.kernels.back(), gpu);
  }
  return draft;
}

}  // namespace pruner
