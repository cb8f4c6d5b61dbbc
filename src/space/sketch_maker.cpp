#include "space/sketch_maker.h"

#include <fmt/format.h>

#include <algorithm>

#include "space/dag_edit.h"
#include "space/dot.h"
#include "space/loop_nest.h"
#include "support/ceil_div.h"
#include "support/hash.h"
#include "tensor/affine.h"

namespace pruner {
namespace {

bool is_hardware(Bind bind) {
  return bind == Bind::kBlocks || bind == Bind::kThreads || bind == Bind::kWarps;
}

// The levels of a structure from `first` on, in the order of their loops: those of a kernel's grid
// and block outside of all others, virtual threads around the first tile that a thread computes.
std::vector<uint8_t> loop_order(const LoopStructure& structure, int first) {
  std::vector<uint8_t> order, virtual_threads;
  const bool kernel = first == 0 && structure.levels[0].bind == Bind::kBlocks;
  const auto for_levels = [&](const auto& fn) {
    for (size_t l = 0; l < structure.levels.size(); ++l) {
      const Level& level = structure.levels[l];
      const bool own = static_cast<int>(l) >= first || level.bind == Bind::kVirtualThreads;
      if (own && !(kernel && level.axes == Axes::kFusedReduction))
        fn(level, static_cast<uint8_t>(l));
    }
  };
  for_levels([&](const Level& level, uint8_t l) {
    if (kernel && is_hardware(level.bind)) order.push_back(l);
  });
  for_levels([&](const Level& level, uint8_t l) {
    if (kernel && is_hardware(level.bind)) return;
    if (level.bind == Bind::kVirtualThreads) return virtual_threads.push_back(l);
    if (level.axes == Axes::kSpace) {
      order.insert(order.end(), virtual_threads.begin(), virtual_threads.end());
      virtual_threads.clear();
    }
    order.push_back(l);
  });
  return order;
}

// The operations of a body that selects by its place in a tile, and the uses of each iterator in
// the body: means over all places. Reads of another stage's tile are from registers, whose indices
// cost nothing.
struct BodyCounts {
  OperationCounts operations;
  std::vector<int> iterator_uses;
};
BodyCounts counts_of_places(const ComputeDag& dag, const Stage& stage) {
  BodyCounts sum{{}, std::vector<int>(stage.axes.size(), 0)};
  int places = 0;
  const auto divide = [&](int& count) { count = ceil_div(count, places); };
  const std::function<void(size_t, std::vector<Expr>)> visit_places = [&](size_t tile,
                                                                          std::vector<Expr> at) {
    if (tile < stage.unrolled.size()) {
      const auto& [axis, extent] = stage.unrolled[tile];
      for (int64_t i = 0; i < extent; ++i) {
        at[static_cast<size_t>(axis)] = Expr(i);
        visit_places(tile + 1, at);
      }
      return;
    }
    const Expr body = rewrite(simplify(substitute(stage.body, at), {}), [&](const Expr& e) {
      const Load* read = as<Load>(e);
      const bool held = read != nullptr && !dag[read->tensor].unrolled.empty();
      return held ? load(read->tensor, {}, e->dtype) : Expr();
    });
    const OperationCounts operations = count_operations(body);
    const std::vector<int> uses = count_variables(body, stage.axes.size());
    for (size_t i = 0; i < operations.of.size(); ++i) sum.operations.of[i] += operations.of[i];
    for (size_t i = 0; i < uses.size(); ++i) sum.iterator_uses[i] += uses[i];
    ++places;
  };
  visit_places(0, iterator_vars(stage));
  std::ranges::for_each(sum.operations.of, divide);
  std::ranges::for_each(sum.iterator_uses, divide);
  return sum;
}

StageId find_stage(const ComputeDag& dag, const std::string& name) {
  for (int s = 0; s < dag.size(); ++s) {
    if (dag[StageId{s}].name == name) return StageId{s};
  }
  CHECK(false) << "stage " << name << " lost by a DAG rule";
  return StageId{};
}

// Returns the elements of an axis that an instruction computes at a level. Along the last axes
// longer than 1 these are the instruction's shape, rows or steps; along other axes 1.
int64_t instruction_extent(const LoopStructure& structure,
                           const Stage& stage,
                           int axis,
                           Iterations at) {
  if (at == Iterations::kRows) {
    return axis == matrix_row_axis(stage)
               ? matrix_rows(stage.axes[static_cast<size_t>(axis)].extent, structure.tile_rows)
               : 1;
  }
  if (at == Iterations::kSteps) {
    const int64_t terms = instruction_extent(structure, stage, axis, Iterations::kShape);
    return terms > 1 ? matrix_steps(iterator_of(stage, axis).extent / terms, structure.tile_steps)
                     : 1;
  }
  if (at == Iterations::kFragmentLanes || at == Iterations::kFragment) {
    // The last two axes longer than 1 are the rows and the columns of the sums (fragment.h).
    const int64_t extent = instruction_extent(structure, stage, axis, Iterations::kShape);
    const auto inner = std::count_if(stage.axes.begin() + axis + 1,
                                     stage.axes.end(),
                                     [](const Iterator& a) { return a.extent > 1; });
    if (inner > 1) return 1;
    const int64_t lanes = inner == 0 ? kColumnLanes : kRowLanes * structure.warps;
    return at == Iterations::kFragmentLanes ? lanes : extent / lanes;
  }
  if (at != Iterations::kShape) return 1;
  const bool reduction = axis >= std::ssize(stage.axes);
  const std::vector<Iterator>& axes = reduction ? stage.reduce_axes : stage.axes;
  const auto after = axes.begin() + (reduction ? axis - std::ssize(stage.axes) : axis) + 1;
  const auto longer = [](const Iterator& a) { return a.extent > 1; };
  const std::span<const int64_t> shape =
      reduction ? structure.instruction.last(1)
                : structure.instruction.first(structure.instruction.size() - 1);
  const auto inner = std::count_if(after, axes.end(), longer);
  return inner < std::ssize(shape) ? shape[shape.size() - 1 - static_cast<size_t>(inner)] : 1;
}

// The first of the longest reduce axes.
int longest_reduction(const Stage& stage) {
  const auto longest = std::ranges::max_element(stage.reduce_axes, {}, &Iterator::extent);
  return static_cast<int>(stage.axes.size() + (longest - stage.reduce_axes.begin()));
}

}  // namespace

SketchMaker::SketchMaker(const ComputeDag& dag,
                         const Target& target,
                         const Form& form,
                         std::string name)
    : target_(target) {
  sketch_.form = form.name;
  sketch_.name = &form == &kDirect ? std::move(name) : sketch_.form + "+" + name;
  sketch_.dag = dag;
}

DecisionRef SketchMaker::add(DecisionKind kind,
                             std::string name,
                             std::vector<int32_t> choices,
                             int group) {
  if (choices.size() < 2) return kFixed;
  sketch_.decisions.push_back({kind, std::move(name), std::move(choices), group});
  return static_cast<DecisionRef>(sketch_.decisions.size()) - 1;
}

Factor SketchMaker::factor(const StagePlan& plan,
                           const Level& level,
                           const AxisTiles& tiles,
                           int group) {
  const Stage& stage = dag()[plan.stage];
  const auto fixed = [](int64_t count) { return Factor{kFixed, static_cast<int32_t>(count)}; };
  switch (level.iterations) {
    case Iterations::kRest: return fixed(Factor::kRest);
    case Iterations::kBlockThreads: return fixed(Factor::kBlockThreads);
    case Iterations::kBlockWarps: return fixed(Factor::kBlockWarps);
    case Iterations::kLanesOfWarp: return fixed(kWarpLanes);
    case Iterations::kLanes: return fixed(tiles.vector ? plan.lanes : 1);
    case Iterations::kTile: {
      const auto own = [&](const auto& tile) { return tile.first == tiles.axis; };
      const auto found = std::ranges::find_if(stage.unrolled, own);
      return fixed(found == stage.unrolled.end() ? 1 : found->second);
    }
    case Iterations::kShape:
    case Iterations::kRows:
    case Iterations::kSteps:
    case Iterations::kFragmentLanes:
    case Iterations::kFragment:
      return fixed(instruction_extent(*plan.structure, stage, tiles.axis, level.iterations));
    case Iterations::kOfLongest:
      if (tiles.axis != longest_reduction(stage)) return fixed(1);
      break;
    case Iterations::kDecided: break;
  }
  if (level.choices == nullptr) return fixed(1);
  // Axes that no instruction goes along are divided into blocks alone.
  if (plan.structure->has_fragments() && level.axes == Axes::kSpace &&
      instruction_extent(*plan.structure, stage, tiles.axis, Iterations::kShape) == 1)
    return fixed(1);
  const int64_t extent = is_fused(level.axes) ? 1 : iterator_of(stage, tiles.axis).extent;
  const int lanes = tiles.vector ? plan.lanes : 1;
  int64_t unit = lanes;
  for (const Level& inner : plan.structure->levels)
    if (inner.axes == level.axes)
      unit *= instruction_extent(*plan.structure, stage, tiles.axis, inner.iterations);
  const TiledAxis axis{
      ceil_div(extent, unit), lanes, tiles.vector, dtype_bytes(stage.dtype), &target_, unit};
  const bool per_axis = group >= 0;
  std::string name = stage.name + ".";
  if (per_axis) name += iterator_of(stage, tiles.axis).name + ".";
  name += tiles.vector && level.vector_name != nullptr ? level.vector_name : level.name;
  // Vectors of fewer lanes are another decision: records tell them apart by its name.
  if (level.bind == Bind::kUnrolled && lanes > 1 &&
      lanes != lanes_for(extent, stage.dtype, target_))
    name += fmt::format("_of_{}", lanes);
  const DecisionRef decision = add(level.kind, std::move(name), level.choices(axis), group);
  if (level.kind == DecisionKind::kVector && decision != kFixed) {
    // Runs of other lengths are as slow as single elements.
    const auto is_vector = [&](int32_t c) {
      return is_gpu_vector(c, axis.element_bytes, target_.gpu);
    };
    Decision& run = sketch_.decisions[static_cast<size_t>(decision)];
    std::ranges::copy_if(run.choices, std::back_inserter(run.worth_drawing), is_vector);
  }
  return {decision, 1};
}

void SketchMaker::add_tiles(StagePlan& plan, Axes axes, int axis, bool vector) {
  const std::span<const Level> levels = plan.structure->levels;
  AxisTiles tiles{.axis = axis, .vector = vector};
  if (plan.overlapped()) tiles.ends = AxisTiles::Ends::kOverlap;
  if (axes == Axes::kReduction && !target_.is_gpu()) tiles.ends = AxisTiles::Ends::kCut;
  const auto decided = [&](const Level& level) {
    return level.axes == axes && !is_fused(axes) && level.iterations == Iterations::kDecided;
  };
  const int group = std::ranges::any_of(levels, decided) ? next_group_++ : -1;
  std::vector<size_t> own;
  for (size_t l = static_cast<size_t>(plan.first); l < levels.size(); ++l) {
    if (levels[l].axes == axes) own.push_back(l);
  }
  // Along fused axes the decisions on threads come first.
  if (is_fused(axes)) std::ranges::reverse(own);
  int rest = -1, longest = -1;
  for (const size_t l : own) {
    tiles.factors[l] = factor(plan, levels[l], tiles, group);
    if (levels[l].iterations == Iterations::kRest) rest = static_cast<int>(l);
    const bool of_longest = levels[l].iterations == Iterations::kOfLongest;
    if (of_longest && longest < 0) longest = static_cast<int>(l);
    if (levels[l].iterations == Iterations::kTile && tiles.factors[l].count > 1)
      tiles.ends = AxisTiles::Ends::kCut;
  }
  if (longest >= 0 && tiles.decision(longest) == kFixed)  // not in chunks
    std::swap(tiles.factors[rest], tiles.factors[longest]);
  plan.tiles.push_back(tiles);
}

void SketchMaker::add_spatial_tiles(StagePlan& plan) {
  const Stage& stage = dag()[plan.stage];
  const int vector = vector_axis(stage);
  for (int a = 0; a < static_cast<int>(stage.axes.size()); ++a) {
    if (stage.axes[a].extent > 1) add_tiles(plan, Axes::kSpace, a, a == vector && plan.lanes > 1);
  }
}

void SketchMaker::add_reduce_tiles(StagePlan& plan) {
  const Stage& stage = dag()[plan.stage];
  for (size_t r = 0; r < stage.reduce_axes.size(); ++r) {
    if (stage.reduce_axes[r].extent > 1)
      add_tiles(plan, Axes::kReduction, static_cast<int>(stage.axes.size() + r));
  }
}

void SketchMaker::add_reduction_decisions(StagePlan& plan) {
  const std::string& name = dag()[plan.stage].name;
  const auto choices = [](std::span<const int32_t> of) {
    return std::vector(of.begin(), of.end());
  };
  plan.unroll = add(DecisionKind::kUnroll, name + ".unroll", choices(plan.structure->unroll));
  plan.buffers = add(DecisionKind::kBuffers, name + ".buffers", choices(plan.structure->buffers));
  plan.epilogue =
      add(DecisionKind::kEpilogue, name + ".epilogue", choices(plan.structure->epilogue));
}

void SketchMaker::copy_widely(StagePlan& plan) {
  Factor& vector = plan.tiles[0].factors[plan.structure->levels.size() - 1];
  if (vector.decision != kFixed) sketch_.decisions.pop_back();
  const int64_t bytes = dtype_bytes(dag()[plan.stage].dtype);
  vector = {kFixed, static_cast<int32_t>(target_.gpu.vector_bytes / bytes)};
}

void SketchMaker::accumulate_in_root(StagePlan& plan) const {
  plan.first = plan.structure->sum.level;
  plan.memory = plan.structure->sum.memory;
  plan.at = plan.root;
  plan.at_levels = plan.structure->sum.loops_of;
}

// A stage that accumulates has its root's tiles, and threads and unrolling where it has none of its
// own.
void SketchMaker::link_to_roots() {
  for (StagePlan& plan : sketch_.plans) {
    if (!plan.accumulates()) continue;
    const StagePlan& root = sketch_.plan(plan.at);
    plan.order = root.order;
    plan.row_axes = root.row_axes;
    if (plan.unroll == kFixed) plan.unroll = root.unroll;
    std::vector<AxisTiles> tiles;
    for (AxisTiles shared : root.tiles) {
      for (size_t l = 0; l < plan.structure->levels.size(); ++l) {
        const Level& level = plan.structure->levels[l];
        const bool named = level.iterations == Iterations::kDecided && level.choices == nullptr;
        for (size_t from = 0; named && from < l; ++from) {
          if (shared.factors[from].decision != kFixed &&
              plan.structure->levels[from].name == std::string_view(level.name))
            plan.tiles.back().factors[l] = shared.factors[from];
        }
      }
      shared.ends = AxisTiles::Ends::kBeyond;
      if (shared.axis >= 0) tiles.push_back(shared);
    }
    plan.tiles.insert(plan.tiles.begin(), tiles.begin(), tiles.end());
  }
}

void SketchMaker::find_followers(SketchTables& tables) const {
  tables.followers.resize(dag().stages.size());
  const auto whole = [&](StageId id) -> const StagePlan& {  // a row part has its root's
    const StagePlan& plan = sketch_.plan(id);
    return plan.structure == &kRowPart ? sketch_.plan(plan.root) : plan;
  };
  for (const StagePlan& plan : sketch_.plans) {
    std::vector<StageId>& readers = tables.consumers[plan.stage];
    const auto elsewhere = [&](StageId id) {
      return plan.is_kept() && whole(id).root != plan.root;
    };
    for (const StageId reader : readers) {
      const StagePlan& other = whole(reader);
      if (!other.follows_readers()) continue;
      tables.followers[elsewhere(reader) ? plan.root : plan.stage].push_back(other.stage);
    }
    std::erase_if(readers, elsewhere);
  }
}

std::optional<MmaContraction> SketchMaker::mma_of(const StagePlan& plan) const {
  if (!plan.structure->has_fragments() || !plan.accumulates()) return std::nullopt;
  return find_mma(dag(), plan.stage, plan.structure->instruction, target_.gpu);
}

Sketch SketchMaker::complete(const ComputeDag& task_dag,
                             const std::function<StagePlan(StageId)>& plan) {
  auto tables = std::make_shared<SketchTables>();
  tables->accesses = access_table(dag());
  tables->constant_parts = constant_parts(dag());
  tables->plan_of.assign(dag().stages.size(), -1);
  for (int s = 0; s < dag().size(); ++s) {
    const Stage& stage = dag()[StageId{s}];
    tables->consumers.push_back(dag().consumers(StageId{s}));
    tables->body_operations.push_back(stage.is_placeholder() ? 0 : body_operations(stage.body));
    tables->counts.push_back(count_operations(stage.body));
    tables->iterator_uses.push_back(
        count_variables(stage.body, stage.axes.size() + stage.reduce_axes.size()));
    tables->dots.push_back(nullptr);
    tables->dot_rates.push_back(0);
    tables->mmas.push_back(std::nullopt);
    if (stage.is_placeholder()) continue;
    tables->plan_of[StageId{s}] = static_cast<int>(sketch_.plans.size());
    sketch_.plans.push_back(plan(StageId{s}));
    StagePlan& made = sketch_.plans.back();
    made.levels = loop_order(*made.structure, made.first);
    if (made.structure == &kThreadTransform) {
      BodyCounts counts = counts_of_places(dag(), stage);
      tables->counts.back() = counts.operations;
      tables->iterator_uses.back() = std::move(counts.iterator_uses);
    }
    const DotInstruction* dot =
        find_dot_instruction(dag(), StageId{s}, target_, made.structure->has_matrix());
    tables->dots[StageId{s}] = dot;
    if (dot != nullptr) tables->dot_rates[StageId{s}] = target_.dots.*dot->rate;
    tables->mmas[StageId{s}] = mma_of(made);
  }
  tables->attention = attention();
  sketch_.tables = tables;
  find_followers(*tables);
  for (const StageId input : task_dag.inputs())
    sketch_.args.push_back(find_stage(dag(), task_dag[input].name));
  for (const StageId output : task_dag.outputs())
    sketch_.args.push_back(find_stage(dag(), task_dag[output].name));
  std::string text = sketch_.name + "\n" + print(dag());
  for (const Decision& decision : sketch_.decisions) text += decision.name + " ";
  sketch_.hash = hash_hex(text).substr(0, 16);
  link_to_roots();
  for (StagePlan& plan : sketch_.plans) {
    for (AxisTiles& tiles : plan.tiles) {
      for (unsigned l = 0; l < kMostLevels; ++l)
        if (tiles.factors[l].decision != kFixed || tiles.factors[l].count != 1)
          tiles.looped |= 1u << l;
    }
  }
  return std::move(sketch_);
}

}  // namespace pruner
