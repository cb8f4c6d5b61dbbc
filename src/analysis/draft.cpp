#include "analysis/draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/gpu_draft.h"
#include "analysis/operand.h"
#include "analysis/register_tile.h"
#include "space/plan.h"

namespace pruner {
namespace {

constexpr double kFmaLatencyCycles = 5;     // 4, and a chain that is no longer leaves gaps
constexpr double kUsableCache = 0.75;       // of a cache, before neighbours evict
constexpr double kUnhidden = 0.25;          // share of the shorter terms that overlap does not hide
constexpr double kStreamStartBytes = 8192;  // that memory could bring while a new stream starts
constexpr double kMostStarts = 1;           // of memory's time, when starts overlap
constexpr double kStreamsInTurns = 16;      // a line of each, that a core's prefetchers follow
constexpr double kPrefetchedWaits = 0.85;   // of memory's time that remains when code prefetches
constexpr double kRunStartLines = 6;        // that L3 could bring while a new run starts
constexpr double kContendedPieceBytes = 512;  // longer pieces have few lines at their ends
constexpr double kPartedPairs = 2.5;          // lines fetched for each one that is used in time
constexpr double kContention = 4;             // transfers between cores for one contended line
constexpr double kMaskedTile = 3;             // a step's cycles by, where each vector has a mask

double bytes_of(const Stage& stage) {
  return static_cast<double>(stage.num_elements() * dtype_bytes(stage.dtype));
}
double usable(int64_t cache_bytes) { return kUsableCache * static_cast<double>(cache_bytes); }

class Analyzer {
 public:
  Analyzer(const LoopNest& nest, const Target& target, Penalties penalties)
      : nest_(nest), dag_(*nest.dag), target_(target), penalties_(penalties) {
    const double peak = target.peak_flops > 0 ? target.peak_flops : 50e9;
    cycle_s_ = 2.0 * target.lanes(4) * target.fmas_per_cycle / peak;
  }

  Draft run() {
    Draft draft;
    for (const NestStage& stage : nest_.stages) draft.stages.push_back(symbols(stage));
    for (size_t i = 0; i < draft.stages.size(); ++i) {
      const NestStage& root = root_of(nest_.stages[i]);
      draft.latency_s += seconds(draft.stages[i], speedup(root));
      if (root.stage == nest_.stages[i].stage) draft.latency_s += target_.launch_s;
    }
    return draft;
  }

 private:
  const NestStage& of(StageId id) const { return nest_.stages[nest_.tables->plan_of[id.value]]; }
  const NestStage& root_of(const NestStage& stage) const {
    return stage.at.valid() ? root_of(of(stage.at)) : stage;
  }

  // Cores kept busy by the root's parallel loops.
  double speedup(const NestStage& root) const {
    if (!penalties_.counts(Penalty::kComputeL2)) return target_.threads;
    double tasks = 1;
    for (int i = 0; i < root.parallel_loops; ++i)
      tasks *= static_cast<double>(root.loops[i].extent);
    return tasks / std::ceil(tasks / target_.threads);
  }

  double seconds(StageSymbols s, double cores) const {
    if (!penalties_.counts(Penalty::kComputeL0)) s.chain_cycles = s.overhead_cycles = 0;
    if (!penalties_.counts(Penalty::kMemoryL0)) s.memory_cycles = 0;
    if (!penalties_.counts(Penalty::kMemoryL1)) s.l2_bytes = 0;
    if (!penalties_.counts(Penalty::kMemoryL2)) s.l3_bytes = 0;
    const double step = std::max({std::max(s.operation_cycles, s.memory_cycles) +
                                      0.15 * std::min(s.operation_cycles, s.memory_cycles),
                                  s.chain_cycles});
    const double terms[] = {(s.steps * step + s.overhead_cycles) * cycle_s_ / cores,
                            s.l2_bytes / target_.l2_bandwidth / cores,
                            s.l3_bytes / target_.l3_bandwidth / cores,
                            s.dram_bytes / target_.dram_bandwidth};
    double sum = 0, longest = 0;
    for (const double term : terms) {
      sum += term;
      longest = std::max(longest, term);
    }
    return longest + kUnhidden * (sum - longest);
  }

