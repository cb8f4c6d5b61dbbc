// attention_sketch: the sketch of attention as one kernel. All its stages share the decisions.
#include <algorithm>

#include "space/gpu/kernels.h"
#include "space/sketch_maker.h"
#include "support/ceil_div.h"

namespace pruner {
namespace {

constexpr int32_t kMostQueryFragments = 2;

class AttentionSketchMaker : public SketchMaker {
 public:
  AttentionSketchMaker(const ComputeDag& dag,
                       const AttentionKernel& kernel,
                       const LoopStructure& structure,
                       const Target& target,
                       const Form& form)
      : SketchMaker(dag, target, form, structure.name), a_(kernel), structure_(structure) {}

  Sketch make(const ComputeDag& task_dag) {
    decide();
    return complete(task_dag, [&](StageId id) { return plan(id); });
  }

 private:
  struct Decisions {
    Factor warps, fragments;  // warps or groups of a block, fragments of queries in each
    Factor steps;             // instructions in a chunk of keys
    DecisionRef buffers = kFixed;
  };

  void decide() {
    const MmaInstruction& row = *a_.of_keys.instruction;
    const Stage &root = dag()[a_.root], &weighed = dag()[a_.weighed];
    const Iterator &queries = root.axes[static_cast<size_t>(a_.rows())],
                   &keys = weighed.reduce_axes[0];
    const auto choose =
        [&](int level, const Iterator& axis, int64_t unit, const std::string& stage, int group) {
          const Level& decided = structure_.levels[static_cast<size_t>(level)];
          const TiledAxis tiled{.extent = ceil_div(axis.extent, unit), .target = &target_};
          return Factor{add(DecisionKind::kTile,
                            stage + "." + axis.name + "." + decided.name,
                            decided.choices(tiled),
                            group),
                        1};
        };
    decided_.warps = choose(kAttentionWarps, queries, row.m, root.name, 0);
    decided_.fragments = choose(kAttentionFragments, queries, row.m, root.name, 0);
    // A warp's scores and results are in registers: few rows of instructions.
    if (decided_.fragments.decision != kFixed)
      std::erase_if(sketch_.decisions[static_cast<size_t>(decided_.fragments.decision)].choices,
                    [](int32_t choice) { return choice > kMostQueryFragments; });
    decided_.steps = choose(kAttentionSteps, keys, row.k, weighed.name, 1);
    decided_.buffers = add(DecisionKind::kBuffers,
                           weighed.name + ".buffers",
                           {structure_.buffers.begin(), structure_.buffers.end()});
  }

  static Factor fixed(int64_t count) { return {kFixed, static_cast<int32_t>(count)}; }

  // The tiles of the queries in the stages that have the levels of the structure.
  AxisTiles query_tiles(const Factor& blocks) const {
    const Fragment sums = a_.of_keys.instruction->sum_fragment();
    AxisTiles tiles{.axis = a_.rows()};
    tiles.factors[kAttentionBlocks] = blocks;
    tiles.factors[kAttentionWarps] = decided_.warps;
    tiles.factors[kAttentionLanes] = fixed(int64_t{kRowLanes} * structure_.warps);
    tiles.factors[kAttentionFragments] = decided_.fragments;
    tiles.factors[kAttentionElements] = fixed(sums.rows / kRowLanes);
    return tiles;
  }
  // ... of the columns of a warp's sums.
  AxisTiles column_tiles(const Factor& fragments, int64_t own) const {
    AxisTiles tiles{.axis = a_.columns()};
    tiles.factors[kAttentionLanes] = fixed(kColumnLanes);
    tiles.factors[kAttentionFragments] = fragments;
    tiles.factors[kAttentionElements] = fixed(own);
    return tiles;
  }

  StagePlan plan(StageId id) {
    StagePlan plan;
    plan.stage = id;
    plan.root = a_.root;
    if (id == a_.root) {
      plan_root(plan);
    } else if (id == a_.weighed) {
      plan_weighed(plan);
    } else if (dag()[id].tag == kSharedTag) {
      plan_fetch(plan);
    } else {
      // Scores, and what becomes of them, are made anew for each chunk of keys.
      plan.at = a_.weighed;
      plan.at_levels = 1;
      plan.memory = Scope::kRegister;
      id == a_.products ? plan_products(plan) : plan_scores(plan);
    }
    return plan;
  }

