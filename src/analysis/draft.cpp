#include "analysis/draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/computed_share.h"
#include "analysis/gpu_draft.h"
#include "analysis/operand.h"
#include "analysis/register_tile.h"
#include "space/plan.h"
#include "target/machine_model.h"

namespace pruner {
namespace {

double bytes_of(const Stage& stage) {
  return static_cast<double>(stage.num_elements() * dtype_bytes(stage.dtype));
}

class Analyzer {
 public:
  Analyzer(const LoopNest& nest, const Target& target, Penalties penalties)
      : nest_(nest),
        dag_(*nest.dag),
        target_(target),
        penalties_(penalties),
        line_bytes_(static_cast<double>(target.cache_line_bytes)) {
    const double known = target.peak_flops,
                 peak = known > 0 ? known : target_.draft.assumed_peak_flops;
    for (const Stage& stage : dag_.stages) {
      if ((stage.is_placeholder() && !stage.constant) || stage.output)
        kernel_bytes_ += bytes_of(stage);
    }
    cycle_s_ = 2.0 * target.lanes(4) * target.fmas_per_cycle / peak;
  }

  Draft run() {
    Draft draft;
    for (const NestStage& stage : nest_.stages) draft.stages.push_back(symbols(stage));
    for (size_t i = 0; i < draft.stages.size(); ++i) {
      const NestStage& root = root_of(nest_.stages[i]);
      draft.latency_s += seconds(draft.stages[i], speedup(root));
      if (root.stage == nest_.stages[i].stage) draft.latency_s += fork_join_s(root);
    }
    return draft;
  }

 private:
  double usable(int64_t cache_bytes) const {
    return target_.draft.usable_cache_share * static_cast<double>(cache_bytes);
  }
  const NestStage& of(StageId id) const { return nest_.stages[nest_.tables->plan_of[id]]; }
  const NestStage& root_of(const NestStage& stage) const {
    return stage.at.valid() ? root_of(of(stage.at)) : stage;
  }

  static double tasks(const NestStage& root) {
    double n = 1;
    for (int i = 0; i < root.parallel_loops; ++i) n *= static_cast<double>(root.loops[i].extent);
    return n;
  }

  // Cores kept busy by the root's parallel loops.
  double speedup(const NestStage& root) const {
    if (!penalties_.counts(Penalty::kComputeL2)) return target_.threads;
    const double n = tasks(root);
    return n / std::ceil(n / target_.threads);
  }

  // Returns the seconds of a fork and join: launch_s for two threads, and again for each doubling.
  double fork_join_s(const NestStage& root) const {
    const double threads = std::min<double>(tasks(root), target_.threads);
    return target_.launch_s * std::max(1.0, std::log2(threads));
  }

  // cycles = steps * max(longer + 0.15 shorter of operations and loads, chain) + overhead; then
  // seconds = longest + 0.25 of the other times of the core, L2, L3 and memory: Pruner's section
  // 4.2 with overlap, which a core's queues hide most of and never all.
  double seconds(StageSymbols s, double cores) const {
    if (!penalties_.counts(Penalty::kComputeL0)) s.chain_cycles = s.overhead_cycles = 0;
    if (!penalties_.counts(Penalty::kMemoryL0)) s.memory_cycles = 0;
    if (!penalties_.counts(Penalty::kMemoryL1)) s.l2_bytes = 0;
    if (!penalties_.counts(Penalty::kMemoryL2)) s.l3_bytes = 0;
    const auto [shorter, longer] = std::minmax(s.operation_cycles, s.memory_cycles);
    const double step =
        std::max(longer + target_.draft.exposed_step_share * shorter, s.chain_cycles);
    const double terms[] = {(s.steps * step + s.overhead_cycles) * cycle_s_ / cores,
                            s.l2_bytes / target_.l2_bandwidth / cores,
                            s.l3_bytes / target_.l3_bandwidth / cores,
                            s.dram_bytes / target_.dram_bandwidth};
    double sum = 0, longest = 0;
    for (const double term : terms) {
      sum += term;
      longest = std::max(longest, term);
    }
    return longest + target_.draft.exposed_share * (sum - longest);
  }

