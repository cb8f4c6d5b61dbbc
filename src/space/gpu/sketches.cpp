// gpu_sketches: one sketch for each choice of the reductions that are computed across threads, or
// the one sketch of attention as one kernel.
#include <algorithm>

#include "space/gpu/kernels.h"
#include "space/sketch_maker.h"
#include "support/ceil_div.h"

namespace pruner {
namespace {

constexpr size_t kMaxCrossThread = 3;  // reductions that may be computed across threads or not

class GpuSketchMaker : public SketchMaker {
 public:
  GpuSketchMaker(const Kernels& kernels, const Target& target, const Form& form, std::string name)
      : SketchMaker(kernels.dag, target, form, std::move(name)), kernels_(kernels) {}

  Sketch make(const ComputeDag& task_dag) {
    if (kernels_.attention) decide_attention(*kernels_.attention);
    return complete(task_dag, [&](StageId id) { return plan(id); });
  }

 private:
  StagePlan plan(StageId id) {
    const KernelStage& kernel = kernels_.stages[id];
    StagePlan plan;
    plan.stage = id;
    plan.root = kernel.root;
    plan.structure = kernel.structure;
    if (kernel.structure == &kFetch) {
      plan_fetch(plan);
    } else if (kernels_.attention) {
      plan_attention(plan, *kernels_.attention);
    } else if (kernel.structure == &kThreadTransform) {
      plan_transform(plan);
    } else if (kernel.root == id) {
      plan_root(plan);
    } else {
      plan_sum(plan);
    }
    return plan;
  }

  // The operand of a contraction, in boxes that the threads of its block divide.
  void plan_fetch(StagePlan& plan) {
    plan.at = dag().consumers(plan.stage)[0];
    if (kernels_.attention) plan.at = kernels_.attention->weighed;
    const LoopStructure& contraction = *kernels_.stages[plan.at].structure;
    plan.at_levels = contraction.fetch.loops_of;
    // The queries are fetched once, before the chunks of keys.
    if (kernels_.attention && plan.stage == kernels_.attention->query) plan.at_levels = 0;
    plan.memory = contraction.fetch.memory;
    plan.box = true;
    add_tiles(plan, Axes::kFusedSpace, kFusedSpatial);
    if (contraction.has_fragments()) copy_widely(plan);
  }

  // In place of a decision: as much at once as a thread can copy.
  void copy_widely(StagePlan& plan) {
    Factor& vector = plan.tiles[0].factors[plan.structure->levels.size() - 1];
    if (vector.decision != kFixed) sketch_.decisions.pop_back();
    const int64_t bytes = dtype_bytes(dag()[plan.stage].dtype);
    vector = {kFixed, static_cast<int32_t>(target_.gpu.vector_bytes / bytes)};
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
    accumulate_in_root(plan);
    if (plan.structure == &kBlockRows) return add_tiles(plan, Axes::kFusedReduction, kFusedReduce);
    add_reduce_tiles(plan);
    if (plan.structure->fetches()) add_reduction_decisions(plan);
  }

  // ---- Attention as one kernel. All its stages share the decisions.

  struct AttentionDecisions {
    Factor warps, fragments;  // warps of a block, and fragments of queries in a warp
    Factor steps;             // instructions in a chunk of keys
    DecisionRef buffers = kFixed;
  };

