// The structure of Pruner's analyzer with CPU meanings. Each stage of a nest yields symbols:
//   S1 vector operations of its body          S2 loads and stores that issue with them
//   S3 links of the longest dependence chain  S4 loop iterations that are not unrolled
//   S5..S7 bytes that cross into L1, L2, L3   S8 visits (tiles begun and written back)
// and penalties at each level: too few accumulators (P_L0), idle lanes (in S1), rows that fall into
// one cache set (P_L1), idle cores (P_par). latency = max(compute, bytes / bandwidth at each level)
// plus a share of what could not be hidden.
#include "analysis/draft.h"

#include <algorithm>
#include <cmath>

#include "space/plan.h"

namespace pruner {
namespace {

constexpr double kFmaLatencyCycles = 4;
constexpr double kUsableCache = 0.75;   // of a cache, before neighbours evict
constexpr double kUnhidden = 0.25;      // share of the shorter terms that overlap does not hide
constexpr double kForkJoinSeconds = 1.5e-6;

/// A loop around a stage's body, its attach chain's loops included.
struct OuterLoop {
  StageId stage;
  const NestLoop* loop;
};

class Analyzer {
 public:
  Analyzer(const LoopNest& nest, const Target& target) : nest_(nest), dag_(*nest.dag), target_(target) {
    cycle_s_ = 2.0 * target.lanes(4) / target.peak_flops * (target.vector_bytes >= 64 ? 1.0 : 2.0);
    if (!(target.peak_flops > 0)) cycle_s_ = 0.3e-9;
  }

  double latency_s() {
    double total = 0;
    for (const NestStage& root : nest_.stages) {
      if (root.at.valid()) continue;
      double serial = 0;  // of all threads' work
      for (const NestStage& stage : nest_.stages) {
        if (root_of(stage).stage == root.stage) serial += stage_seconds(stage, root);
      }
      total += serial / parallel_speedup(root) + kForkJoinSeconds;
    }
    return total;
  }

 private:
  const NestStage& of(StageId id) const { return nest_.stages[static_cast<size_t>(nest_.tables->plan_of[static_cast<size_t>(id.value)])]; }

  const NestStage& root_of(const NestStage& stage) const {
    const NestStage* at = &stage;
    while (at->at.valid()) at = &of(at->at);
    return *at;
  }

  double parallel_speedup(const NestStage& root) const {
    double tasks = 1;
    for (int i = 0; i < root.parallel_loops; ++i) tasks *= static_cast<double>(root.loops[static_cast<size_t>(i)].extent);
    return tasks / std::ceil(tasks / target_.threads);
  }

  double stage_seconds(const NestStage& stage, const NestStage& root) {
    collect_loops(stage);
    const Stage& s = dag_[stage.stage];
    const size_t own = loops_.size() - stage.loops.size();
    double visits = 1;
    for (size_t i = 0; i < own; ++i) visits *= static_cast<double>(loops_[i].loop->extent);

    // The register tile: the loops inside the last reduce loop (or the vector loop alone).
    const int spatial = static_cast<int>(s.axes.size());
    size_t tile = loops_.size();
    while (tile > own && loops_[tile - 1].loop->kind != LoopKind::kSerial && loops_[tile - 1].loop->axis < spatial) --tile;
    double steps = visits;  // evaluations of the register tile
    double iterations = visits;
    for (size_t i = own; i < tile; ++i) {
      steps *= static_cast<double>(loops_[i].loop->extent);
      if (loops_[i].loop->kind == LoopKind::kSerial) iterations = steps;
    }
    double rows = 1, vectors = 1, lanes = 1;
    int vector_axis = -1;
    for (size_t i = tile; i < loops_.size(); ++i) {
      const NestLoop& loop = *loops_[i].loop;
      if (loop.kind == LoopKind::kVectorize) {
        lanes = static_cast<double>(loop.extent);
        vector_axis = loop.axis;
      }
    }
    for (size_t i = tile; i < loops_.size(); ++i) {
      const NestLoop& loop = *loops_[i].loop;
      if (loop.kind == LoopKind::kUnroll) (loop.axis == vector_axis ? vectors : rows) *= static_cast<double>(loop.extent);
    }
    if (vector_axis < 0) {  // lanes that are folded, or scalar code
      for (size_t i = own; i < loops_.size(); ++i) {
        if (loops_[i].loop->kind == LoopKind::kVectorize) {
          lanes = static_cast<double>(loops_[i].loop->extent);
          steps /= lanes;
        }
      }
    }

    const double operations = std::max(nest_.tables->body_operations[static_cast<size_t>(stage.stage.value)] +
                                           (s.is_reduction() ? 1.0 : 0.0), 1.0);
    const bool fused = s.is_reduction() && operations >= 2;  // multiply and add are one instruction
    const double vector_share = std::max(lanes * 4.0 / static_cast<double>(target_.vector_bytes), 0.25);
    double compute = rows * vectors * (operations - (fused ? 1 : 0)) * vector_share;
    double memory = s.is_reduction() ? 0 : rows * vectors * (stage.scope == Scope::kRegister ? 0.0 : 1.0);
    for (const Access& access : nest_.tables->accesses[static_cast<size_t>(stage.stage.value)]) {
      memory += load_cycles(access, stage, tile, vector_axis, lanes, vectors);
    }
    double step_cycles = std::max(compute, memory) + 0.15 * std::min(compute, memory);
    if (s.is_reduction()) step_cycles = std::max(step_cycles, kFmaLatencyCycles);  // P_L0
    const double unrolled = s.is_reduction() && stage.unroll_steps > 0
                                ? std::max(1.0, std::min(static_cast<double>(stage.unroll_steps) / (rows * vectors), 16.0))
                                : 1.0;
    double cycles = steps * step_cycles + iterations / unrolled * 1.0 + visits * 6;
    if (s.is_reduction()) {
      double tiles = visits;  // accumulators set up and written back
      for (size_t i = own; i < tile; ++i) {
        if (loops_[i].loop->axis < spatial) tiles *= static_cast<double>(loops_[i].loop->extent);
      }
      cycles += tiles * (rows * vectors * 1.5 + 12);
    }
    return std::max(combine(cycles * cycle_s_, stage, root), 0.0);
  }

