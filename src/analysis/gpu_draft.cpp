// A kernel's time is that of its slowest resource: the lanes of the multiprocessors that have work,
// shared memory, L2 and memory; other resources overlap it but for a part. Bytes are counted in
// transactions, epilogues and reductions as what they are.
#include "analysis/gpu_draft.h"

#include <algorithm>
#include <cmath>

#include "analysis/gpu_registers.h"
#include "analysis/operand.h"
#include "space/plan.h"

namespace pruner {
namespace {

constexpr double kRegisterGranule = 8;  // of a thread, as they are allocated
constexpr double kHidingWork = 16;      // warps x independent operations that hide latencies
constexpr double kUnhidden = 0.25;      // share of the shorter terms that overlap does not hide
// An accumulator in local memory is read and written for each step, by the L1, which is the memory
// that is shared memory, too.
constexpr double kLocalAccesses = 2;
constexpr double kSharedLoadBytes = 4;  // of a thread
constexpr double kTransactionBytes = 32;
constexpr double kUnrolledLoads = 4;  // elements of one load where the innermost tile has them

class GpuAnalyzer {
 public:
  GpuAnalyzer(const LoopNest& nest, const Gpu& gpu) : nest_(nest), dag_(*nest.dag), gpu_(gpu) {}

  Draft run() {
    Draft draft;
    for (const NestStage& stage : nest_.stages) {
      if (stage.at.valid()) continue;
      draft.kernels.push_back(symbols(stage));
      draft.latency_s += seconds(draft.kernels.back());
    }
    return draft;
  }

 private:
  static double product(const NestStage& stage, LoopKind kind) {
    double total = 1;
    for (const NestLoop& loop : stage.loops)
      total *= loop.kind == kind ? static_cast<double>(loop.extent) : 1;
    return total;
  }
  static double iterations(const NestStage& stage) {
    double total = 1;
    for (const NestLoop& loop : stage.loops) total *= static_cast<double>(loop.extent);
    return total;
  }
  static double elements(const std::vector<int64_t>& extents) {
    double total = 1;
    for (const int64_t extent : extents) total *= static_cast<double>(extent);
    return total;
  }
  double operations(const NestStage& stage) const {
    const double body = nest_.tables->body_operations[static_cast<size_t>(stage.stage.value)];
    return std::max(1.0, body) + (dag_[stage.stage].is_reduction() ? 1 : 0);
  }
  double bytes_of(StageId id) const {
    return static_cast<double>(dag_[id].num_elements() * dtype_bytes(dag_[id].dtype));
  }

  KernelSymbols symbols(const NestStage& root) {
    KernelSymbols k;
    k.root = root.stage;
    k.blocks = product(root, LoopKind::kBlock);
    k.threads = product(root, LoopKind::kThread);
    const ThreadResources thread = thread_resources(nest_, root);
    k.registers = thread.registers;
    k.local_bytes = thread.local_bytes;
    double shared_bytes = 0, accumulators = 1, thread_operations = 0, shared_loads = 0;
    const double per_thread = iterations(root) / (k.blocks * k.threads);
    const auto add = [&](const NestStage& stage, double times) {
      thread_operations += times * operations(stage);
    };
    add(root, per_thread);
    k.dram_bytes += bytes_of(root.stage);
    k.l2_bytes += bytes_of(root.stage);
    for (const NestStage& stage : nest_.stages) {
      const bool hangs_here = stage.at == root.stage;
      const bool fetched = stage.at.valid() && nest_.of(stage.at).at == root.stage;
      if (hangs_here) {
        const double own_threads = product(stage, LoopKind::kThread);
        const double visits = stage.scope == Scope::kLocal && stage.chunk_loops == 0 &&
                                      stage.depth == static_cast<int>(root.loops.size())
                                  ? per_thread
                                  : 1;
        add(stage, visits * iterations(stage) / own_threads);
        if (stage.scope == Scope::kLocal) accumulators *= elements(stage.extents);
        if (stage.scope == Scope::kShared)
          shared_bytes += k.threads * static_cast<double>(dtype_bytes(dag_[stage.stage].dtype));
        const double local = k.local_bytes > 0 ? kLocalAccesses : 0;
        shared_loads += iterations(stage) / own_threads * (loads_per_step(stage) + local);
      }
      if (fetched) {
        const double buffers = nest_.of(stage.at).double_buffer ? 2 : 1;
        const double box =
            elements(stage.extents) * static_cast<double>(dtype_bytes(dag_[stage.stage].dtype));
        double chunks = 1;
        for (int i = 0; i < nest_.of(stage.at).chunk_loops; ++i)
          chunks *= static_cast<double>(nest_.of(stage.at).loops[static_cast<size_t>(i)].extent);
        shared_bytes += box * buffers;
        const double run =
            static_cast<double>(stage.extents.back() * dtype_bytes(dag_[stage.stage].dtype));
        const double waste = std::ceil(run / kTransactionBytes) * kTransactionBytes / run;
        k.l2_bytes += k.blocks * chunks * box * waste;
        k.dram_bytes += bytes_of(stage.stage);
        add(stage,
            chunks * iterations(stage) / product(stage, LoopKind::kThread) /
                product(stage, LoopKind::kVectorize));
      } else if (hangs_here || stage.stage == root.stage) {
        add_direct_loads(stage, root, k);
      }
    }
    occupy(k, shared_bytes);
    const double rate = gpu_.peak_flops / 2 * k.filled;  // operations a second
    const double lanes = std::ceil(k.threads / gpu_.warp_size) * gpu_.warp_size;
    const double hidden = std::min(1.0, k.active_warps * std::min(accumulators, 8.0) / kHidingWork);
    k.compute_s = k.blocks * lanes * thread_operations / (rate * hidden);
    k.shared_s =
        k.blocks * lanes * shared_loads * kSharedLoadBytes / (gpu_.shared_bandwidth * k.filled);
    return k;
  }