  double visits(const NestStage& stage) const {
    if (!stage.at.valid()) return 1;
    const NestStage& parent = of(stage.at);
    double n = visits(parent);
    for (int i = 0; i < stage.depth; ++i) n *= static_cast<double>(parent.loops[i].extent);
    return n * computed_share(nest_, parent, static_cast<size_t>(stage.depth));
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
    const double share = computed_share(nest_, stage, tile.begin);
    for (double* count : {&out.steps, &tiles, &iterations}) *count *= share;
    out.overhead_cycles =
        overhead_cycles(stage, tile, iterations, out.visits, s.is_reduction() ? tiles : 0);
    if (!penalties_.counts(Penalty::kComputeL1))
      out.steps = std::min(out.steps, points(s) / (tile.count() * tile.lanes));
    set_step(stage, tile, out);
    add_traffic(stage, tile.vector_axis, out);
    if (tile.is_matrix() && !tile.in_vectors()) out.l2_bytes *= target_.draft.matrix_l2_factor;
    return out;
  }

  // Sets the cycles that one step takes of the core. operations = vectors * instructions of the
  // body / issued a cycle; memory = loads (register_tile.h), stores and prefetches; chain = the
  // latency of an FMA.
  void set_step(const NestStage& stage, const RegisterTile& tile, StageSymbols& out) const {
    const bool reduces = dag_[stage.stage].is_reduction();
    if (tile.is_matrix()) {
      out.operation_cycles = matrix_cycles(target_, tile, nest_.tables->dot_rates[stage.stage]);
      out.memory_cycles = load_cycles(nest_, target_, stage, tile);
      if (tile.in_vectors()) out.chain_cycles = target_.draft.fma_latency_cycles;
      if (stage.prefetch_bytes > 0)
        out.memory_cycles += target_.draft.prefetch_cycles * tile.vectors * tile.steps;
      return;
    }
    // A multiplication and the addition behind it are one instruction.
    const double body = tile.terms > 1 ? tile.terms / nest_.tables->dot_rates[stage.stage]
                                       : std::max(1.0, nest_.tables->body_operations[stage.stage]);
    out.operation_cycles = tile.count() * body / issued_per_cycle(target_, tile);
    out.memory_cycles = load_cycles(nest_, target_, stage, tile);
    if (is_masked(nest_, stage, tile)) {
      out.operation_cycles *= target_.draft.masked_step_factor;
      out.memory_cycles *= target_.draft.masked_step_factor;
    }
    if (reduces) out.chain_cycles = chain_cycles(stage, tile);
    if (!reduces && stage.scope != Scope::kRegister) out.memory_cycles += tile.count();
    if (stage.prefetch_bytes > 0) out.memory_cycles += target_.draft.prefetch_cycles * tile.vectors;
  }

  // Latency of an FMA / chains in flight: the core begins those of the next tiles while this one's
  // wait, as far as it looks ahead. A tile adds up so many terms before the loops go on to another.
  double chain_cycles(const NestStage& stage, const RegisterTile& tile) const {
    const int spatial = static_cast<int>(dag_[stage.stage].axes.size());
    double terms = 1;
    for (size_t i = tile.begin; i > 0 && stage.loops[i - 1].axis >= spatial; --i)
      terms *= static_cast<double>(stage.loops[i - 1].extent);
    const double instructions = terms * (tile.count() + tile.vectors);
    const double tiles = target_.draft.window_instructions / instructions;
    return target_.draft.fma_latency_cycles / std::max(1.0, tiles);
  }

