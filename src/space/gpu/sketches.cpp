// gpu_sketches: one sketch for each choice of the reductions that are computed across threads.
#include <algorithm>

#include "space/gpu/kernels.h"

namespace pruner {
namespace {

constexpr int64_t kMaxInner = 64;      // of an axis at the innermost level (Ansor's limit)
constexpr int64_t kMaxOuter = 1024;    // ... around it, where registers and shared memory bind
constexpr size_t kMaxCrossThread = 3;  // reductions that may be computed across threads or not

std::vector<int32_t> powers_of_two(int64_t from, int64_t to) {
  std::vector<int32_t> powers;
  for (int64_t p = from; p <= to; p *= 2) powers.push_back(static_cast<int32_t>(p));
  return powers;
}

class GpuSketchMaker {
 public:
  GpuSketchMaker(const Kernels& kernels, const Gpu& gpu) : kernels_(kernels), gpu_(gpu) {}

  Sketch make(const std::string& name, const Form& form, const ComputeDag& task_dag) {
    sketch_.form = form.name;
    sketch_.name = &form == &kDirect ? name : sketch_.form + "+" + name;
    sketch_.dag = kernels_.dag;
    complete_sketch(sketch_, task_dag, [&](StageId id) { return plan(id); });
    return std::move(sketch_);
  }

 private:
  DecisionRef add(DecisionKind kind,
                  const std::string& name,
                  std::vector<int32_t> choices,
                  int group = -1) {
    return add_decision(sketch_, {kind, name, std::move(choices), group});
  }

  StagePlan plan(StageId id) {
    const KernelStage& kernel = kernels_.stages[static_cast<size_t>(id.value)];
    StagePlan plan;
    plan.stage = id;
    plan.role = kernel.role;
    plan.root = kernel.root;
    switch (kernel.role) {
      case StageRole::kBlockTile: plan_block_tile(plan); break;
      case StageRole::kThreadTile: plan_thread_tile(plan); break;
      case StageRole::kSharedTile: plan_shared_tile(plan); break;
      case StageRole::kElements: plan_elements(plan); break;
      case StageRole::kRows: plan_rows(plan); break;
      default: break;
    }
    return plan;
  }
  const Stage& stage(const StagePlan& plan) const { return kernels_.dag[plan.stage]; }

  void plan_block_tile(StagePlan& plan) {
    const Stage& s = stage(plan);
    for (int a = 0; a < static_cast<int>(s.axes.size()); ++a) {
      const int64_t extent = s.axes[static_cast<size_t>(a)].extent;
      if (extent <= 1) continue;
      const std::string name = s.name + "." + s.axes[static_cast<size_t>(a)].name;
      const int group = next_group_++;
      const auto tile = [&](const char* level, int64_t limit) {
        return add(DecisionKind::kTile, name + level, tile_choices(extent, limit), group);
      };
      GpuAxisPlan axis{a, kFixed, kFixed, kFixed, kFixed};
      axis.vthreads = tile(".vthreads", gpu_.max_vthreads);
      axis.threads = tile(".threads", gpu_.max_threads_per_block);
      axis.outer = tile(".outer", kMaxOuter);
      axis.inner = tile(".inner", kMaxInner);
      plan.tiles.push_back(axis);
    }
  }

  void plan_thread_tile(StagePlan& plan) {
    const Stage& s = stage(plan);
    for (size_t r = 0; r < s.reduce_axes.size(); ++r) {
      const int64_t extent = s.reduce_axes[r].extent;
      if (extent <= 1) continue;
      const std::string name = s.name + "." + s.reduce_axes[r].name;
      const int group = next_group_++;
      GpuAxisPlan axis{static_cast<int>(s.axes.size() + r), kFixed, kFixed, kFixed, kFixed};
      axis.outer =
          add(DecisionKind::kTile, name + ".outer", tile_choices(extent, kMaxOuter), group);
      axis.inner =
          add(DecisionKind::kTile, name + ".inner", tile_choices(extent, kMaxInner), group);
      plan.tiles.push_back(axis);
    }
    plan.unroll = add(DecisionKind::kUnroll, s.name + ".unroll", {0, 16, 64, 512, 1024});
    plan.double_buffer = add(DecisionKind::kBuffers, s.name + ".buffers", {1, 2});
  }

  void plan_shared_tile(StagePlan& plan) {
    const Stage& s = stage(plan);
    const int64_t widest = gpu_.vector_bytes / dtype_bytes(s.dtype);
    plan.vectors = add(DecisionKind::kVector, s.name + ".vector", powers_of_two(1, widest));
  }

  void plan_elements(StagePlan& plan) {
    const Stage& s = stage(plan);
    const std::vector<int32_t> threads = powers_of_two(gpu_.warp_size, gpu_.max_threads_per_block);
    plan.threads = add(DecisionKind::kThreads, s.name + ".threads", threads);
    plan.elements = add(DecisionKind::kThreads, s.name + ".elements", {1, 2, 4, 8});
    const auto reduces = [&](const KernelStage& k) { return k.root == plan.stage; };
    const bool sums = s.is_reduction() || std::ranges::count_if(kernels_.stages, reduces) > 1;
    if (sums) plan.unroll = add(DecisionKind::kUnroll, s.name + ".unroll", {0, 16, 64, 512, 1024});
  }

  // Rows are numbered by the axes of the reductions.
  void plan_rows(StagePlan& plan) {
    const Stage& s = stage(plan);
    for (size_t i = 0; i < kernels_.stages.size(); ++i) {
      const KernelStage& other = kernels_.stages[i];
      if (other.role != StageRole::kRowReduction || other.root != plan.stage) continue;
      const Stage& reduction = kernels_.dag[StageId{static_cast<int32_t>(i)}];
      plan.row_axes = row_rank(reduction);
    }
    const int64_t most = gpu_.max_threads_per_block;
    plan.threads = add(DecisionKind::kThreads, s.name + ".threads", powers_of_two(8, most));
    plan.elements = add(DecisionKind::kThreads, s.name + ".rows", powers_of_two(1, 32));
  }

  const Kernels& kernels_;
  const Gpu& gpu_;
  Sketch sketch_;
  int next_group_ = 0;
};

}  // namespace

std::vector<Sketch> gpu_sketches(const ComputeDag& dag, const Task& task, const Form& form) {
  std::vector<std::string> reductions = cross_thread_reductions(dag, task.target.gpu);
  if (reductions.size() > kMaxCrossThread) reductions.resize(kMaxCrossThread);
  std::vector<Sketch> sketches;
  for (size_t choice = 0; choice < size_t{1} << reductions.size(); ++choice) {
    std::vector<std::string> crossing;
    std::string name = "block-tile";
    for (size_t i = 0; i < reductions.size(); ++i) {
      if ((choice >> i & 1) == 0) continue;
      name += (crossing.empty() ? "+rows(" : ",") + reductions[i];
      crossing.push_back(reductions[i]);
    }
    if (!crossing.empty()) name += ")";
    const Kernels kernels = make_kernels(dag, crossing);
    if (!kernels.rows_agree) continue;
    sketches.push_back(GpuSketchMaker(kernels, task.target.gpu).make(name, form, task.dag));
  }
  return sketches;
}

}  // namespace pruner