  double visits(const NestStage& stage) const {
    if (!stage.at.valid()) return 1;
    const NestStage& parent = of(stage.at);
    double n = visits(parent);
    for (int i = 0; i < stage.depth; ++i) n *= static_cast<double>(parent.loops[i].extent);
    return n;
  }

  static double points(const Stage& stage) {
    double n = 1;
    for (const auto* axes : {&stage.axes, &stage.reduce_axes}) {
      for (const auto& axis : *axes) n *= static_cast<double>(axis.extent);
    }
    return n;
  }

  StageSymbols symbols(const NestStage& stage) {
    const Stage& s = dag_[stage.stage];
    const int spatial = static_cast<int>(s.axes.size());
    const RegisterTile tile = register_tile(nest_, stage);
    StageSymbols out;
    out.stage = stage.stage;
    out.visits = out.steps = visits(stage);
    double tiles = out.visits, iterations = out.visits;
    for (size_t i = 0; i < tile.begin; ++i) {
      const NestLoop& loop = stage.loops[i];
      if (loop.kind == LoopKind::kVectorize) continue;  // folded lanes are one step
      out.steps *= static_cast<double>(loop.extent);
      if (loop.axis < spatial) tiles = out.steps;  // with the chunks of a reduction around it
      if (loop.kind == LoopKind::kSerial) iterations = out.steps;
    }
    // A multiplication and the addition behind it are one instruction.
    const double body = nest_.tables->body_operations[stage.stage.value];
    const double operations = std::max(1.0, s.is_reduction() && body < 1 ? 1.0 : body);
    out.operation_cycles = tile.count() * operations / issued_per_cycle(target_, tile);
    if (!penalties_.counts(Penalty::kComputeL1))
      out.steps = std::min(out.steps, points(s) / (tile.count() * tile.lanes));
    out.memory_cycles += load_cycles(nest_, target_, stage, tile);
    if (is_masked(nest_, stage, tile)) {
      out.operation_cycles *= kMaskedTile;
      out.memory_cycles *= kMaskedTile;
    }
    if (s.is_reduction()) {
      out.chain_cycles = kFmaLatencyCycles;
    } else if (stage.scope != Scope::kRegister) {
      out.memory_cycles += tile.count();
    }
    if (stage.prefetch_bytes > 0) out.memory_cycles += 0.5 * tile.vectors;
    const double unrolled =
        std::clamp(static_cast<double>(stage.unroll_steps) / tile.count(), 1.0, 16.0);
    out.overhead_cycles = iterations / unrolled + 6 * out.visits;
    if (s.is_reduction()) out.overhead_cycles += tiles * (1.5 * tile.count() + 12);
    add_traffic(stage, tile.vector_axis, out);
    return out;
  }

  const std::vector<Access>& accesses(const NestStage& stage) const {
    return accesses_of(nest_, stage);
  }
  const PackSpec* packing(StageId operand) const { return packing_of(nest_, operand); }
  bool is_packed(StageId operand) const { return packing(operand) != nullptr; }

  // The loops around a stage's body. An anchor's axes are its root's, so the loops that it hangs in
  // move its operands; those around a cluster move what is read of it. What another attached stage
  // reads is taken as moving on with every visit.
  void surrounding(const NestStage& stage,
                   bool own,
                   std::vector<SurroundingLoop>& loops,
                   size_t count) const {
    if (stage.at.valid()) {
      const bool anchor = stage.unroll_steps > 0, cluster = !anchor && is_cluster(stage);
      surrounding(
          of(stage.at), own && (anchor || cluster), loops, static_cast<size_t>(stage.depth));
      if (own && cluster) {
        for (SurroundingLoop& loop : loops) loop = moved_axis(stage, loop);
      }
    }
    for (size_t i = 0; i < count; ++i) {
      const NestLoop& loop = stage.loops[i];
      loops.push_back({own ? loop.axis : -1, loop.extent, loop.step});
    }
  }