  void decide_attention(const AttentionKernel& a) {
    const MmaInstruction& row = *a.of_keys.instruction;
    const Stage &root = dag()[a.root], &weighed = dag()[a.weighed];
    const Iterator &queries = root.axes[static_cast<size_t>(a.rows())],
                   &keys = weighed.reduce_axes[0];
    const auto choose =
        [&](int level, const Iterator& axis, int64_t unit, const std::string& stage, int group) {
          const Level& decided = kAttentionTile.levels[static_cast<size_t>(level)];
          const TiledAxis tiled{.extent = ceil_div(axis.extent, unit), .target = &target_};
          return Factor{add(DecisionKind::kTile,
                            stage + "." + axis.name + "." + decided.name,
                            decided.choices(tiled),
                            group),
                        1};
        };
    attention_.warps = choose(kAttentionWarps, queries, row.m, root.name, 0);
    attention_.fragments = choose(kAttentionFragments, queries, row.m, root.name, 0);
    // A warp's scores and results are in registers: few rows of instructions.
    if (attention_.fragments.decision != kFixed)
      std::erase_if(sketch_.decisions[static_cast<size_t>(attention_.fragments.decision)].choices,
                    [](int32_t choice) { return choice > kMostQueryFragments; });
    attention_.steps = choose(kAttentionSteps, keys, row.k, weighed.name, 1);
    attention_.buffers = add(DecisionKind::kBuffers,
                             weighed.name + ".buffers",
                             {kAttentionTile.buffers.begin(), kAttentionTile.buffers.end()});
  }

  static Factor fixed(int64_t count) { return {kFixed, static_cast<int32_t>(count)}; }

  // The tiles of the queries in the stages that have the levels of kAttentionTile.
  AxisTiles query_tiles(const AttentionKernel& a, const Factor& blocks) const {
    const MmaInstruction& row = *a.of_keys.instruction;
    AxisTiles tiles{.axis = a.rows()};
    tiles.factors[kAttentionBlocks] = blocks;
    tiles.factors[kAttentionWarps] = attention_.warps;
    tiles.factors[kAttentionLanes] = fixed(kRowLanes);
    tiles.factors[kAttentionFragments] = attention_.fragments;
    tiles.factors[kAttentionElements] = fixed(row.m / kRowLanes);
    return tiles;
  }
  // ... of the columns of a warp's sums.
  static AxisTiles column_tiles(const AttentionKernel& a, const Factor& fragments, int64_t own) {
    AxisTiles tiles{.axis = a.columns()};
    tiles.factors[kAttentionLanes] = fixed(kColumnLanes);
    tiles.factors[kAttentionFragments] = fragments;
    tiles.factors[kAttentionElements] = fixed(own);
    return tiles;
  }

  void plan_attention(StagePlan& plan, const AttentionKernel& a) {
    if (plan.stage == a.root) return plan_attention_root(plan, a);
    if (plan.stage == a.weighed) return plan_weighed(plan, a);
    // Scores, and what becomes of them, are made anew for each chunk of keys.
    plan.at = a.weighed;
    plan.at_levels = 1;
    plan.memory = Scope::kRegister;
    plan.stage == a.products ? plan_products(plan, a) : plan_scores(plan, a);
  }

  // A block has a tile of queries of one head, with all columns of their results.
  void plan_attention_root(StagePlan& plan, const AttentionKernel& a) {
    const MmaInstruction& row = *a.of_values.instruction;
    const std::vector<Iterator>& axes = dag()[a.root].axes;
    const Factor rest = fixed(Factor::kRest);
    for (int axis = 0; axis < static_cast<int>(axes.size()); ++axis) {
      if (axis == a.rows()) {
        plan.tiles.push_back(query_tiles(a, rest));
      } else if (axis == a.columns()) {
        const Factor fragments = fixed(ceil_div(axes.back().extent, row.n));
        plan.tiles.push_back(column_tiles(a, fragments, row.n / kColumnLanes));
      } else if (axes[static_cast<size_t>(axis)].extent > 1) {
        plan.tiles.push_back({.axis = axis});
        plan.tiles.back().factors[kAttentionBlocks] = rest;
      }
    }
  }

  void plan_weighed(StagePlan& plan, const AttentionKernel& a) {
    accumulate_in_root(plan);
    AxisTiles keys{.axis = static_cast<int>(dag()[a.weighed].axes.size())};
    keys.factors[kAttentionChunks] = fixed(Factor::kRest);
    keys.factors[kAttentionSteps] = attention_.steps;
    keys.factors[kAttentionTerms] = fixed(a.of_values.instruction->k);
    plan.tiles.push_back(keys);
    plan.buffers = attention_.buffers;
  }

