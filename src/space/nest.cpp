// make_loop_nest: a candidate's decisions -> loops, as the structures of its stages say.
#include <algorithm>
#include <memory>
#include <numeric>

#include "space/draw_axis.h"
#include "space/factors.h"
#include "space/region.h"
#include "space/space.h"
#include "support/ceil_div.h"
#include "support/check.h"

namespace pruner {
namespace {

class NestMaker {
 public:
  NestMaker(const Sketch& sketch, const Candidate& candidate)
      : sketch_(sketch), factors_(candidate) {
    nest_.dag = &sketch.dag;
    nest_.tables = sketch.tables.get();
    nest_.stages.resize(sketch.plans.size());
    size_t most_tiles = 0;
    for (const StagePlan& plan : sketch.plans) most_tiles = std::max(most_tiles, plan.tiles.size());
    loops_ = std::make_unique_for_overwrite<AxisLoops[]>(most_tiles);
    level_ends_ = std::make_unique_for_overwrite<LevelEnds[]>(sketch.plans.size());
  }

  LoopNest make() {
    // Consumers first: an attached stage computes what they read.
    for (size_t p = sketch_.plans.size(); p-- > 0;)
      make_stage(sketch_.plans[p], nest_.stages[p], level_ends_[p]);
    return std::move(nest_);
  }

 private:
  /// A loop of one axis, while its iterations are not all known.
  struct AxisLoop {
    int64_t extent, step, clamp, unit;
  };
  using AxisLoops = std::array<AxisLoop, kMostLevels>;  // one per level
  using LevelEnds = std::array<int, kMostLevels + 1>;   // loops in the first n levels of a stage

  const Stage& stage(const StagePlan& plan) const { return sketch_.dag[plan.stage]; }
  size_t plan_index(StageId id) const { return static_cast<size_t>(sketch_.tables->plan_of[id]); }

  void make_stage(const StagePlan& plan, NestStage& out, LevelEnds& ends) {
    out.stage = plan.stage;
    out.structure = plan.structure;
    out.row_axes = plan.row_axes;
    out.unroll_steps = factors_.value(plan.unroll, 0);
    out.prefetch_bytes = factors_.value(plan.prefetch, 0);
    out.streaming = factors_.value(plan.streaming, 0) == 1;
    out.buffers = factors_.value(plan.buffers);
    out.epilogue = factors_.value(plan.epilogue, 0) == 1;
    place(plan, out);
    size_t loops = 0;
    for (size_t t = 0; t < plan.tiles.size(); ++t) {
      loops += make_loops(plan, plan.tiles[t], out, loops_[t]);
      if (plan.tiles[t].ends == AxisTiles::Ends::kOverlap)
        overlap(plan, plan.tiles[t], out, loops_[t]);
    }
    out.loops.reserve(loops);
    ends[0] = 0;
    for (size_t k = 0; k < plan.levels.size(); ++k) {
      push_level(plan, plan.levels[k], out);
      if (k == 0) group_rows(out, factors_.value(plan.raster));
      ends[k + 1] = static_cast<int>(out.loops.size());
    }
    if (plan.structure == &kThreadElements && plan.lanes > 1) take_neighbours(out, plan.lanes);
    if (!out.at.valid() && plan.structure->levels[plan.levels[0]].bind == Bind::kCores)
      out.parallel_loops = ends[1];
    const Staging& fetch = plan.structure->fetch;
    if (plan.accumulates() && fetch.level >= 0) out.chunk_loops = ends[fetch.loops_of];
    for (const StagePlan::Packed& packed : plan.packed) {
      if (is_attached(packed.operand)) continue;
      PackSpec spec{packed.order, {{packed.dim, packed_block(plan)}}};
      if (packed.terms_dim >= 0)
        spec.blocks.push_back({packed.terms_dim, plan.structure->instruction.back()});
      nest_.packed.push_back({packed.operand, std::move(spec)});
    }
  }