  bool is_cluster(const NestStage& stage) const {
    return std::ranges::any_of(nest_.stages, [&](const NestStage& other) {
      return other.at == stage.stage && other.unroll_steps > 0;
    });
  }

  // A loop of the root that a cluster is inside of, as the cluster's axis that it moves.
  SurroundingLoop moved_axis(const NestStage& cluster, const SurroundingLoop& loop) const {
    for (const StageId reader : nest_.tables->consumers[cluster.stage.value]) {
      if (loop.axis < 0 || (reader != cluster.at && of(reader).unroll_steps == 0)) continue;
      for (const Access& access : accesses(of(reader))) {
        if (access.producer != cluster.stage) continue;
        for (size_t d = 0; d < access.indices.size(); ++d) {
          if (!access.indices[d]) continue;
          const int64_t factor = access.indices[d]->coefficient(VarId{loop.axis});
          if (factor > 0) return {static_cast<int>(d), loop.extent, loop.step * factor};
        }
      }
    }
    return {-1, loop.extent, loop.step};
  }

  // A transform reads what its tiles need, all of it once.
  void add_transform_traffic(const NestStage& stage, StageSymbols& out) {
    for (const StageId id : dag_.producers(stage.stage)) {
      const Stage& producer = dag_[id];
      if (!producer.is_placeholder() && of(id).scope != Scope::kWorkspace) continue;
      const double bytes = bytes_of(producer);
      out.l2_bytes += bytes;
      const double held = usable(target_.l2_bytes * target_.threads);
      if (bytes > held) out.l3_bytes += bytes;
    }
  }

  void add_traffic(const NestStage& stage, int vector, StageSymbols& out) {
    const Stage& s = dag_[stage.stage];
    if (!s.unrolled.empty()) return add_transform_traffic(stage, out);
    loops_.clear();
    operands_.clear();
    surrounding(stage, true, loops_, stage.loops.size());
    for (const Access& access : accesses(stage)) {
      const Stage& producer = dag_[access.producer];
      if (!producer.is_placeholder() && of(access.producer).scope != Scope::kWorkspace) continue;
      operands_.push_back(make_operand(access,
                                       producer,
                                       is_packed(access.producer),
                                       s.axes.size() + s.reduce_axes.size(),
                                       loops_));
      const double run = run_bytes(access, producer);
      operands_.back().waste = 1 + kRunStartLines * kLineBytes / run;
      const double bytes = bytes_of(producer);
      const bool uncacheable = bytes > usable(target_.l3_bytes);
      if (producer.constant || uncacheable) {
        const double waits = stage.prefetch_bytes > 0 ? kPrefetchedWaits : 1;
        double starts = kStreamStartBytes / run;
        if (uncacheable) starts = std::min(starts, kMostStarts);
        out.dram_bytes += bytes * waits * (1 + starts);
      }
    }
    out.l2_bytes =
        fetched_bytes_in_sets(operands_, loops_, usable(target_.l1_bytes), written(stage));
    out.l3_bytes = fetched_bytes(operands_, loops_, usable(target_.l2_bytes));
    if (parts_pairs(stage, vector)) {
      out.l2_bytes *= kPartedPairs;
      out.l3_bytes *= kPartedPairs;
    }
    if (s.output) {  // what the caches do not hold is read before it is written, unless it streams
      const double bytes = bytes_of(s);
      const bool held = bytes <= usable(target_.l3_bytes);
      if (stage.streaming || !held) out.dram_bytes += stage.streaming ? bytes : 2 * bytes;
    }
    if (stage.scope == Scope::kWorkspace && !stage.at.valid() &&
        bytes_of(s) > usable(target_.l2_bytes * target_.threads)) {
      out.l3_bytes += 2 * bytes_of(s);  // read before it is written, and written back
    }
    if (!stage.at.valid() && stage.scope != Scope::kRegister)
      out.l3_bytes += contended_bytes(stage, vector);
    out.l2_bytes += tile_traffic(stage, target_.l1_bytes);
    out.l3_bytes += tile_traffic(stage, target_.l2_bytes);
  }