  // The queries are fetched once, before the chunks of keys.
  void plan_fetch(StagePlan& plan) {
    plan.structure = &kFetch;
    plan.at = a_.weighed;
    plan.at_levels = plan.stage == a_.query ? 0 : structure_.fetch.loops_of;
    plan.memory = structure_.fetch.memory;
    plan.box = plan.operand = true;
    add_tiles(plan, Axes::kFusedSpace, kFusedSpatial);
    copy_widely(plan);
  }

  // A block has a tile of queries of one head, with all columns of their results.
  void plan_root(StagePlan& plan) {
    plan.structure = &structure_;
    const MmaInstruction& row = *a_.of_values.instruction;
    const std::vector<Iterator>& axes = dag()[a_.root].axes;
    const Factor rest = fixed(Factor::kRest);
    for (int axis = 0; axis < static_cast<int>(axes.size()); ++axis) {
      if (axis == a_.rows()) {
        plan.tiles.push_back(query_tiles(rest));
      } else if (axis == a_.columns()) {
        const Factor fragments = fixed(ceil_div(axes.back().extent, row.n));
        plan.tiles.push_back(column_tiles(fragments, row.n / kColumnLanes));
      } else if (axes[static_cast<size_t>(axis)].extent > 1) {
        plan.tiles.push_back({.axis = axis});
        plan.tiles.back().factors[kAttentionBlocks] = rest;
      }
    }
  }

  void plan_weighed(StagePlan& plan) {
    plan.structure = &structure_;
    accumulate_in_root(plan);
    AxisTiles keys{.axis = static_cast<int>(dag()[a_.weighed].axes.size())};
    keys.factors[kAttentionChunks] = fixed(Factor::kRest);
    keys.factors[kAttentionSteps] = decided_.steps;
    keys.factors[kAttentionTerms] = fixed(a_.of_values.instruction->k);
    plan.tiles.push_back(keys);
    plan.buffers = decided_.buffers;
  }

  void plan_products(StagePlan& plan) {
    plan.structure = &kAttentionScores;
    const int64_t terms_of_one = a_.of_keys.instruction->k;
    const Stage& products = dag()[a_.products];
    plan.first = kAttentionChunks;
    AxisTiles terms{.axis = static_cast<int>(products.axes.size())};
    terms.factors[kAttentionSteps] = fixed(ceil_div(products.reduce_axes[0].extent, terms_of_one));
    terms.factors[kAttentionTerms] = fixed(terms_of_one);
    plan.tiles = {query_tiles(fixed(1)), column_tiles(decided_.steps, keys_of_lane()), terms};
  }

  // A lane's scores of a chunk, or what it folds of them.
  void plan_scores(StagePlan& plan) {
    plan.structure = &kAttentionPart;
    AxisTiles queries{.axis = a_.rows()};
    queries.factors[kPartFragments] = decided_.fragments;
    queries.factors[kPartElements] = fixed(a_.of_keys.instruction->sum_fragment().rows / kRowLanes);
    const bool folds = dag()[plan.stage].is_reduction();
    AxisTiles keys{.axis = a_.columns()};
    keys.factors[folds ? kPartSteps : kPartFragments] = decided_.steps;
    keys.factors[folds ? kPartTerms : kPartElements] = fixed(keys_of_lane());
    plan.tiles = {queries, keys};
  }

  // Keys of a lane among those of one instruction's terms.
  int64_t keys_of_lane() const { return a_.of_values.instruction->k / kColumnLanes; }

  std::optional<MmaContraction> mma_of(const StagePlan& plan) const override {
    if (plan.stage == a_.products) return a_.of_keys;
    return plan.stage == a_.weighed ? std::optional(a_.of_values) : std::nullopt;
  }
  std::optional<AttentionKernel> attention() const override { return a_; }

  const AttentionKernel a_;
  const LoopStructure& structure_;
  Decisions decided_;
};

}  // namespace

Sketch attention_sketch(ComputeDag dag,
                        const Task& task,
                        const Form& form,
                        const LoopStructure& structure) {
  const AttentionKernel kernel = make_attention_kernel(dag, task.target.gpu, structure.instruction);
  return AttentionSketchMaker(dag, kernel, structure, task.target, form).make(task.dag);
}

}  // namespace pruner