  /// Whether an operand is a copy of what one visit of another stage's loops reads.
  bool is_attached(StageId operand) const {
    if (sketch_.dag[operand].is_placeholder()) return false;
    const StagePlan& plan = sketch_.plan(operand);
    return plan.at_levels >= 0 || factors_.value(plan.location, 0) > 0;
  }

  // Returns the threads of a block, from the loops of the root, which are made already.
  int64_t block_threads(const StagePlan& plan) const {
    int64_t threads = 1;
    for (const NestLoop& loop : nest_.stages[plan_index(plan.root)].loops)
      if (loop.kind == LoopKind::kThread) threads *= loop.extent;
    return threads;
  }

  // Sets the place where a stage is computed, and the extents that one visit computes.
  void place(const StagePlan& plan, NestStage& out) const {
    const Stage& s = stage(plan);
    int levels = plan.at_levels;
    if (plan.location != kFixed) {
      levels = static_cast<int>(factors_.value(plan.location));
      if (levels == static_cast<int>(Location::kRoot)) levels = -1;
    }
    if (levels < 0) {
      out.scope = s.output ? Scope::kArgument : Scope::kWorkspace;
      for (const Iterator& axis : s.axes) out.extents.push_back(axis.extent);
      return;
    }
    out.at = plan.at;
    out.depth = level_ends_[plan_index(plan.at)][levels];
    out.scope = plan.memory;
    if (plan.box) {
      out.extents = plan.operand ? factors_.fetched_box(sketch_, plan, true)
                                 : touched_extents(nest_, plan.stage, out.at, out.depth);
      return;
    }
    out.extents.assign(s.axes.size(), 1);
    for (const AxisTiles& tiles : plan.tiles) {
      if (tiles.axis < 0 || tiles.axis >= static_cast<int>(s.axes.size())) continue;
      int64_t& extent = out.extents[tiles.axis];
      bool rest = false;
      for (const uint8_t l : plan.levels) {
        rest = rest || tiles.factors[l].count == Factor::kRest;
        extent *= factors_.at(tiles, l);
      }
      if (rest) extent = iterator_of(s, tiles.axis).extent;
    }
  }

  // Elements that the loops of `tiles` run over.
  int64_t length(const StagePlan& plan, const AxisTiles& tiles, const NestStage& out) const {
    const Stage& s = stage(plan);
    if (tiles.axis == kFusedReduce) return s.reduce_size();
    if (tiles.axis >= static_cast<int>(s.axes.size())) return iterator_of(s, tiles.axis).extent;
    if (tiles.axis >= 0) return out.extents[tiles.axis];
    const bool rows = tiles.axis == kFusedRows;
    const auto end = rows ? plan.row_axes : static_cast<int>(out.extents.size());
    int64_t length = 1;
    for (int a = rows ? 0 : plan.row_axes; a < end; ++a)
      length *= ceil_div(out.extents[a], s.tile(a));
    return length;
  }

  // The loops of one axis, from the innermost out: each advances by what those inside hold. How
  // many there are.
  size_t make_loops(const StagePlan& plan,
                    const AxisTiles& tiles,
                    const NestStage& out,
                    AxisLoops& loops) const {
    size_t count = 0;
    int64_t step = 1;
    for (size_t l = plan.structure->levels.size(); l-- > 0;) {
      const Factor& factor = tiles.factors[l];
      int64_t extent = factors_.value(factor.decision, factor.count);
      if (extent == Factor::kRest) extent = ceil_div(length(plan, tiles, out), step);
      if (extent == Factor::kBlockThreads) extent = block_threads(plan);
      if (extent == Factor::kBlockWarps) extent = block_threads(plan) / kWarpLanes;
      loops[l] = {extent, step, -1, 1};
      step *= extent;
      count += extent > 1;
    }
    return count;
  }

