// make_space: runs the sketch rules on a task and turns every structure into a sketch with its
// decisions and plans.
#include <algorithm>
#include <numeric>
#include <set>

#include "space/dot.h"
#include "space/sketch_maker.h"
#include "support/ceil_div.h"

namespace pruner {

// Fewer are slower than a gather of a whole vector.
constexpr int kLeastLanes = 4;

static double waste(int64_t extent, int64_t tile) {
  return static_cast<double>(ceil_div(extent, tile) * tile) / static_cast<double>(extent);
}

std::vector<int32_t> tile_choices(int64_t extent, int64_t limit) {
  std::set<int32_t> choices;
  for (int64_t t = 1; t <= std::min(extent, limit); ++t) {
    const bool small = t <= 8 || extent % t == 0 || (t & (t - 1)) == 0;
    const bool splits_evenly = ceil_div(extent, t) <= 8;
    if ((small || splits_evenly) && waste(extent, t) <= kMaxWaste)
      choices.insert(static_cast<int32_t>(t));
  }
  if (choices.size() > 24) {  // keep divisors and the small ones
    for (auto it = choices.begin(); it != choices.end();) {
      it = extent % *it != 0 && *it > 8 ? choices.erase(it) : std::next(it);
    }
  }
  return {choices.begin(), choices.end()};
}

namespace {

class CpuSketchMaker : public SketchMaker {
 public:
  CpuSketchMaker(const ComputeDag& dag,
                 const Target& target,
                 const Form& form,
                 const LoopStructure& structure)
      : SketchMaker(dag, target, form, structure.name),
        structure_(structure),
        clusters_(find_clusters(dag)) {}

  Sketch make(const ComputeDag& task_dag) {
    return complete(task_dag, [&](StageId id) { return plan(id); });
  }

 private:
  StagePlan plan(StageId id) {
    const Stage& stage = dag()[id];
    const StageId root = clusters_.root_of[id];
    StagePlan plan;
    plan.stage = id;
    plan.root = root;
    const int vector = vector_axis(stage);
    if (vector >= 0) plan.lanes = vector_lanes(id, vector);
    if (!stage.unrolled.empty()) {
      plan_transform(plan);
    } else if (root == id) {
      plan_root(plan);
    } else if (clusters_.anchor_of[root] == id) {
      plan_anchor(plan);
    } else if (is_row_part(id)) {
      plan_row_part(plan);
    } else {
      plan_attached(plan);
    }
    return plan;
  }

  // Lanes of the vectors of a stage. Those of a contraction that reads by a quotient of the vector
  // axis, as one of groups, lie within a step of the quotient where 4 or more do, or hold whole
  // steps that read no more elements than there are lanes.
  int vector_lanes(StageId id, int vector) const {
    const Stage& stage = dag()[id];
    int lanes = lanes_for(stage.axes[vector].extent, stage.dtype, target_);
    const StageId anchor = clusters_.anchor_of[clusters_.root_of[id]];
    if (!anchor.valid()) return lanes;
    for (const Access& access : accesses_of(dag(), anchor)) {
      for_each_quotient(access, vector, [&](const SteppedIndex::Quotient& q) {
        const int within = static_cast<int>(std::gcd<int64_t>(q.divisor, lanes));
        if (within >= kLeastLanes && !reads_one_run(q, lanes)) lanes = within;
      });
    }
    return lanes;
  }

  bool is_row_part(StageId id) const { return dag()[id].tag == kRowPartTag; }
  // The stage that folds the lanes of a row part.
  bool is_fold(StageId id) const {
    const std::vector<StageId> producers = dag().producers(id);
    return producers.size() == 1 && is_row_part(producers[0]);
  }

  // An anchor's structure is the sketch's, but that windows have nothing to keep in a cache, and
  // other contractions no use for an instruction that computes tiles.
  const LoopStructure& structure_of(StageId anchor) const {
    if (!anchor.valid()) return kPointwise;
    const bool fits =
        !structure_.has_matrix() || find_dot_instruction(dag(), anchor, target_, true) != nullptr;
    return fits && needs_multi_level_tiling(dag(), anchor) ? structure_ : kRegisterTile;
  }

