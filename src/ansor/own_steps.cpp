#include "ansor/own_steps.h"

#include <algorithm>
#include <numeric>
#include <ranges>

#include "space/factors.h"

namespace pruner::ansor {
namespace {

/// The parts that a stage's axes were split into, to name them in an order.
class Splits {
 public:
  Splits(std::vector<Step>& steps, int stage) : steps_(steps), stage_(stage) {}

  void split(int axis, int64_t extent, std::vector<int64_t> lengths) {
    first_.push_back(count_);
    count_ += static_cast<int>(lengths.size()) + 1;
    steps_.push_back(SplitStep{stage_, axis, extent, std::move(lengths), true});
  }
  /// Part `level` of the n-th axis that was split, from the outermost.
  int part(size_t n, int level) const { return first_[n] + level; }

 private:
  std::vector<Step>& steps_;
  int stage_;
  std::vector<int> first_;
  int count_ = 0;
};

class StepWriter {
 public:
  StepWriter(const Space& space, const Candidate& candidate)
      : sketch_(space[candidate.sketch]), factors_(candidate) {}

  std::vector<Step> write() {
    for (size_t p = sketch_.plans.size(); p-- > 0;) {
      const StagePlan& plan = sketch_.plans[p];
      const auto row = std::ranges::find(kWriters, plan.structure, &Writer::structure);
      const Writer& tiled = plan.structure->fetches() ? kTiledOnGpu : kTiled;
      const Writer& writer = row == std::end(kWriters) ? tiled : *row;
      (this->*(plan.first == 0 ? writer.stage : writer.part))(plan);
    }
    return std::move(steps_);
  }

 private:
  /// Writer names the functions that write a structure's steps: `stage` writes the plan's stage,
  /// `part` writes the part of the stage that is computed in the loops of its root.
  /// loops of its root.
  struct Writer {
    const LoopStructure* structure;
    void (StepWriter::*stage)(const StagePlan&);
    void (StepWriter::*part)(const StagePlan&);
  };
  static const Writer kTiled, kTiledOnGpu;  // writers of contractions
  static const Writer kWriters[8];

  static int number(const StagePlan& plan) { return plan.stage.value; }
  const Stage& stage(const StagePlan& plan) const { return sketch_.dag[plan.stage]; }
  int64_t extent(const StagePlan& plan, int axis) const {
    return iterator_of(stage(plan), axis).extent;
  }

  void annotate(const StagePlan& plan, int iter, Annotation annotation) {
    steps_.push_back(AnnotationStep{number(plan), iter, annotation});
  }
  void fuse(const StagePlan& plan, int first, size_t count) {
    std::vector<int> iters(count);
    std::iota(iters.begin(), iters.end(), first);
    steps_.push_back(FuseStep{number(plan), std::move(iters)});
  }
  void write_pragma(const StagePlan& plan, std::string pragma) {
    steps_.push_back(PragmaStep{number(plan), 0, std::move(pragma)});
  }
  void write_unroll(const StagePlan& plan) {
    if (plan.unroll != kFixed)
      write_pragma(plan, "auto_unroll_max_step$" + std::to_string(factors_.value(plan.unroll)));
  }
  /// Computed in the root's loops of a level: 0 the outermost.
  void write_at(const StagePlan& plan, int level) {
    steps_.push_back(ComputeAtStep{number(plan), plan.root.value, level});
  }
  void write_vectors(const StagePlan& plan, int iter) {
    if (plan.lanes > 1) annotate(plan, iter, Annotation::kVectorize);
  }

  // ---- CPU

  // The iterations of an axis's levels, but for the rest.
  std::vector<int64_t> lengths(const StagePlan& plan, const AxisTiles& tiles) const {
    std::vector<int64_t> lengths;
    const Axes axes = tiles.axis < std::ssize(stage(plan).axes) ? Axes::kSpace : Axes::kReduction;
    for (size_t l = 1; l < plan.structure->levels.size(); ++l) {
      const Level& level = plan.structure->levels[l];
      const bool lanes = level.bind == Bind::kVector;
      const bool rest = level.iterations == Iterations::kRest;
      if (level.axes == axes && !rest && (!lanes || tiles.vector))
        lengths.push_back(factors_.at(tiles, static_cast<int>(l)));
    }
    return lengths;
  }