  void plan_products(StagePlan& plan, const AttentionKernel& a) {
    const int64_t terms_of_one = a.of_keys.instruction->k;
    const Stage& products = dag()[a.products];
    plan.first = kAttentionChunks;
    AxisTiles terms{.axis = static_cast<int>(products.axes.size())};
    terms.factors[kAttentionSteps] = fixed(ceil_div(products.reduce_axes[0].extent, terms_of_one));
    terms.factors[kAttentionTerms] = fixed(terms_of_one);
    plan.tiles = {
        query_tiles(a, fixed(1)), column_tiles(a, attention_.steps, keys_of_lane(a)), terms};
  }

  // A lane's scores of a chunk, or what it folds of them.
  void plan_scores(StagePlan& plan, const AttentionKernel& a) {
    AxisTiles queries{.axis = a.rows()};
    queries.factors[kPartFragments] = attention_.fragments;
    queries.factors[kPartElements] = fixed(a.of_keys.instruction->m / kRowLanes);
    const bool folds = dag()[plan.stage].is_reduction();
    AxisTiles keys{.axis = a.columns()};
    keys.factors[folds ? kPartSteps : kPartFragments] = attention_.steps;
    keys.factors[folds ? kPartTerms : kPartElements] = fixed(keys_of_lane(a));
    plan.tiles = {queries, keys};
  }

  // Keys of a lane among those of one instruction's terms.
  static int64_t keys_of_lane(const AttentionKernel& a) {
    return a.of_values.instruction->k / kColumnLanes;
  }

  std::optional<MmaContraction> mma_of(const StagePlan& plan) const override {
    const std::optional<AttentionKernel>& a = kernels_.attention;
    if (!a) return SketchMaker::mma_of(plan);
    if (plan.stage == a->products) return a->of_keys;
    return plan.stage == a->weighed ? std::optional(a->of_values) : std::nullopt;
  }

  std::optional<AttentionKernel> attention() const override { return kernels_.attention; }

  static constexpr int32_t kMostQueryFragments = 2;

  const Kernels& kernels_;
  AttentionDecisions attention_;
};

}  // namespace

std::vector<Sketch> gpu_sketches(const ComputeDag& dag,
                                 const Task& task,
                                 const Form& form,
                                 const LoopStructure& structure) {
  if (&structure == &kAttentionTile) {
    const Kernels kernels = attention_kernels(dag, task.target.gpu);
    return {GpuSketchMaker(kernels, task.target, form, structure.name).make(task.dag)};
  }
  std::vector<std::string> reductions = cross_thread_reductions(dag, task.target.gpu);
  if (reductions.size() > kMaxCrossThread) reductions.resize(kMaxCrossThread);
  std::vector<Sketch> sketches;
  for (size_t choice = 0; choice < size_t{1} << reductions.size(); ++choice) {
    std::vector<std::string> crossing;
    std::string name = structure.name;
    for (size_t i = 0; i < reductions.size(); ++i) {
      if ((choice >> i & 1) == 0) continue;
      name += (crossing.empty() ? "+rows(" : ",") + reductions[i];
      crossing.push_back(reductions[i]);
    }
    if (!crossing.empty()) name += ")";
    const Kernels kernels = make_kernels(dag, crossing, structure);
    if (!kernels.rows_agree) continue;
    // Without a contraction in tiles it is another structure's sketch.
    const auto tiled = [&](const KernelStage& stage) { return stage.structure == &structure; };
    if (&structure != &kBlockTile && std::ranges::none_of(kernels.stages, tiled)) continue;
    sketches.push_back(GpuSketchMaker(kernels, task.target, form, name).make(task.dag));
  }
  return sketches;
}

}  // namespace pruner