  // overhead = iterations / copies that are unrolled + 6 visits + (12 + 1.5 vectors) tiles, of a
  // reduction, whose accumulators are set to a first value and written back.
  double overhead_cycles(const NestStage& stage,
                         const RegisterTile& tile,
                         double iterations,
                         double visits,
                         double tiles) const {
    const CpuModel& m = target_.draft;
    const double copies = static_cast<double>(stage.unroll_steps) / tile.count();
    // A tile of sums in vectors goes to memory and comes from there again, row by row.
    const double accumulator = !tile.is_matrix() ? m.accumulator_cycles
                               : tile.in_vectors()
                                   ? 2 * tile.structure->tile_vectors * m.accumulator_cycles
                                   : m.matrix_store_cycles;
    return m.loop_cycles * iterations / std::clamp(copies, 1.0, m.most_unrolled) +
           m.entry_cycles * visits + tiles * (accumulator * tile.count() + m.tile_cycles);
  }

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
    for (const StageId reader : nest_.tables->consumers[cluster.stage]) {
      if (loop.axis < 0 || (reader != cluster.at && of(reader).unroll_steps == 0)) continue;
      for (const Access& access : accesses_of(nest_, of(reader))) {
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
    if (!dag_[stage.stage].unrolled.empty()) return add_transform_traffic(stage, out);
    loops_.clear();
    operands_.clear();
    surrounding(stage, true, loops_, stage.loops.size());
    for (const Access& access : accesses_of(nest_, stage)) {
      const Stage& producer = dag_[access.producer];
      if (producer.is_placeholder() || of(access.producer).scope == Scope::kWorkspace) {
        out.dram_bytes += add_operand(stage, access, producer);
      } else if (of(access.producer).scope == Scope::kLocal) {
        operands_.push_back(make_operand(read_of(stage, access, &of(access.producer))));
      }
    }
    out.l2_bytes =
        fetched_bytes_in_sets(operands_, loops_, usable(target_.l1_bytes), written(stage));
    out.l3_bytes = fetched_bytes(operands_, loops_, usable(target_.l2_bytes));
    if (parts_pairs(stage, vector)) {
      out.l2_bytes *= target_.draft.parted_pair_factor;
      out.l3_bytes *= target_.draft.parted_pair_factor;
    }
    add_stores(stage, vector, out);
    out.l2_bytes += tile_traffic(stage, target_.l1_bytes);
    out.l3_bytes += tile_traffic(stage, target_.l2_bytes);
  }

  SurroundedRead read_of(const NestStage& stage,
                         const Access& access,
                         const NestStage* attached) const {
    const Stage& s = dag_[stage.stage];
    return {access,
            dag_[access.producer],
            attached,
            packing_of(nest_, access.producer),
            s.axes.size() + s.reduce_axes.size(),
            loops_,
            line_bytes_,
            target_.draft.streams_in_turns};
  }

  // Gives what the operand streams from memory: bytes * (1 + 8 KiB / run) of a constant, or of what
  // the caches do not hold, where 8 KiB could come while the stream of a new run starts. Of L3
  // likewise: (1 + 2 lines / run).
  double add_operand(const NestStage& stage, const Access& access, const Stage& producer) {
    const CpuModel& m = target_.draft;
    const SurroundedRead read = read_of(stage, access, nullptr);
    operands_.push_back(make_operand(read));
    const double run = run_bytes(read);
    operands_.back().waste = 1 + m.run_start_lines * line_bytes_ / run;
    const double bytes = bytes_of(producer);
    const bool uncacheable = bytes > usable(target_.l3_bytes);
    if (!producer.constant && !uncacheable) return 0;
    const double waits = stage.prefetch_bytes == 0 ? 1
                         : reads_in_rounds(stage)  ? m.round_wait_share
                                                   : m.prefetched_wait_share;
    const double starts = m.stream_start_bytes / run;
    return bytes * waits * (1 + (uncacheable ? std::min(starts, m.most_starts) : starts));
  }

  // Whether the last operand's next bytes are prefetched while loops read the same again.
  bool reads_in_rounds(const NestStage& stage) const {
    if (stage.prefetch_bytes != kPrefetchRound) return false;
    const std::vector<bool>& moves = operands_.back().moves;
    size_t i = loops_.size();
    for (auto loop = stage.loops.rbegin(); loop != stage.loops.rend(); ++loop, --i)
      if (loop->kind == LoopKind::kSerial) break;
    while (i > 0 && (moves[i - 1] || loops_[i - 1].extent == 1)) --i;
    return i > 0 && operands_.back().bytes[i] <= static_cast<double>(kMostRoundBytes);
  }

  // A line is fetched before it is written and goes back later, to the last cache or, where that
  // does not hold all of the kernel, to memory; unless it streams past them. What would have stayed
  // in the last cache is then fetched from memory by who reads it next.
  void add_stores(const NestStage& stage, int vector, StageSymbols& out) const {
    const Stage& s = dag_[stage.stage];
    const double bytes = bytes_of(s);
    const bool root = !stage.at.valid();
    const bool stays = kernel_bytes_ <= usable(target_.l3_bytes);
    if (s.output && stage.streaming) out.dram_bytes += (stays ? 2 : 1) * bytes;
    const bool workspace = root && stage.scope == Scope::kWorkspace;
    if (s.output && !stage.streaming) (stays ? out.l3_bytes : out.dram_bytes) += 2 * bytes;
    if (workspace && bytes > usable(target_.l3_bytes)) out.dram_bytes += 2 * bytes;
    if (workspace && bytes > usable(target_.l2_bytes * target_.threads)) out.l3_bytes += 2 * bytes;
    if (root && stage.scope != Scope::kRegister) out.l3_bytes += contended_bytes(stage, vector);
  }

  // Returns the bytes of L1 that the results of the loops hold if results go from registers to a
  // tensor; zeros otherwise.
  std::vector<double> written(const NestStage& stage) const {
    const bool stored = stage.scope == Scope::kRegister && stage.unroll_steps > 0;
    if (!stored) return std::vector<double>(loops_.size() + 1, 0.0);
    const Stage& to = dag_[stage.at];
    Access access{stage.at, {}, {}, {}, std::vector<std::optional<SteppedIndex>>(to.axes.size())};
    for (int32_t d = 0; d < static_cast<int32_t>(to.axes.size()); ++d)
      access.indices.push_back(Affine{{{VarId{d}, 1}}, 0});
    const size_t iterators = dag_[stage.stage].axes.size() + dag_[stage.stage].reduce_axes.size();
    return make_operand({access, to, nullptr, nullptr, iterators, loops_, line_bytes_, 0}).held;
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
      if (evicted && loops_[i].extent > 1) return piece < 2 * line_bytes_;
      piece *= static_cast<double>(loops_[i].extent);
    }
    return false;
  }