  void collect_loops(const NestStage& stage) {
    loops_.clear();
    add_outer(stage);
    for (const NestLoop& loop : stage.loops) loops_.push_back({stage.stage, &loop});
  }
  void add_outer(const NestStage& stage) {
    if (!stage.at.valid()) return;
    const NestStage& parent = of(stage.at);
    add_outer(parent);
    for (int i = 0; i < stage.depth; ++i) loops_.push_back({parent.stage, &parent.loops[static_cast<size_t>(i)]});
  }

  // Cycles of the loads of one access in one step of the register tile: vectors that differ are
  // loaded once each, a value without the vector axis is broadcast.
  double load_cycles(const Access& access, const NestStage& stage, size_t tile, int vector_axis, double lanes, double vectors) const {
    const Stage& producer = dag_[access.producer];
    if (!producer.is_placeholder() && of(access.producer).scope == Scope::kRegister) return 0;
    double loads = 1;
    int64_t stride = 0;  // of the vector axis, elements
    bool packed = false;
    for (const PackedOperand& p : nest_.packed) packed = packed || p.operand == access.producer;
    double row_stride = 0;
    double row_count = 1;
    for (size_t i = tile; i < loops_.size(); ++i) {
      const NestLoop& loop = *loops_[i].loop;
      if (loop.kind != LoopKind::kUnroll || loop.axis == vector_axis) continue;
      const double s = element_stride(access, producer, loop.axis);
      if (s == 0) continue;
      loads *= static_cast<double>(loop.extent);
      row_count *= static_cast<double>(loop.extent);
      row_stride = s;
    }
    if (vector_axis >= 0) {
      const double s = element_stride(access, producer, vector_axis);
      stride = packed && s != 0 ? 1 : static_cast<int64_t>(s);
    } else {
      stride = 1;
    }
    (void)stage;
    const double bytes = static_cast<double>(dtype_bytes(producer.dtype));
    // P_L1: rows a multiple of 4 KiB apart fall into one set of 8 ways.
    double conflict = 1;
    const double row_bytes = std::abs(row_stride) * bytes;
    if (row_bytes > 0 && std::fmod(row_bytes, 4096) == 0 && row_count > 6) conflict = 2.5;
    if (stride == 0) return loads * 0.5 * conflict;
    const double vector_load = lanes * bytes >= 64 ? 1.0 : 0.5;
    if (stride == 1) return loads * vectors * vector_load * conflict;
    return loads * vectors * lanes * 1.0;  // a gather
  }

  // Elements that the address moves by when an iterator moves by one; large when it is not affine.
  static double element_stride(const Access& access, const Stage& producer, int axis) {
    double stride = 0, size = 1;
    for (int d = static_cast<int>(access.indices.size()) - 1; d >= 0; --d) {
      const std::optional<Affine>& index = access.indices[static_cast<size_t>(d)];
      if (index) stride += size * static_cast<double>(index->coefficient(VarId{axis}));
      size *= static_cast<double>(producer.axes[static_cast<size_t>(d)].extent);
    }
    return stride;
  }