  void plan_root(StagePlan& plan) {
    const Stage& stage = dag()[plan.stage];
    const StageId anchor = clusters_.anchor_of[plan.stage];
    plan.structure = &structure_of(anchor);
    add_spatial_tiles(plan);
    if (anchor.valid()) {
      const auto is_anchor = [&](const StagePlan& p) { return p.stage == anchor; };
      plan.overlaps = std::ranges::find_if(sketch_.plans, is_anchor)->packed.empty();
    }
    // An output that the caches hold gains nothing from going past them.
    const int64_t bytes = stage.num_elements() * dtype_bytes(stage.dtype);
    if (stage.output && bytes >= target_.l2_bytes)
      plan.streaming = add(DecisionKind::kStreaming, stage.name + ".streaming", {0, 1});
    // Rows of a tile must not leave the box that another cluster reads.
    if (!plan.structure->has_matrix()) plan.at = clusters_.inside_of[plan.stage];
    plan.box = true;
    if (plan.at.valid()) add_location(plan);
    if (plan.tiles.size() >= 2 && anchor.valid()) {
      plan.parallel_order = add(DecisionKind::kOrder, stage.name + ".parallel_order", {0, 1});
      plan.order = add(DecisionKind::kOrder, stage.name + ".order", {0, 1});
    }
  }

  void add_location(StagePlan& plan) {
    plan.location = add(DecisionKind::kLocation, dag()[plan.stage].name + ".at", {0, 1, 2});
    // Blocks are there to be computed where they are read.
    if (dag()[plan.stage].tag == kKeptTag || feeds_kept(plan.stage))
      sketch_.decisions.back().worth_drawing = {1, 2};
  }

  bool feeds_kept(StageId id) const {
    return std::ranges::any_of(dag().consumers(id), [&](StageId reader) {
      return dag()[reader].tag == kKeptTag || (is_row_part(reader) && feeds_kept(reader));
    });
  }

  void plan_anchor(StagePlan& plan) {
    const Stage& stage = dag()[plan.stage];
    plan.structure = &structure_of(plan.stage);
    accumulate_in_root(plan);
    for (const StageId operand : dag().producers(plan.stage))
      plan.window = plan.window || reads_at_own_places(dag(), plan.stage, operand);
    add_reduce_tiles(plan);
    add_reduction_decisions(plan);
    const int vector = vector_axis(stage);
    if (vector < 0) return;
    for (const StageId operand : stage.layout_free) {
      if (dag()[operand].constant) add_packed(plan, operand, vector);
    }
    const bool weight = !plan.packed.empty();
    // Rows of a copy lie apart by what its other tiles have: in one tile's order they stand
    // together.
    for (const StageId operand : dag().producers(plan.stage)) {
      if (dag()[operand].tag == kCacheReadTag && plan.structure->instruction.empty())
        add_packed(plan, operand, vector);
    }
    if (weight)
      plan.prefetch =
          add(DecisionKind::kPrefetch, stage.name + ".prefetch", {0, kPrefetchRound, 1024, 4096});
  }

  // A root whose tiles are unrolled, or what it reads of one tile, in registers.
  void plan_transform(StagePlan& plan) {
    plan.structure = &kTransform;
    if (plan.root != plan.stage) {
      plan.root = dag().consumers(plan.stage)[0];
      plan.first = 1;
      plan.at = plan.root;
      plan.at_levels = clusters_.root_of[plan.root] == plan.root ? 1 : 0;
      plan.memory = Scope::kRegister;
    }
    add_spatial_tiles(plan);
  }

  // Lanes of partial results, of one row at a time of the stage that folds them.
  void plan_row_part(StagePlan& plan) {
    plan.structure = &kRowPart;
    plan.root = dag().consumers(plan.stage)[0];
    plan.at = plan.root;
    plan.at_levels = 1;
    plan.memory = Scope::kRegister;
    add_reduce_tiles(plan);
    add_tiles(plan, Axes::kSpace, static_cast<int>(dag()[plan.stage].axes.size()) - 1, true);
  }

  void plan_attached(StagePlan& plan) {
    const Stage& stage = dag()[plan.stage];
    const int spatial = static_cast<int>(stage.axes.size());
    plan.at = plan.root;
    plan.box = true;
    if (stage.tag == kKeptTag) plan.memory = Scope::kWorkspace;
    if (stage.is_reduction() && is_fold(plan.stage)) {
      plan.structure = &kFold;
      plan.lanes = lanes_for(stage.reduce_axes[0].extent, stage.dtype, target_);
      for (int a = 0; a < spatial; ++a) add_tiles(plan, Axes::kSpace, a);
      add_tiles(plan, Axes::kReduction, spatial, true);
    } else {
      plan.structure = &kBox;
      add_spatial_tiles(plan);
      add_reduce_tiles(plan);
    }
    if (!clusters_.root_only[plan.stage] && dag()[plan.root].unrolled.empty()) add_location(plan);
  }