  // The parts of its axes, level after level: the rest, then those of each tile; last the lanes.
  void write_tile_root(const StagePlan& plan) {
    Splits splits(steps_, number(plan));
    for (const AxisTiles& tiles : plan.tiles)
      splits.split(tiles.axis, extent(plan, tiles.axis), lengths(plan, tiles));
    std::vector<int> order;
    int part = 0;
    for (const Level& level : plan.structure->levels) {
      if (level.axes != Axes::kSpace || level.bind == Bind::kVector) continue;
      const DecisionRef choice = part == 0 ? plan.parallel_order : plan.order;
      const bool first = level.bind != Bind::kUnrolled && factors_.value(choice, 0) == 1;
      const auto add = [&](bool vector) {
        for (size_t n = 0; n < plan.tiles.size(); ++n)
          if (plan.tiles[n].vector == vector) order.push_back(splits.part(n, part));
      };
      add(first);
      add(!first);
      ++part;
    }
    const int lanes = static_cast<int>(order.size());
    steps_.push_back(ReorderStep{number(plan), std::move(order)});
    const auto location = static_cast<Location>(factors_.value(plan.location, 0));
    if (location == Location::kRoot) {
      fuse(plan, 0, plan.tiles.size());
      annotate(plan, 0, Annotation::kParallel);
    } else {
      steps_.push_back(ComputeAtStep{number(plan), plan.at.value, static_cast<int>(location)});
    }
    write_vectors(plan, lanes);
    if (factors_.value(plan.streaming, 0) == 1) write_pragma(plan, "streaming");
  }

  void write_anchor(const StagePlan& plan) {
    steps_.push_back(CacheWriteStep{number(plan), "local"});
    for (const AxisTiles& tiles : plan.tiles) {
      const bool reduction = tiles.axis >= std::ssize(stage(plan).axes);
      const auto decided = [](const Factor& factor) { return factor.decision != kFixed; };
      if (!reduction || !std::ranges::any_of(tiles.factors, decided)) continue;
      steps_.push_back(SplitStep{
          number(plan), tiles.axis, extent(plan, tiles.axis), lengths(plan, tiles), true});
    }
    write_at(plan, plan.at_levels);
    write_unroll(plan);
    if (plan.prefetch != kFixed)
      write_pragma(plan, "prefetch$" + std::to_string(factors_.value(plan.prefetch)));
  }

  void write_attached(const StagePlan& plan) {
    const int64_t location = factors_.value(plan.location, 0);
    if (static_cast<Location>(location) == Location::kRoot) {
      steps_.push_back(ComputeRootStep{number(plan)});
      annotate(plan, 0, Annotation::kParallel);
    } else {
      write_at(plan, static_cast<int>(location));
    }
    write_vectors(plan, static_cast<int>(stage(plan).axes.size()));
  }

  void write_row_part(const StagePlan& plan) {
    const int lanes = static_cast<int>(stage(plan).axes.size()) - 1;
    steps_.push_back(RfactorStep{plan.root.value, 0, lanes});
    write_at(plan, 0);
    write_vectors(plan, lanes);
  }

  void write_transform(const StagePlan& plan) {
    const Stage& s = stage(plan);
    for (const auto& [axis, tile] : s.unrolled)
      steps_.push_back(SplitStep{number(plan), axis, extent(plan, axis), {tile}, true});
    fuse(plan, 0, s.axes.size());
    annotate(plan, 0, Annotation::kParallel);
    write_vectors(plan, static_cast<int>(s.axes.size() + s.unrolled.size()));
  }

  void write_transform_part(const StagePlan& plan) { write_at(plan, 0); }

  // ---- GPU

  // Fused blocks and threads of loops [0, blocks) and what follows them.
  void bind(const StagePlan& plan, size_t blocks, bool vthreads) {
    fuse(plan, 0, blocks);
    annotate(plan, 0, Annotation::kBlockX);
    int iter = 1;
    if (vthreads) {
      fuse(plan, iter, blocks);
      annotate(plan, iter++, Annotation::kVThread);
    }
    fuse(plan, iter, blocks);
    annotate(plan, iter, Annotation::kThreadX);
  }

  // Parts of an axis: blocks (the rest) | virtual threads | threads | outer | inner.
  void write_block_tile(const StagePlan& plan) {
    for (const AxisTiles& tiles : plan.tiles) {
      steps_.push_back(SplitStep{
          number(plan), tiles.axis, extent(plan, tiles.axis), lengths(plan, tiles), true});
    }
    bind(plan, plan.tiles.size(), true);
  }