  // The outermost loop's last tile starts where it ends with the axis. The vector axis is masked
  // where a packed operand has whole blocks, or where the tile is longer than it: then, if one loop
  // runs over a tile's blocks, the last of these starts where it ends with the axis.
  void overlap(const StagePlan& plan,
               const AxisTiles& tiles,
               NestStage& out,
               AxisLoops& loops) const {
    const size_t registers = static_cast<size_t>(plan.structure->registers());
    int64_t& all = out.extents[tiles.axis];
    const int64_t unit = loops[registers].step * loops[registers].extent;
    const int64_t units = ceil_div(all, unit);
    const int64_t step = std::min(loops[0].step / unit, units) * unit;
    int split = 0;
    for (size_t l = 1; l < registers; ++l) split += loops[l].extent > 1;
    const bool summed_once = plan.structure->sum.memory == Scope::kRegister;
    if (tiles.vector && plan.overlaps && summed_once && !out.at.valid() && step > all &&
        unit <= all && split <= 1) {
      loops[0].extent = 1;
      for (size_t l = 1; l < registers; ++l) {
        if (loops[l].extent == 1) continue;
        loops[l].extent = ceil_div(all, loops[l].step);
        loops[l].clamp = all - loops[l].step;
        loops[l].unit = std::gcd(loops[l].step, loops[l].clamp);
      }
      return;
    }
    const bool masked = tiles.vector && !(plan.overlaps && step <= all);
    const int64_t whole = masked ? units * unit : all;
    if (out.at.valid()) all = whole;
    loops[0].extent = ceil_div(whole, step);
    loops[0].step = step;
    // An open axis has other extents, too, which all but whole steps of its units do not divide.
    const bool open = stage(plan).axes[static_cast<size_t>(tiles.axis)].open;
    const int64_t least = masked ? unit : 1;
    if (open ? step == least : whole % step == 0) return;
    loops[0].clamp = whole - step;
    loops[0].unit = open ? least : std::gcd(step, loops[0].clamp);
  }

  void push_level(const StagePlan& plan, size_t l, NestStage& out) const {
    const Bind bind = plan.structure->levels[l].bind;
    const DecisionRef order = bind == Bind::kCores    ? plan.parallel_order
                              : bind == Bind::kSerial ? plan.order
                                                      : kFixed;
    const bool vector_first = factors_.value(order, 0) == 1;
    // A finished tile in memory is copied out by ordinary loops.
    const Staging& sum = plan.structure->sum;
    const bool copied = plan.first == 0 && sum.level >= 0 && sum.memory != Scope::kRegister;
    const LoopKind kind = copied && bind >= Bind::kUnrolled && bind != Bind::kVector
                              ? LoopKind::kSerial
                              : loop_kind(bind);
    const auto push = [&](size_t t) {
      const AxisTiles& tiles = plan.tiles[t];
      const AxisLoop& loop = loops_[t][l];
      if ((tiles.looped >> l & 1) == 0 || loop.extent == 1) return;
      const bool cut = tiles.ends == AxisTiles::Ends::kCut && !tiles.vector &&
                       tiles.factors[l].count != Factor::kRest &&
                       leaves_rest(iterator_of(stage(plan), tiles.axis), loop.extent * loop.step);
      out.loops.push_back({tiles.axis, loop.extent, loop.step, kind, loop.clamp, loop.unit, cut});
    };
    for (size_t t = 0; vector_first && t < plan.tiles.size(); ++t)
      if (plan.tiles[t].vector) push(t);
    for (size_t t = 0; t < plan.tiles.size(); ++t)
      if (!vector_first || !plan.tiles[t].vector) push(t);
  }

  static bool leaves_rest(const Iterator& axis, int64_t tile) {
    return axis.open || axis.extent % tile != 0;
  }

