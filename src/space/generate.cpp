// make_space: runs the sketch rules on a task and turns every structure into a sketch with its
// decisions and plans.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "space/sketch_rule.h"
#include "support/hash.h"

namespace pruner {

// Fewer are slower than a gather of a whole vector.
constexpr int kLeastLanes = 4;

static double waste(int64_t extent, int64_t tile) {
  return static_cast<double>((extent + tile - 1) / tile * tile) / static_cast<double>(extent);
}

std::vector<int32_t> tile_choices(int64_t extent, int64_t limit) {
  std::set<int32_t> choices;
  for (int64_t t = 1; t <= std::min(extent, limit); ++t) {
    const bool small = t <= 8 || extent % t == 0 || (t & (t - 1)) == 0;
    const bool splits_evenly = (extent + t - 1) / t <= 8;
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

DecisionRef add_decision(Sketch& sketch, Decision decision) {
  if (decision.choices.size() < 2) return kFixed;
  sketch.decisions.push_back(std::move(decision));
  return static_cast<DecisionRef>(sketch.decisions.size()) - 1;
}

static StageId find_stage(const ComputeDag& dag, const std::string& name) {
  for (int s = 0; s < dag.size(); ++s) {
    if (dag[StageId{s}].name == name) return StageId{s};
  }
  CHECK(false) << "stage " << name << " lost by a DAG rule";
  return StageId{};
}

void complete_sketch(Sketch& sketch,
                     const ComputeDag& task_dag,
                     const std::function<StagePlan(StageId)>& plan) {
  const ComputeDag& dag = sketch.dag;
  auto tables = std::make_shared<SketchTables>();
  tables->accesses = access_table(dag);
  tables->plan_of.assign(dag.stages.size(), -1);
  for (int s = 0; s < dag.size(); ++s) {
    tables->consumers.push_back(dag.consumers(StageId{s}));
    tables->body_operations.push_back(
        dag[StageId{s}].is_placeholder() ? 0 : body_operations(dag[StageId{s}].body));
    const Stage& stage = dag[StageId{s}];
    tables->counts.push_back(count_operations(stage.body));
    tables->iterator_uses.push_back(
        count_variables(stage.body, stage.axes.size() + stage.reduce_axes.size()));
    if (dag[StageId{s}].is_placeholder()) continue;
    tables->plan_of[s] = static_cast<int>(sketch.plans.size());
    sketch.plans.push_back(plan(StageId{s}));
  }
  for (const StageId input : task_dag.inputs())
    sketch.args.push_back(find_stage(dag, task_dag[input].name));
  for (const StageId output : task_dag.outputs())
    sketch.args.push_back(find_stage(dag, task_dag[output].name));
  std::string text = sketch.name + "\n" + print(dag);
  for (const Decision& decision : sketch.decisions) text += decision.name + " ";
  sketch.hash = hash_hex(text).substr(0, 16);
  sketch.tables = std::move(tables);
}

namespace {

constexpr int64_t kMaxRegisterRows = 16;
constexpr int64_t kMaxRegisterVectors = 8;

class SketchMaker {
 public:
  SketchMaker(const ComputeDag& dag,
              const Target& target,
              const Form& form,
              const StructureRule& rule)
      : target_(target), rule_(rule), clusters_(find_clusters(dag)) {
    sketch_.form = form.name;
    sketch_.name = &form == &kDirect ? rule.name : sketch_.form + "+" + rule.name;
    sketch_.dag = dag;
  }

  Sketch make(const ComputeDag& task_dag) {
    complete_sketch(sketch_, task_dag, [&](StageId id) { return plan(id); });
    return std::move(sketch_);
  }

 private:
  DecisionRef add(DecisionKind kind,
                  std::string name,
                  std::vector<int32_t> choices,
                  int group = -1) {
    return add_decision(sketch_, {kind, std::move(name), std::move(choices), group});
  }

  StagePlan plan(StageId id) {
    const Stage& stage = sketch_.dag[id];
    const StageId root = clusters_.root_of[id.value];
    StagePlan plan;
    plan.stage = id;
    plan.root = root;
    const int vector = vector_axis(stage);
    if (vector >= 0) plan.lanes = vector_lanes(id, vector);
    if (!stage.unrolled.empty()) {
      plan.role = root == id ? StageRole::kTransform : StageRole::kTransformPart;
      if (root != id) plan.root = sketch_.dag.consumers(id)[0];
    } else if (root == id) {
      plan_root(plan);
    } else if (clusters_.anchor_of[root.value] == id) {
      plan_anchor(plan);
    } else if (is_row_part(id)) {
      plan.role = StageRole::kRowPart;
      plan.root = sketch_.dag.consumers(id)[0];
    } else {
      plan.role = StageRole::kAttached;
      if (stage.is_reduction() && is_fold(id)) {
        plan.lanes = lanes_for(stage.reduce_axes[0].extent, stage.dtype, target_);
      }
      const bool choice = !clusters_.root_only[id.value] && sketch_.dag[root].unrolled.empty();
      if (choice) plan.location = add(DecisionKind::kLocation, stage.name + ".at", {0, 1, 2});
    }
    return plan;
  }

  // Lanes of the vectors of a stage. Those of a contraction that reads by a quotient of the vector
  // axis, as one of groups, lie within a step of the quotient where 4 or more do.
  int vector_lanes(StageId id, int vector) const {
    const Stage& stage = sketch_.dag[id];
    int lanes = lanes_for(stage.axes[vector].extent, stage.dtype, target_);
    const StageId anchor = clusters_.anchor_of[clusters_.root_of[id.value].value];
    if (!anchor.valid()) return lanes;
    for (const Access& access : accesses_of(sketch_.dag, anchor)) {
      for_each_divisor(access, vector, [&](int64_t divisor) {
        const int within = static_cast<int>(std::gcd<int64_t>(divisor, lanes));
        if (within >= kLeastLanes) lanes = within;
      });
    }
    return lanes;
  }

  bool is_row_part(StageId id) const { return sketch_.dag[id].tag == kRowPartTag; }
  // The stage that folds the lanes of a row part.
  bool is_fold(StageId id) const {
    const std::vector<StageId> producers = sketch_.dag.producers(id);
    return producers.size() == 1 && is_row_part(producers[0]);
  }

  void plan_root(StagePlan& plan) {
    const Stage& stage = sketch_.dag[plan.stage];
    const StageId anchor = clusters_.anchor_of[plan.stage.value];
    const int vector = vector_axis(stage);
    int tiled = 0;
    for (int a = 0; a < static_cast<int>(stage.axes.size()); ++a) {
      const int64_t extent = stage.axes[a].extent;
      if (extent <= 1) continue;
      ++tiled;
      AxisPlan axis{a, a == vector, kFixed, kFixed, kFixed};
      const std::string name = stage.name + "." + stage.axes[a].name;
      const int group = next_group_++;
      const int64_t units = axis.vector ? (extent + plan.lanes - 1) / plan.lanes : extent;
      axis.middle = add(DecisionKind::kTile, name + ".middle", tile_choices(units, units), group);
      if (anchor.valid())
        axis.inner = add(DecisionKind::kTile, name + ".inner", tile_choices(units, units), group);
      if (axis.vector) {
        // Of fewer lanes they are another decision: records tell them apart by its name.
        const bool usual = plan.lanes == lanes_for(extent, stage.dtype, target_);
        axis.registers =
            add(DecisionKind::kTile,
                name + (usual ? ".vectors" : fmt::format(".vectors_of_{}", plan.lanes)),
                tile_choices(units, anchor.valid() ? kMaxRegisterVectors : 4),
                group);
      } else if (anchor.valid()) {
        axis.registers =
            add(DecisionKind::kTile, name + ".rows", tile_choices(units, kMaxRegisterRows), group);
      }
      plan.axes.push_back(axis);
    }
    if (anchor.valid()) {
      const auto is_anchor = [&](const StagePlan& p) { return p.stage == anchor; };
      plan.overlaps = std::ranges::find_if(sketch_.plans, is_anchor)->packed.empty();
    }
    // Nobody gains from an output past the caches that the caches hold.
    const int64_t bytes = stage.num_elements() * dtype_bytes(stage.dtype);
    if (stage.output && bytes >= target_.l2_bytes)
      plan.streaming = add(DecisionKind::kStreaming, stage.name + ".streaming", {0, 1});
    plan.inside = clusters_.inside_of[plan.stage.value];
    if (plan.inside.valid())
      plan.location = add(DecisionKind::kLocation, stage.name + ".at", {0, 1, 2});
    if (tiled >= 2 && anchor.valid()) {
      plan.parallel_order = add(DecisionKind::kOrder, stage.name + ".parallel_order", {0, 1});
      plan.order = add(DecisionKind::kOrder, stage.name + ".order", {0, 1});
    }
  }

  void plan_anchor(StagePlan& plan) {
    const Stage& stage = sketch_.dag[plan.stage];
    plan.role = StageRole::kAnchor;
    plan.cache_tile = rule_.cache_tile && needs_multi_level_tiling(sketch_.dag, plan.stage);
    for (const StageId operand : sketch_.dag.producers(plan.stage))
      plan.window = plan.window || reads_at_own_places(sketch_.dag, plan.stage, operand);
    const int spatial = static_cast<int>(stage.axes.size());
    if (plan.cache_tile) {
      int longest = 0;
      for (int r = 1; r < static_cast<int>(stage.reduce_axes.size()); ++r) {
        if (stage.reduce_axes[r].extent > stage.reduce_axes[longest].extent) longest = r;
      }
      plan.chunk_axis = spatial + longest;
      std::vector<int32_t> chunks;
      for (int32_t chunk = 16; chunk < stage.reduce_axes[longest].extent; chunk *= 2)
        chunks.push_back(chunk);
      chunks.push_back(static_cast<int32_t>(stage.reduce_axes[longest].extent));
      plan.chunk = add(DecisionKind::kChunk, stage.name + ".chunk", chunks);
    }
    plan.unroll = add(DecisionKind::kUnroll, stage.name + ".unroll", {16, 32, 64, 128});
    const int vector = vector_axis(stage);
    if (vector < 0) return;
    for (const StageId operand : stage.layout_free) {
      if (sketch_.dag[operand].constant) add_packed(plan, operand, vector);
    }
    if (!plan.packed.empty())
      plan.prefetch = add(DecisionKind::kPrefetch, stage.name + ".prefetch", {0, 1024, 4096});
  }

  // Packs an operand when the vector axis indexes one of its dimensions as it stands, and other
  // iterators the others.
  void add_packed(StagePlan& plan, StageId operand, int vector) {
    int uses = 0;
    for (const Access& access : accesses_of(sketch_.dag, plan.stage))
      uses += access.producer == operand;
    if (uses != 1 || sketch_.dag.consumers(operand).size() != 1) return;
    for (const Access& access : accesses_of(sketch_.dag, plan.stage)) {
      if (access.producer != operand) continue;
      int vector_dim = -1;
      std::vector<std::pair<int, int>> dims;  // (iterator, dim)
      for (int d = 0; d < static_cast<int>(access.indices.size()); ++d) {
        const std::optional<Affine>& index = access.indices[d];
        if (!index || index->constant != 0) return;
        // A split axis has two iterators, of which the last is the inner one.
        const bool moved = index->coefficient(VarId{vector}) != 0;
        if (moved && index->terms != decltype(index->terms){{VarId{vector}, 1}}) return;
        const int iterator = index->terms.empty() ? -1 : index->terms.back().first.value;
        if (iterator >= 0 && index->terms.back().second != 1) return;
        if (moved) {
          vector_dim = d;
        } else {
          dims.push_back({iterator, d});
        }
      }
      if (vector_dim < 0) return;
      std::sort(dims.begin(), dims.end());
      StagePlan::Packed packed{operand, vector_dim, {vector_dim}};
      for (const auto& [iterator, d] : dims) packed.order.push_back(d);
      plan.packed.push_back(std::move(packed));
    }
  }

  const Target& target_;
  const StructureRule& rule_;
  const Clusters clusters_;
  Sketch sketch_;
  int next_group_ = 0;
};

// The sketches of the forms that are asked for: all without names, the direct ones where none are.
std::vector<SketchId> drawn_sketches(std::span<const Sketch> sketches,
                                     std::span<const std::string> forms) {
  std::vector<SketchId> direct, drawn;
  for (size_t s = 0; s < sketches.size(); ++s) {
    const SketchId id{static_cast<int32_t>(s)};
    const std::string& form = sketches[s].form;
    if (form == kDirect.name) direct.push_back(id);
    if (forms.empty() || std::ranges::find(forms, form) != forms.end()) drawn.push_back(id);
  }
  return drawn.empty() ? direct : drawn;
}

}  // namespace

const Form kDirect = {"direct", [](ComputeDag&, const Target&) { return true; }, true};

Space make_space(const Task& task, std::span<const std::string> forms) {
  Space space{task.target, {}, {}};
  for (const Form* form : kForms) {
    if (task.target.is_gpu() && !form->gpu) continue;
    ComputeDag dag = task.dag;
    if (!form->apply(dag, task.target)) continue;
    if (task.target.is_gpu()) {
      for (Sketch& sketch : gpu_sketches(dag, task, *form)) space.sketches.push_back(sketch);
      continue;
    }
    for (const DagRule* rule : kDagRules) rule->apply(dag, task.target);
    for (const StructureRule* rule : kStructureRules) {
      if (rule->applies(dag, task.target))
        space.sketches.push_back(SketchMaker(dag, task.target, *form, *rule).make(task.dag));
    }
  }
  space.drawn = drawn_sketches(space.sketches, forms);
  return space;
}

std::vector<std::string> form_names() {
  std::vector<std::string> names;
  for (const Form* form : kForms) names.push_back(form->name);
  return names;
}

}  // namespace pruner