  // Loads from shared memory for each step of a contraction: an operand is loaded once for those
  // innermost loops that do not move it.
  double loads_per_step(const NestStage& stage) const {
    double loads = 0;
    for (const Access& access : nest_.tables->accesses[static_cast<size_t>(stage.stage.value)]) {
      if (dag_[access.producer].tag != "shared") continue;
      double reused = 1;
      const size_t rank = dag_[stage.stage].axes.size();
      for (const NestLoop& loop : stage.loops) {
        const bool spatial = loop.axis >= 0 && loop.axis < static_cast<int>(rank);
        if (spatial && element_stride(access, dag_[access.producer], loop.axis) == 0)
          reused *= static_cast<double>(loop.extent);
      }
      double wide = 1;
      const NestLoop& last = stage.loops.back();
      if (element_stride(access, dag_[access.producer], last.axis) == 1)
        wide = std::min(kUnrolledLoads, static_cast<double>(last.extent));
      loads += 1 / (reused * wide);
    }
    return loads;
  }

  // Operands that threads load for themselves, in transactions: neighbouring threads read
  // neighbours, or each its own line.
  void add_direct_loads(const NestStage& stage, const NestStage& root, KernelSymbols& k) const {
    const Stage& s = dag_[stage.stage];
    const double points =
        static_cast<double>(s.num_elements() * std::max<int64_t>(1, s.reduce_size()));
    for (const Access& access : nest_.tables->accesses[static_cast<size_t>(stage.stage.value)]) {
      const Stage& producer = dag_[access.producer];
      const int plan = nest_.tables->plan_of[static_cast<size_t>(access.producer.value)];
      if (plan >= 0 && nest_.stages[static_cast<size_t>(plan)].scope != Scope::kWorkspace) continue;
      const bool rows = stage.stage != root.stage && stage.scope == Scope::kShared;
      const int axis = rows ? static_cast<int>(s.axes.size() + s.reduce_axes.size()) - 1
                            : static_cast<int>(s.axes.size()) - 1;
      const double bytes = bytes_of(access.producer);
      double stride = 0;
      if (axis >= 0) stride = std::abs(element_stride(access, producer, axis));
      const double spread = std::clamp(
          stride, 1.0, kTransactionBytes / static_cast<double>(dtype_bytes(producer.dtype)));
      k.dram_bytes += bytes;
      k.l2_bytes +=
          std::min(points * static_cast<double>(dtype_bytes(producer.dtype)), 8 * bytes) * spread;
    }
  }

  void occupy(KernelSymbols& k, double shared_bytes) const {
    const double granules = std::ceil(k.registers / kRegisterGranule);
    const double registers =
        std::min(granules * kRegisterGranule, static_cast<double>(gpu_.max_registers_per_thread));
    const double warps = std::ceil(k.threads / gpu_.warp_size);
    double held = static_cast<double>(gpu_.max_blocks_per_sm);
    const auto limit = [&](double most) { held = std::min(held, std::floor(most)); };
    limit(static_cast<double>(gpu_.max_threads_per_sm) / (warps * gpu_.warp_size));
    limit(static_cast<double>(gpu_.registers_per_sm) / (registers * warps * gpu_.warp_size));
    if (shared_bytes > 0) limit(static_cast<double>(gpu_.shared_bytes_per_sm) / shared_bytes);
    held = std::max(1.0, held);
    const double on_each = std::min(held, std::ceil(k.blocks / gpu_.sms));
    k.active_warps = on_each * warps;
    // Blocks run in waves; the last one leaves multiprocessors idle.
    const double rounds = std::ceil(k.blocks / gpu_.sms);
    k.filled = k.blocks / (rounds * gpu_.sms);
  }

  double seconds(const KernelSymbols& k) const {
    const double l2 = k.l2_bytes / gpu_.l2_bandwidth;
    const double memory = k.dram_bytes / gpu_.dram_bandwidth;
    const double longest = std::max({k.compute_s, k.shared_s, l2, memory});
    const double all = k.compute_s + k.shared_s + l2 + memory;
    return longest + kUnhidden * (all - longest) + gpu_.launch_s;
  }

  const LoopNest& nest_;
  const ComputeDag& dag_;
  const Gpu& gpu_;
};

}  // namespace

Draft gpu_draft(const LoopNest& nest, const Gpu& gpu) { return GpuAnalyzer(nest, gpu).run(); }

}  // namespace pruner