  // transfers * bytes * 2 lines / piece, which has an end in two lines that two cores take from
  // each other: where the threads divide the vector axis into short pieces, the prefetcher of one
  // fetches the neighbours of its lines, which the other writes.
  double contended_bytes(const NestStage& stage, int vector) const {
    const Stage& s = dag_[stage.stage];
    if (stage.parallel_loops == 0 || stage.loops[0].axis != vector) return 0;
    const NestLoop& outer = stage.loops[0];
    const double share = std::ceil(static_cast<double>(outer.extent) / target_.threads);
    const double element = static_cast<double>(dtype_bytes(s.dtype));
    const double piece = share * static_cast<double>(outer.step) * element;
    const bool divided = piece < static_cast<double>(s.axes[vector].extent) * element;
    if (!divided || piece > target_.draft.contended_piece_bytes) return 0;
    return target_.draft.contention_transfers * bytes_of(s) * 2 * line_bytes_ / piece;
  }

  // An attached buffer that a cache does not hold is written beyond it, each line after it was
  // fetched: once, or for every chunk of a reduction that it accumulates. What reads it has it
  // among its operands.
  double tile_traffic(const NestStage& stage, int64_t cache_bytes) const {
    const Stage& s = dag_[stage.stage];
    if (stage.scope != Scope::kLocal || stage.loops.empty()) return 0;
    const bool chunked = stage.loops[0].axis >= static_cast<int>(s.axes.size());
    double bytes = static_cast<double>(dtype_bytes(s.dtype));
    for (const int64_t extent : stage.extents) bytes *= static_cast<double>(extent);
    if (bytes <= usable(cache_bytes)) return 0;
    return 2 * bytes * visits(stage) * (chunked ? static_cast<double>(stage.loops[0].extent) : 1.0);
  }

  const LoopNest& nest_;
  const ComputeDag& dag_;
  const Target& target_;
  const Penalties penalties_;
  const double line_bytes_;
  double cycle_s_;
  double kernel_bytes_ = 0;  // read and written: what the last cache would have to hold
  std::vector<SurroundingLoop> loops_;
  std::vector<Operand> operands_;
};

Draft candidate_draft(const LoopNest& nest, const Gpu& gpu, Penalties penalties) {
  std::vector<double> registers;
  for (const NestStage& stage : nest.stages) {
    if (!stage.at.valid()) registers.push_back(thread_registers(nest, stage));
  }
  return gpu_draft(make_statements(nest), gpu, registers, penalties);
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
  static constexpr const char kStage[] =
      "{}: visits {:.0f} steps {:.0f} cycles a step: operations {:.1f} memory {:.1f} chain "
      "{:.1f}; overhead {:.0f}; bytes from L2 {:.0f} L3 {:.0f} memory {:.0f}\n";
  static constexpr const char kKernel[] =
      "{}: blocks {:.0f} threads {:.0f} registers {:.0f} active warps {:.0f} filled {:.2f}; us: "
      "compute {:.2f} shared {:.2f}; bytes from L2 {:.0f} memory {:.0f}\n";
  std::string text = fmt::format("latency {:.3f} us\n", draft.latency_s * 1e6);
  for (const auto& [s, visits, steps, work, loads, chain, more, l2, l3, dram] : draft.stages) {
    text += fmt::format(kStage, dag[s].name, visits, steps, work, loads, chain, more, l2, l3, dram);
  }
  for (const auto& [s, n, threads, regs, warps, full, work, shared, l2, dram] : draft.kernels) {
    const double us = work * 1e6, load_us = shared * 1e6;
    text += fmt::format(kKernel, dag[s].name, n, threads, regs, warps, full, us, load_us, l2, dram);
  }
  return text;
}

}  // namespace pruner