  // Parts of a reduce axis: chunks (the rest) | outer | inner.
  void write_thread_tile(const StagePlan& plan) {
    steps_.push_back(CacheWriteStep{number(plan), "local"});
    for (const AxisTiles& tiles : plan.tiles) {
      if (tiles.axis < std::ssize(stage(plan).axes)) continue;
      steps_.push_back(SplitStep{
          number(plan), tiles.axis, extent(plan, tiles.axis), lengths(plan, tiles), true});
    }
    write_at(plan, plan.at_levels);
    write_unroll(plan);
    if (factors_.value(plan.buffers) == 2) write_pragma(plan, "double_buffer");
  }

  void write_fetch(const StagePlan& plan) {
    steps_.push_back(CacheReadStep{number(plan), "shared", {plan.at.value}});
    const std::vector<int64_t> box = factors_.fetched_box(sketch_, plan);
    const int64_t total = std::accumulate(box.begin(), box.end(), int64_t{1}, std::multiplies<>());
    steps_.push_back(SplitStep{number(plan),
                               0,
                               total,
                               {factors_.block_threads(sketch_.plan(plan.root)),
                                factors_.bound(plan, plan.tiles[0], Bind::kVector)},
                               true});
    steps_.push_back(ComputeAtStep{number(plan), plan.at.value, 0});
  }

  void write_elements(const StagePlan& plan) {
    const AxisTiles& tiles = plan.tiles[0];
    steps_.push_back(SplitStep{
        number(plan),
        0,
        stage(plan).num_elements(),
        {factors_.bound(plan, tiles, Bind::kSerial), factors_.bound(plan, tiles, Bind::kThreads)},
        true});
    bind(plan, 1, false);
    write_unroll(plan);
  }
  void write_element(const StagePlan& plan) { write_at(plan, 1); }

  void write_thread_transform(const StagePlan& plan) {
    const Stage& s = stage(plan);
    for (const auto& [axis, tile] : s.unrolled)
      steps_.push_back(SplitStep{number(plan), axis, extent(plan, axis), {tile}, true});
    fuse(plan, 0, s.axes.size());
    steps_.push_back(SplitStep{number(plan),
                               0,
                               tile_count(s),
                               {factors_.bound(plan, plan.tiles[0], Bind::kThreads)},
                               true});
    bind(plan, 1, false);
  }
  void write_thread_transform_part(const StagePlan& plan) { write_at(plan, 1); }

  void write_rows(const StagePlan& plan) {
    const Stage& s = stage(plan);
    int64_t rows = 1, rest = 1;
    for (size_t a = 0; a < s.axes.size(); ++a)
      (static_cast<int>(a) < plan.row_axes ? rows : rest) *= s.axes[a].extent;
    for (const AxisTiles& tiles : std::views::reverse(plan.tiles)) {
      const bool of_rows = tiles.axis == kFusedRows;
      steps_.push_back(SplitStep{number(plan),
                                 of_rows ? 0 : plan.row_axes,
                                 of_rows ? rows : rest,
                                 {factors_.bound(plan, tiles, Bind::kThreads)},
                                 true});
    }
    bind(plan, 1, false);
  }

  void write_row_reduction(const StagePlan& plan) {
    const int64_t threads = factors_.bound(plan, plan.tiles[0], Bind::kThreads);
    const int first = static_cast<int>(stage(plan).axes.size());
    steps_.push_back(SplitStep{number(plan), first, stage(plan).reduce_size(), {threads}, true});
    write_at(plan, 1);
    annotate(plan, first + 1, Annotation::kThreadX);
  }

  const Sketch& sketch_;
  const Factors factors_;
  std::vector<Step> steps_;
};

const StepWriter::Writer StepWriter::kTiled = {
    nullptr, &StepWriter::write_tile_root, &StepWriter::write_anchor};
const StepWriter::Writer StepWriter::kTiledOnGpu = {
    nullptr, &StepWriter::write_block_tile, &StepWriter::write_thread_tile};
const StepWriter::Writer StepWriter::kWriters[] = {
    {&kBox, &StepWriter::write_attached, nullptr},
    {&kFold, &StepWriter::write_attached, nullptr},
    {&kRowPart, &StepWriter::write_row_part, nullptr},
    {&kTransform, &StepWriter::write_transform, &StepWriter::write_transform_part},
    {&kFetch, &StepWriter::write_fetch, nullptr},
    {&kThreadElements, &StepWriter::write_elements, &StepWriter::write_element},
    {&kThreadTransform,
     &StepWriter::write_thread_transform,
     &StepWriter::write_thread_transform_part},
    {&kBlockRows, &StepWriter::write_rows, &StepWriter::write_row_reduction}};

}  // namespace

std::vector<Step> steps_of(const Space& space, const Candidate& candidate) {
  return StepWriter(space, candidate).write();
}

}  // namespace pruner::ansor
