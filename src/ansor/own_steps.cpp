#include "ansor/own_steps.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "space/gpu/tiles.h"

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
      : sketch_(space[candidate.sketch]), tiles_(sketch_, candidate) {}

  std::vector<Step> write() {
    for (size_t p = sketch_.plans.size(); p-- > 0;) {
      const StagePlan& plan = sketch_.plans[p];
      switch (plan.role) {
        case StageRole::kTileRoot: write_tile_root(plan); break;
        case StageRole::kAnchor: write_anchor(plan); break;
        case StageRole::kAttached: write_attached(plan); break;
        case StageRole::kRowPart: write_row_part(plan); break;
        case StageRole::kTransform: write_transform(plan); break;
        case StageRole::kTransformPart: write_at(plan, 0); break;
        case StageRole::kBlockTile: write_block_tile(plan); break;
        case StageRole::kThreadTile: write_thread_tile(plan); break;
        case StageRole::kSharedTile: write_shared_tile(plan); break;
        case StageRole::kElements: write_elements(plan); break;
        case StageRole::kElement: write_at(plan, 1); break;
        case StageRole::kRows: write_rows(plan); break;
        case StageRole::kRowReduction: write_row_reduction(plan); break;
      }
    }
    return std::move(steps_);
  }

 private:
  static int number(const StagePlan& plan) { return plan.stage.value; }
  const Stage& stage(const StagePlan& plan) const { return sketch_.dag[plan.stage]; }
  int64_t extent(const StagePlan& plan, int axis) const {
    const Stage& s = stage(plan);
    const auto a = static_cast<size_t>(axis);
    return a < s.axes.size() ? s.axes[a].extent : s.reduce_axes[a - s.axes.size()].extent;
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
      write_pragma(plan, "auto_unroll_max_step$" + std::to_string(tiles_.value(plan.unroll)));
  }
  /// Computed in the root's loops of a level: 0 the outermost.
  void write_at(const StagePlan& plan, int level) {
    steps_.push_back(ComputeAtStep{number(plan), plan.root.value, level});
  }
  void write_vectors(const StagePlan& plan, int iter) {
    if (plan.lanes > 1) annotate(plan, iter, Annotation::kVectorize);
  }

  // ---- CPU

  // Parts of an axis: the rest | middle | inner | registers, and the lanes of the vector axis.
  void write_tile_root(const StagePlan& plan) {
    Splits splits(steps_, number(plan));
    for (const AxisPlan& a : plan.axes) {
      std::vector<int64_t> lengths = {
          tiles_.value(a.middle), tiles_.value(a.inner), tiles_.value(a.registers)};
      if (a.vector) lengths.push_back(plan.lanes);
      splits.split(a.axis, extent(plan, a.axis), std::move(lengths));
    }
    std::vector<int> order;
    for (int level = 0; level < 4; ++level) {
      const DecisionRef choice = level == 0 ? plan.parallel_order : plan.order;
      const bool first = level < 3 && tiles_.value(choice, 0) == 1;
      const auto add = [&](bool vector) {
        for (size_t n = 0; n < plan.axes.size(); ++n)
          if (plan.axes[n].vector == vector) order.push_back(splits.part(n, level));
      };
      add(first);
      add(!first);
    }
    steps_.push_back(ReorderStep{number(plan), std::move(order)});
    const auto location = static_cast<Location>(tiles_.value(plan.location, 0));
    if (location == Location::kRoot) {
      fuse(plan, 0, plan.axes.size());
      annotate(plan, 0, Annotation::kParallel);
    } else {
      steps_.push_back(ComputeAtStep{number(plan), plan.inside.value, static_cast<int>(location)});
    }
    write_vectors(plan, static_cast<int>(4 * plan.axes.size()));
    if (tiles_.value(plan.streaming, 0) == 1) write_pragma(plan, "streaming");
  }

  void write_anchor(const StagePlan& plan) {
    steps_.push_back(CacheWriteStep{number(plan), "local"});
    if (plan.chunk != kFixed) {
      const int64_t length = tiles_.value(plan.chunk);
      steps_.push_back(
          SplitStep{number(plan), plan.chunk_axis, extent(plan, plan.chunk_axis), {length}, true});
    }
    write_at(plan, plan.cache_tile ? 2 : 3);
    write_unroll(plan);
    if (plan.prefetch != kFixed)
      write_pragma(plan, "prefetch$" + std::to_string(tiles_.value(plan.prefetch)));
  }

  void write_attached(const StagePlan& plan) {
    const int64_t location = tiles_.value(plan.location, 0);
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
    for (const GpuAxisPlan& a : plan.tiles) {
      steps_.push_back(
          SplitStep{number(plan),
                    a.axis,
                    extent(plan, a.axis),
                    {tiles_.vthreads(a), tiles_.threads(a), tiles_.outer(a), tiles_.inner(a)},
                    true});
    }
    bind(plan, plan.tiles.size(), true);
  }

  // Parts of a reduce axis: chunks (the rest) | outer | inner.
  void write_thread_tile(const StagePlan& plan) {
    steps_.push_back(CacheWriteStep{number(plan), "local"});
    for (const GpuAxisPlan& a : plan.tiles) {
      steps_.push_back(SplitStep{
          number(plan), a.axis, extent(plan, a.axis), {tiles_.outer(a), tiles_.inner(a)}, true});
    }
    write_at(plan, 2);
    write_unroll(plan);
    if (tiles_.value(plan.double_buffer) == 2) write_pragma(plan, "double_buffer");
  }

  void write_shared_tile(const StagePlan& plan) {
    const StagePlan& contraction = tiles_.reader_of(plan);
    steps_.push_back(CacheReadStep{number(plan), "shared", {contraction.stage.value}});
    const std::vector<int64_t> box = tiles_.shared_box(plan);
    const int64_t total = std::accumulate(box.begin(), box.end(), int64_t{1}, std::multiplies<>());
    const int64_t threads = tiles_.block_threads(tiles_.plan(contraction.root));
    steps_.push_back(
        SplitStep{number(plan), 0, total, {threads, tiles_.value(plan.vectors)}, true});
    steps_.push_back(ComputeAtStep{number(plan), contraction.stage.value, 0});
  }

  void write_elements(const StagePlan& plan) {
    steps_.push_back(SplitStep{number(plan),
                               0,
                               stage(plan).num_elements(),
                               {tiles_.value(plan.elements), tiles_.value(plan.threads)},
                               true});
    bind(plan, 1, false);
    write_unroll(plan);
  }

  void write_rows(const StagePlan& plan) {
    const Stage& s = stage(plan);
    int64_t rows = 1, rest = 1;
    for (size_t a = 0; a < s.axes.size(); ++a)
      (static_cast<int>(a) < plan.row_axes ? rows : rest) *= s.axes[a].extent;
    steps_.push_back(SplitStep{number(plan), 0, rows, {tiles_.value(plan.elements)}, true});
    steps_.push_back(
        SplitStep{number(plan), plan.row_axes, rest, {tiles_.value(plan.threads)}, true});
    bind(plan, 1, false);
  }

  void write_row_reduction(const StagePlan& plan) {
    const int64_t threads = tiles_.value(tiles_.plan(plan.root).threads);
    const int first = static_cast<int>(stage(plan).axes.size());
    steps_.push_back(SplitStep{number(plan), first, stage(plan).reduce_size(), {threads}, true});
    write_at(plan, 1);
    annotate(plan, first + 1, Annotation::kThreadX);
  }

  const Sketch& sketch_;
  const GpuTiles tiles_;
  std::vector<Step> steps_;
};

}  // namespace

std::vector<Step> steps_of(const Space& space, const Candidate& candidate) {
  return StepWriter(space, candidate).write();
}

}  // namespace pruner::ansor