  // Adds the time of the bytes that each cache level must deliver.
  double combine(double compute_s, const NestStage& stage, const NestStage& root) {
    footprints(stage);
    const double threads = parallel_speedup(root);
    const double l1 = traffic(static_cast<double>(target_.l1_bytes) * kUsableCache);
    const double l2 = traffic(static_cast<double>(target_.l2_bytes) * kUsableCache);
    const double constants = constant_bytes_;
    const double t_l2 = l1 / target_.l2_bandwidth;
    const double t_l3 = l2 / target_.l3_bandwidth;
    // Serial work is divided by the speed-up later; the memory's bandwidth is not.
    const double t_dram = constants / target_.dram_bandwidth * threads;
    if (getenv("DRAFT_DEBUG")) fprintf(stderr, "%s compute %g l2 %g l3 %g dram %g threads %g\n", dag_[stage.stage].name.c_str(), compute_s, t_l2, t_l3, t_dram, threads);
    const double longest = std::max({compute_s, t_l2, t_l3, t_dram});
    return longest + kUnhidden * (compute_s + t_l2 + t_l3 + t_dram - longest);
  }

  // footprint_[op][i]: bytes of operand `op` that the loops from i inwards touch.
  void footprints(const NestStage& stage) {
    const Stage& s = dag_[stage.stage];
    const std::vector<Access>& accesses = nest_.tables->accesses[static_cast<size_t>(stage.stage.value)];
    operands_.clear();
    constant_bytes_ = 0;
    const size_t n = loops_.size();
    // An anchor's axes are its root's, so the loops it hangs in move its operands too; what another
    // attached stage reads is taken as moving on with every visit.
    const bool corresponds = stage.unroll_steps > 0 || !stage.at.valid();
    const size_t own = n - stage.loops.size();
    for (const Access& access : accesses) {
      const Stage& producer = dag_[access.producer];
      if (!producer.is_placeholder() && of(access.producer).scope != Scope::kWorkspace) continue;
      Operand operand;
      operand.bytes.resize(n + 1);
      operand.moves.resize(n, false);
      std::vector<int64_t> spans(s.axes.size() + s.reduce_axes.size(), 1);
      operand.bytes[n] = touched(access, producer, spans);
      for (size_t i = n; i-- > 0;) {
        const NestLoop& loop = *loops_[i].loop;
        if (i >= own || corresponds) {
          spans[static_cast<size_t>(loop.axis)] += (loop.extent - 1) * loop.step;
          operand.bytes[i] = touched(access, producer, spans);
        } else {
          const double whole = static_cast<double>(producer.num_elements() * dtype_bytes(producer.dtype));
          operand.bytes[i] = std::min(whole, operand.bytes[i + 1] * static_cast<double>(loop.extent));
        }
        operand.moves[i] = operand.bytes[i] > operand.bytes[i + 1] * 1.001;
      }
      if (producer.constant) constant_bytes_ += static_cast<double>(producer.num_elements() * dtype_bytes(producer.dtype));
      operands_.push_back(std::move(operand));
    }
  }

  double touched(const Access& access, const Stage& producer, const std::vector<int64_t>& spans) const {
    double elements = 1;
    for (size_t d = 0; d < access.indices.size(); ++d) {
      const double extent = static_cast<double>(producer.axes[d].extent);
      double span = extent;
      if (access.indices[d]) {
        int64_t reach = 1;
        for (const auto& [var, coefficient] : access.indices[d]->terms) {
          reach += std::abs(coefficient) * (spans[static_cast<size_t>(var.value)] - 1);
        }
        span = std::min(extent, static_cast<double>(reach));
      }
      const bool last = d + 1 == access.indices.size();
      elements *= last ? std::min(std::max(span, 16.0), std::max(extent, 1.0)) : span;  // whole lines
    }
    return elements * static_cast<double>(dtype_bytes(producer.dtype));
  }

  // Bytes that come from beyond a cache of `capacity` bytes.
  double traffic(double capacity) const {
    const size_t n = loops_.size();
    size_t fits = n;
    for (size_t i = n + 1; i-- > 0;) {
      double sum = 0;
      for (const Operand& operand : operands_) sum += operand.bytes[i];
      if (sum > capacity) break;
      fits = i;
    }
    double total = 0;
    for (const Operand& operand : operands_) {
      double bytes = operand.bytes[fits];
      bool moved = false;  // a loop that leaves the operand in place reuses it only next to its tile
      for (size_t i = fits; i-- > 0;) {
        moved = moved || operand.moves[i];
        if (moved) bytes *= static_cast<double>(loops_[i].loop->extent);
      }
      total += bytes;
    }
    return total;
  }

  struct Operand {
    std::vector<double> bytes;
    std::vector<bool> moves;
  };

  const LoopNest& nest_;
  const ComputeDag& dag_;
  const Target& target_;
  double cycle_s_;
  std::vector<OuterLoop> loops_;
  std::vector<Operand> operands_;
  double constant_bytes_ = 0;
};

}  // namespace

double draft_latency_s(const LoopNest& nest, const Target& target) { return Analyzer(nest, target).latency_s(); }

}  // namespace pruner