  // A thread takes its elements in vectors of neighbours, as far as they are some; the vectors lie
  // a block's threads apart.
  static void take_neighbours(NestStage& out, int64_t most) {
    const auto loop_of = [&](LoopKind kind) {
      return std::ranges::find_if(out.loops, [&](const NestLoop& loop) {
        return loop.axis == kFusedSpatial && loop.kind == kind;
      });
    };
    const auto elements = loop_of(LoopKind::kSerial), threads = loop_of(LoopKind::kThread);
    if (elements == out.loops.end() || threads == out.loops.end()) return;
    const int64_t lanes = std::gcd(elements->extent, most);
    if (lanes == 1) return;
    threads->step = lanes;
    elements->extent /= lanes;
    elements->step = threads->extent * lanes;
    if (elements->extent == 1) out.loops.erase(elements);
    out.loops.push_back(
        {.axis = kFusedSpatial, .extent = lanes, .step = 1, .kind = LoopKind::kVectorize});
  }

  // The last loop but one, over rows of blocks, is divided: the rows of a group are innermost.
  static void group_rows(NestStage& out, int64_t most) {
    if (most == 1 || out.loops.size() < 2) return;
    NestLoop& groups = out.loops[out.loops.size() - 2];
    NestLoop rows = groups;
    rows.extent = std::gcd(groups.extent, most);
    groups.extent /= rows.extent;
    groups.step *= rows.extent;
    if (groups.extent == 1) out.loops.erase(out.loops.end() - 2);
    if (rows.extent > 1) out.loops.push_back(rows);
  }

  // Elements of the vector axis that one block of a packed operand holds: those in registers.
  int64_t packed_block(const StagePlan& anchor) const {
    for (const AxisTiles& tiles : anchor.tiles) {
      if (tiles.vector) return factors_.inside(tiles, anchor.structure->registers());
    }
    return 1;
  }

  const Sketch& sketch_;
  const Factors factors_;
  LoopNest nest_;
  std::unique_ptr<LevelEnds[]> level_ends_;  // one per plan
  std::unique_ptr<AxisLoops[]> loops_;       // one per tiled axis of the stage at hand
};

}  // namespace

std::vector<int64_t> visited_extents(const Sketch& sketch,
                                     const StagePlan& plan,
                                     const Candidate& candidate) {
  if (Factors(candidate).value(plan.location, 0) == 0) return sketch.dag[plan.stage].shape();
  return visited_extents(NestMaker(sketch, candidate).make(), plan.stage);
}

LoopNest make_loop_nest(const Space& space, const Candidate& candidate) {
  return NestMaker(space[candidate.sketch], candidate).make();
}

int64_t NestStage::chunks() const {
  int64_t chunks = 1;
  for (size_t i = 0; i < static_cast<size_t>(chunk_loops); ++i) chunks *= loops[i].extent;
  return chunks;
}

int64_t NestStage::chunk_extent(int axis) const {
  int64_t extent = 1;
  for (size_t i = static_cast<size_t>(chunk_loops); i < loops.size(); ++i)
    if (loops[i].axis == axis) extent *= loops[i].extent;
  return extent;
}

int64_t NestStage::block_extent(int axis) const {
  int64_t extent = 1;
  for (const NestLoop& loop : loops)
    if (loop.axis == axis && loop.kind != LoopKind::kBlock) extent *= loop.extent;
  return extent;
}

const PackSpec* packing_of(const LoopNest& nest, StageId operand) {
  const auto found = std::ranges::find(nest.packed, operand, &PackedOperand::operand);
  return found == nest.packed.end() ? nullptr : &found->spec;
}

PackSpec stored_form(const LoopNest& nest, StageId argument) {
  const PackSpec* packing = packing_of(nest, argument);
  PackSpec form = packing == nullptr ? PackSpec() : *packing;
  form.transform = (*nest.dag)[argument].transform;
  return form;
}

const NestStage& LoopNest::of(StageId id) const {
  for (const NestStage& stage : stages) {
    if (stage.stage == id) return stage;
  }
  CHECK(false) << "stage " << id.value << " has no loops";
  return stages[0];
}

}  // namespace pruner