  // Packs an operand when the vector axis indexes one of its dimensions as it stands, and other
  // iterators the others.
  void add_packed(StagePlan& plan, StageId operand, int vector) {
    if (!is_packable(dag(), plan.stage, operand, vector)) return;
    for (const Access& access : accesses_of(dag(), plan.stage)) {
      if (access.producer != operand) continue;
      int vector_dim = -1;
      std::vector<std::pair<int, int>> dims;  // (iterator, dim)
      for (int d = 0; d < static_cast<int>(access.indices.size()); ++d) {
        const std::optional<Affine>& index = access.indices[d];
        if (!index) {
          dims.push_back({access.stepped[d]->quotients.back().axis, d});
          continue;
        }
        // A split axis has two iterators, of which the last is the inner one.
        const int iterator = index->terms.empty() ? -1 : index->terms.back().first.value;
        if (index->coefficient(VarId{vector}) != 0) {
          vector_dim = d;
        } else {
          dims.push_back({iterator, d});
        }
      }
      std::sort(dims.begin(), dims.end());
      StagePlan::Packed packed{operand, vector_dim, {vector_dim}};
      for (const auto& [iterator, d] : dims) packed.order.push_back(d);
      for (const auto& [iterator, d] : dims) {
        const bool longer = iterator >= 0 && iterator_of(dag()[plan.stage], iterator).extent > 1;
        if (longer && !plan.structure->instruction.empty()) packed.terms_dim = d;
      }
      plan.packed.push_back(std::move(packed));
    }
  }

  const LoopStructure& structure_;
  const Clusters clusters_;
};

// Draws from the sketches of the forms that are asked for; without names, from the forms that
// Form::drawn accepts. If no sketch has one of these forms, draws from the direct sketches.
void keep_forms(Space& space, std::span<const std::string> forms, const ComputeDag& dag) {
  std::vector<std::string> unasked;
  for (const Form* form : kForms)
    if (form->drawn == nullptr || form->drawn(dag)) unasked.emplace_back(form->name);
  if (forms.empty()) forms = unasked;
  std::vector<SketchId> direct, drawn;
  for (const SketchId id : space.drawn) {
    const std::string& form = space[id].form;
    if (form == kDirect.name) direct.push_back(id);
    if (std::ranges::find(forms, form) != forms.end()) drawn.push_back(id);
  }
  space.drawn = drawn.empty() ? direct : drawn;
}

}  // namespace

const Form kDirect = {"direct", [](ComputeDag&, const Target&) { return true; }, true};

Space make_space(const Task& task,
                 std::span<const std::string> forms,
                 std::span<const StructureRule> rules) {
  Space space{task.target, {}, {}};
  const bool gpu = task.target.is_gpu();
  for (const Form* form : kForms) {
    if (gpu && !form->gpu) continue;
    ComputeDag dag = task.dag;
    if (!form->apply(dag, task.target)) continue;
    for (const DagRule* rule : kDagRules)
      if (!gpu) rule->apply(dag, task.target);
    for (const StructureRule& rule : rules) {
      if (!rule.applies(dag, task.target)) continue;
      const size_t before = space.sketches.size();
      if (gpu) {
        std::ranges::move(gpu_sketches(dag, task, *form, *rule.structure),
                          std::back_inserter(space.sketches));
      } else {
        space.sketches.push_back(
            CpuSketchMaker(dag, task.target, *form, *rule.structure).make(task.dag));
      }
      const bool drawn = rule.drawn == nullptr || rule.drawn(dag, task.target);
      for (size_t s = before; drawn && s < space.sketches.size(); ++s)
        space.drawn.push_back(SketchId{static_cast<int32_t>(s)});
    }
  }
  keep_forms(space, forms, task.dag);
  return space;
}

std::vector<std::string> form_names() {
  std::vector<std::string> names;
  for (const Form* form : kForms) names.push_back(form->name);
  return names;
}

}  // namespace pruner