  // What the loops' results hold of L1, where they go from registers to a tensor.
  std::vector<double> written(const NestStage& stage) const {
    const bool stored = stage.scope == Scope::kRegister && stage.unroll_steps > 0;
    if (!stored) return std::vector<double>(loops_.size() + 1, 0.0);
    const Stage& to = dag_[stage.at];
    Access access{stage.at, {}, {}, {}, std::vector<std::optional<SteppedIndex>>(to.axes.size())};
    for (int32_t d = 0; d < static_cast<int32_t>(to.axes.size()); ++d)
      access.indices.push_back(Affine{{{VarId{d}, 1}}, 0});
    const size_t iterators = dag_[stage.stage].axes.size() + dag_[stage.stage].reduce_axes.size();
    return make_operand(access, to, false, iterators, loops_).held;
  }

  // Whether a line is long gone from L1 when its neighbour is read, which was fetched with it:
  // short pieces of the vector axis, each for more than L1 holds.
  bool parts_pairs(const NestStage& stage, int vector) const {
    double piece = static_cast<double>(dtype_bytes(dag_[stage.stage].dtype));
    for (size_t i = loops_.size(); i-- > 0;) {
      if (loops_[i].axis != vector || vector < 0) continue;
      double inside = 0;
      for (const Operand& operand : operands_) inside += operand.held[i + 1];
      const bool evicted = inside > usable(target_.l1_bytes);
      if (evicted && loops_[i].extent > 1) return piece < 2 * kLineBytes;
      piece *= static_cast<double>(loops_[i].extent);
    }
    return false;
  }

  // Lines that two cores take from each other: where the threads divide the vector axis into short
  // pieces, the prefetcher of one fetches the neighbours of its lines, which the other writes.
  double contended_bytes(const NestStage& stage, int vector) const {
    const Stage& s = dag_[stage.stage];
    if (stage.parallel_loops == 0 || stage.loops[0].axis != vector) return 0;
    const NestLoop& outer = stage.loops[0];
    const double share = std::ceil(static_cast<double>(outer.extent) / target_.threads);
    const double element = static_cast<double>(dtype_bytes(s.dtype));
    const double piece = share * static_cast<double>(outer.step) * element;
    const bool divided = piece < static_cast<double>(s.axes[vector].extent) * element;
    if (!divided || piece > kContendedPieceBytes) return 0;
    return kContention * static_cast<double>(s.num_elements()) * element * 2 * kLineBytes / piece;
  }

  // A tile that is accumulated in cache is read and written for every chunk of the reduction; what
  // a cluster leaves to the one around it is written and read once.
  double tile_traffic(const NestStage& stage, int64_t cache_bytes) const {
    const Stage& s = dag_[stage.stage];
    if (stage.scope != Scope::kLocal || stage.loops.empty()) return 0;
    const bool chunked = stage.loops[0].axis >= static_cast<int>(s.axes.size());
    if (!chunked && !is_cluster(stage)) return 0;
    double bytes = static_cast<double>(dtype_bytes(s.dtype));
    for (const int64_t extent : stage.extents) bytes *= static_cast<double>(extent);
    if (bytes <= usable(cache_bytes)) return 0;
    return 2 * bytes * visits(stage) * (chunked ? static_cast<double>(stage.loops[0].extent) : 1.0);
  }

