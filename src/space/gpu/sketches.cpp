// gpu_sketches: one sketch for each choice of the reductions that are computed across threads.
#include <algorithm>

#include "space/gpu/kernels.h"
#include "space/sketch_maker.h"

namespace pruner {
namespace {

constexpr size_t kMaxCrossThread = 3;  // reductions that may be computed across threads or not

class GpuSketchMaker : public SketchMaker {
 public:
  GpuSketchMaker(const Kernels& kernels, const Target& target, const Form& form, std::string name)
      : SketchMaker(kernels.dag, target, form, std::move(name)), kernels_(kernels) {}

  Sketch make(const ComputeDag& task_dag) {
    return complete(task_dag, [&](StageId id) { return plan(id); });
  }

 private:
  StagePlan plan(StageId id) {
    const KernelStage& kernel = kernels_.stages[id];
    StagePlan plan;
    plan.stage = id;
    plan.root = kernel.root;
    plan.structure = kernel.structure;
    if (dag()[id].tag == kSharedTag) {
      plan_fetch(plan);
    } else if (kernel.needed_by == kernel.root) {
      plan_root_sum(plan);
    } else if (kernel.needed_by.valid()) {
      plan_held_sum(plan, kernel.needed_by);
    } else if (kernel.structure == &kThreadTransform) {
      plan_transform(plan);
    } else if (kernel.root == id) {
      plan_root(plan);
    } else {
      plan_sum(plan);
    }
    return plan;
  }

  // The operand of a contraction, in boxes that the threads of its block divide. An operand that
  // needs reductions is computed before the chunks, and held.
  void plan_fetch(StagePlan& plan) {
    plan.at = dag().consumers(plan.stage)[0];
    const LoopStructure& contraction = *kernels_.stages[plan.at].structure;
    const auto held_for = [&](const KernelStage& stage) { return stage.needed_by == plan.stage; };
    const bool held = std::ranges::any_of(kernels_.stages, held_for);
    plan.at_levels = held ? 0 : contraction.fetch.loops_of;
    plan.memory = contraction.fetch.memory;
    plan.box = plan.operand = true;
    if (plan.structure == &kHeldRows) {
      add_tiles(plan, Axes::kFusedRows, kFusedRows);
      plan.row_axes = static_cast<int>(dag()[plan.stage].axes.size()) - 1;
    }
    add_tiles(plan, Axes::kFusedSpace, kFusedSpatial);
    if (plan.structure == &kFetch && contraction.has_fragments()) copy_widely(plan);
  }

  // A reduction that elements of a held operand need.
  void plan_held_sum(StagePlan& plan, StageId operand) {
    plan.first = plan.structure->sum.level;
    plan.at = operand;
    plan.at_levels = plan.structure->sum.loops_of;
    plan.memory = Scope::kRegister;
    plan.structure == &kHeldRows ? add_tiles(plan, Axes::kFusedReduction, kFusedReduce)
                                 : add_reduce_tiles(plan);
  }

  // A reduction of the rows of a contraction's block, which the root reads in shared memory.
  void plan_root_sum(StagePlan& plan) {
    plan.at = plan.root;
    plan.at_levels = 1;
    plan.memory = Scope::kShared;
    plan.box = true;
    plan.row_axes = row_rank(dag()[plan.stage]);
    add_tiles(plan, Axes::kFusedRows, kFusedRows);
    add_tiles(plan, Axes::kFusedReduction, kFusedReduce);
  }

  // A tile a thread, or what it reads, in the thread's registers.
  void plan_transform(StagePlan& plan) {
    const Stage& stage = dag()[plan.stage];
    if (plan.root == plan.stage) {
      add_tiles(plan, Axes::kFusedSpace, kFusedSpatial);
    } else {
      plan.first = plan.at_levels = 2;
      plan.at = plan.root;
      plan.memory = Scope::kRegister;
    }
    for (const auto& [axis, tile] : stage.unrolled)
      if (stage.axes[static_cast<size_t>(axis)].extent > 1) add_tiles(plan, Axes::kSpace, axis);
  }

  void plan_root(StagePlan& plan) {
    if (plan.structure->fetches()) {
      add_spatial_tiles(plan);
      plan.raster = add(DecisionKind::kOrder,
                        dag()[plan.stage].name + ".raster",
                        {plan.structure->raster.begin(), plan.structure->raster.end()});
      return;
    }
    add_tiles(plan, Axes::kFusedSpace, kFusedSpatial);
    if (plan.structure == &kBlockRows) return plan_rows(plan);
    add_reduce_tiles(plan);
    const auto computes = [&](const KernelStage& k) { return k.root == plan.stage; };
    if (dag()[plan.stage].is_reduction() || std::ranges::count_if(kernels_.stages, computes) > 1)
      add_reduction_decisions(plan);
    else
      plan.lanes = element_vector(dag()[plan.stage]);
  }

  // The most neighbours that a thread writes at once: they lie in one row, and 16 bytes.
  int element_vector(const Stage& stage) const {
    const int last = last_longer(stage.axes, static_cast<int>(stage.axes.size()));
    if (last < 0 || !stage.unrolled.empty()) return 1;
    int lanes = 1;
    while (is_gpu_vector(2 * lanes, dtype_bytes(stage.dtype), target_.gpu) &&
           stage.axes[static_cast<size_t>(last)].extent % (2 * lanes) == 0)
      lanes *= 2;
    return lanes;
  }

  // Rows are numbered by the axes of the reductions.
  void plan_rows(StagePlan& plan) {
    add_tiles(plan, Axes::kFusedRows, kFusedRows);
    for (const StagePlan& other : sketch_.plans) {
      if (other.accumulates() && other.root == plan.stage)
        plan.row_axes = row_rank(dag()[other.stage]);
    }
  }

  // The reduction of a kernel: in tiles, one a thread of an element, or by all threads of a row.
  void plan_sum(StagePlan& plan) {
    if (const StageId first = kernels_.stages[plan.stage].first_of_two; first.valid()) {
      const StageId second = std::exchange(plan.stage, first);
      plan = *std::ranges::find(sketch_.plans, first, &StagePlan::stage);
      plan.stage = second;
      return;
    }
    accumulate_in_root(plan);
    if (plan.structure == &kBlockRows) return add_tiles(plan, Axes::kFusedReduction, kFusedReduce);
    add_reduce_tiles(plan);
    if (!plan.structure->fetches()) return;
    add_reduction_decisions(plan);
    // Sums that go through shared memory would lie over what the root needs of its rows, and are
    // those of one contraction.
    const auto for_root = [&](const KernelStage& stage) {
      return stage.needed_by == plan.root || stage.first_of_two == plan.stage;
    };
    if (plan.epilogue == kFixed || std::ranges::none_of(kernels_.stages, for_root)) return;
    sketch_.decisions.pop_back();
    plan.epilogue = kFixed;
  }

  const Kernels& kernels_;
};

}  // namespace

std::vector<Sketch> gpu_sketches(const ComputeDag& dag,
                                 const Task& task,
                                 const Form& form,
                                 const LoopStructure& structure) {
  if (is_attention(structure)) return {attention_sketch(dag, task, form, structure)};
  std::vector<std::string> reductions = cross_thread_reductions(dag, task.target.gpu);
  if (reductions.size() > kMaxCrossThread) reductions.resize(kMaxCrossThread);
  std::vector<Sketch> sketches;
  int64_t most_needed = 0;  // reductions that the kernel of a contraction computes for itself
  for (size_t choice = 0; choice < size_t{1} << reductions.size(); ++choice) {
    std::vector<std::string> crossing;
    std::string name = structure.name;
    for (size_t i = 0; i < reductions.size(); ++i) {
      if ((choice >> i & 1) == 0) continue;
      name += (crossing.empty() ? "+rows(" : ",") + reductions[i];
      crossing.push_back(reductions[i]);
    }
    if (!crossing.empty()) name += ")";
    const Kernels kernels = make_kernels(dag, crossing, task.target.gpu, structure);
    if (!kernels.agree) continue;
    // Without a contraction in tiles it is another structure's sketch.
    const auto tiled = [&](const KernelStage& stage) { return stage.structure == &structure; };
    if (&structure != &kBlockTile && std::ranges::none_of(kernels.stages, tiled)) continue;
    // The more of them, the fewer kernels.
    const int64_t needed = std::ranges::count_if(
        kernels.stages, [](const KernelStage& stage) { return stage.needed_by.valid(); });
    if (needed < most_needed) continue;
    if (needed > most_needed) sketches.clear();
    most_needed = needed;
    sketches.push_back(GpuSketchMaker(kernels, task.target, form, name).make(task.dag));
  }
  return sketches;
}

}  // namespace pruner