  // Bytes of an operand that the loops (of loops_) walk through before they jump, one after the
  // other or a line of each of a few rows in turns: what a prefetcher can follow.
  double run_bytes(const Access& access, const Stage& producer) const {
    const PackSpec* packed = packing(access.producer);
    const bool in_blocks = packed != nullptr && !packed->blocks.empty();
    const auto [blocked, block] = in_blocks ? packed->blocks[0] : std::pair<int, int64_t>(-1, 1);
    // Elements from one index of each dimension (or block of it) to the next.
    std::vector<double> step(access.indices.size(), 1);
    double size = static_cast<double>(block);
    for (size_t i = step.size(); i-- > 0;) {
      const int d = in_blocks ? packed->order[i] : static_cast<int>(i);
      const int64_t extent = producer.axes[d].extent;
      step[d] = size;
      size *= static_cast<double>(d == blocked ? (extent + block - 1) / block : extent);
    }
    const auto element = static_cast<double>(dtype_bytes(producer.dtype));
    double run = 1, streams = 1;
    for (size_t i = loops_.size(); i-- > 0;) {
      const SurroundingLoop& loop = loops_[i];
      double stride = 0;
      for (size_t d = 0; d < step.size() && loop.axis >= 0; ++d) {
        if (!access.indices[d]) continue;
        const int64_t moved = access.indices[d]->coefficient(VarId{loop.axis}) * loop.step;
        const bool inside = static_cast<int>(d) == blocked && moved < block;
        stride += inside ? static_cast<double>(moved)
                         : static_cast<double>(moved) * step[d] /
                               static_cast<double>(static_cast<int>(d) == blocked ? block : 1);
      }
      if (stride == 0 && loop.axis >= 0) continue;  // the same again
      const auto extent = static_cast<double>(loop.extent);
      if (stride == run) {
        run *= extent;
      } else if (stride > run && run * element <= kLineBytes &&
                 streams * extent <= kStreamsInTurns) {
        streams *= extent;
      } else {
        break;
      }
    }
    return run * streams * element;
  }

  const LoopNest& nest_;
  const ComputeDag& dag_;
  const Target& target_;
  const Penalties penalties_;
  double cycle_s_;
  std::vector<SurroundingLoop> loops_;
  std::vector<Operand> operands_;
};

Draft candidate_draft(const LoopNest& nest, const Gpu& gpu, Penalties penalties) {
  std::vector<ThreadResources> threads;
  for (const NestStage& stage : nest.stages) {
    if (!stage.at.valid()) threads.push_back(thread_resources(nest, stage));
  }
  return gpu_draft(make_statements(nest), gpu, threads, penalties);
}

}  // namespace

Draft draft(const LoopNest& nest, const Target& target, Penalties penalties) {
  return target.is_gpu() ? candidate_draft(nest, target.drafted_gpu(), penalties)
                         : Analyzer(nest, target, penalties).run();
}

double draft_latency_s(const LoopNest& nest, const Target& target, Penalties penalties) {
  return draft(nest, target, penalties).latency_s;
}

std::string print(const Draft& draft, const ComputeDag& dag) {
  std::string text = fmt::format("latency {:.3f} us\n", draft.latency_s * 1e6);
  for (const StageSymbols& s : draft.stages) {
    text += fmt::format(
        "{}: visits {:.0f} steps {:.0f} cycles a step: operations {:.1f} memory {:.1f} chain "
        "{:.1f}; overhead {:.0f}; "
        "bytes from L2 {:.0f} L3 {:.0f} memory {:.0f}\n",
        dag[s.stage].name,
        s.visits,
        s.steps,
        s.operation_cycles,
        s.memory_cycles,
        s.chain_cycles,
        s.overhead_cycles,
        s.l2_bytes,
        s.l3_bytes,
        s.dram_bytes);
  }
  for (const KernelSymbols& k : draft.kernels) {
    text += fmt::format(
        "{}: blocks {:.0f} threads {:.0f} registers {:.0f} active warps {:.0f} filled {:.2f}; us: "
        "compute {:.2f} "
        "shared {:.2f}; bytes from L2 {:.0f} memory {:.0f}, local of a thread {:.0f}\n",
        dag[k.root].name,
        k.blocks,
        k.threads,
        k.registers,
        k.active_warps,
        k.filled,
        1e6 * k.compute_s,
        1e6 * k.shared_s,
        k.l2_bytes,
        k.dram_bytes,
        k.local_bytes);
  }
  return text;
}

}  // namespace pruner
