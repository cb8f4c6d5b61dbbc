// The loop nest of a GPU candidate.
#include <algorithm>
#include <numeric>

#include "space/gpu/space.h"
#include "space/gpu/tiles.h"

namespace pruner {
namespace {

class GpuNestMaker {
 public:
  GpuNestMaker(const Sketch& sketch, const Candidate& candidate)
      : sketch_(sketch), tiles_(sketch, candidate) {}

  LoopNest make() {
    nest_.dag = &sketch_.dag;
    nest_.tables = sketch_.tables.get();
    nest_.stages.resize(sketch_.plans.size());
    for (size_t p = sketch_.plans.size(); p-- > 0;) {  // roots before what hangs in them
      const StagePlan& plan = sketch_.plans[p];
      NestStage& out = nest_.stages[p];
      out.stage = plan.stage;
      out.scope = stage(plan).output ? Scope::kArgument : Scope::kWorkspace;
      for (const Iterator& axis : stage(plan).axes) out.extents.push_back(axis.extent);
      switch (plan.role) {
        case StageRole::kBlockTile: make_block_tile(plan, out); break;
        case StageRole::kThreadTile: make_thread_tile(plan, out); break;
        case StageRole::kSharedTile: make_shared_tile(plan, out); break;
        case StageRole::kElements: make_elements(plan, out); break;
        case StageRole::kElement: make_element(plan, out); break;
        case StageRole::kRows: make_rows(plan, out); break;
        case StageRole::kRowReduction: make_row_reduction(plan, out); break;
        default: break;
      }
    }
    return std::move(nest_);
  }

 private:
  const Stage& stage(const StagePlan& plan) const { return sketch_.dag[plan.stage]; }
  const NestStage& nest(StageId id) const {
    return nest_
        .stages[static_cast<size_t>(sketch_.tables->plan_of[static_cast<size_t>(id.value)])];
  }

  static void push(NestStage& out, int axis, int64_t extent, int64_t step, LoopKind kind) {
    if (extent > 1) out.loops.push_back({axis, extent, step, kind, -1, false});
  }

  // A root's loops before those of one thread.
  static int thread_depth(const NestStage& root) {
    const auto of_thread = [](const NestLoop& loop) {
      return loop.kind != LoopKind::kBlock && loop.kind != LoopKind::kThread;
    };
    return static_cast<int>(std::ranges::find_if(root.loops, of_thread) - root.loops.begin());
  }

  // ---- contractions: block | thread || chunks | outer of the reduction | virtual threads | outer
  // | inner of the reduction | inner

  void push_outer(const StagePlan& root, NestStage& out) {
    for (const GpuAxisPlan& a : root.tiles) {
      const int64_t thread_tile = tiles_.outer(a) * tiles_.inner(a);
      push(out, a.axis, tiles_.vthreads(a), tiles_.threads(a) * thread_tile, LoopKind::kUnroll);
    }
    for (const GpuAxisPlan& a : root.tiles)
      push(out, a.axis, tiles_.outer(a), tiles_.inner(a), LoopKind::kSerial);
  }
  void push_inner(const StagePlan& plan, NestStage& out) {
    for (const GpuAxisPlan& a : plan.tiles)
      push(out, a.axis, tiles_.inner(a), 1, LoopKind::kSerial);
  }

  void make_block_tile(const StagePlan& plan, NestStage& out) {
    for (const GpuAxisPlan& a : plan.tiles) {
      const int64_t extent = out.extents[static_cast<size_t>(a.axis)], block = tiles_.block(a);
      push(out, a.axis, divide_up(extent, block), block, LoopKind::kBlock);
    }
    for (const GpuAxisPlan& a : plan.tiles)
      push(out, a.axis, tiles_.threads(a), tiles_.outer(a) * tiles_.inner(a), LoopKind::kThread);
    push_outer(plan, out);
    push_inner(plan, out);
  }

  void make_thread_tile(const StagePlan& plan, NestStage& out) {
    const StagePlan& root = tiles_.plan(plan.root);
    const Stage& s = stage(plan);
    out.at = plan.root;
    out.depth = thread_depth(nest(plan.root));
    out.scope = Scope::kLocal;
    out.unroll_steps = tiles_.value(plan.unroll, 0);
    out.double_buffer = tiles_.value(plan.double_buffer) == 2;
    out.extents.assign(s.axes.size(), 1);
    for (const GpuAxisPlan& a : root.tiles) {
      out.extents[static_cast<size_t>(a.axis)] =
          tiles_.vthreads(a) * tiles_.outer(a) * tiles_.inner(a);
    }
    for (const GpuAxisPlan& a : plan.tiles) {
      const int64_t extent = s.reduce_axes[static_cast<size_t>(a.axis) - s.axes.size()].extent;
      const int64_t chunk = tiles_.block(a);
      push(out, a.axis, divide_up(extent, chunk), chunk, LoopKind::kSerial);
    }
    out.chunk_loops = static_cast<int>(out.loops.size());
    for (const GpuAxisPlan& a : plan.tiles)
      push(out, a.axis, tiles_.outer(a), tiles_.inner(a), LoopKind::kSerial);
    push_outer(root, out);
    push_inner(plan, out);
    push_inner(root, out);
  }

  void make_shared_tile(const StagePlan& plan, NestStage& out) {
    const StagePlan& contraction = tiles_.reader_of(plan);
    out.at = contraction.stage;
    out.depth = nest(contraction.stage).chunk_loops;
    out.scope = Scope::kShared;
    out.extents = tiles_.shared_box(plan);
    const int64_t total =
        std::accumulate(out.extents.begin(), out.extents.end(), int64_t{1}, std::multiplies<>());
    push_fused(out,
               total,
               tiles_.block_threads(tiles_.plan(contraction.root)),
               tiles_.value(plan.vectors));
  }

  // A box of `total` elements by all threads, each `vector` at once.
  static void push_fused(NestStage& out, int64_t total, int64_t threads, int64_t vector) {
    const int64_t round = threads * vector;
    push(out, kFusedSpatial, divide_up(total, round), round, LoopKind::kSerial);
    push(out, kFusedSpatial, threads, vector, LoopKind::kThread);
    push(out, kFusedSpatial, vector, 1, LoopKind::kVectorize);
  }

  // ---- one thread an element

  void make_elements(const StagePlan& plan, NestStage& out) {
    const int64_t total = stage(plan).num_elements();
    const int64_t threads = tiles_.value(plan.threads), elements = tiles_.value(plan.elements);
    out.unroll_steps = tiles_.value(plan.unroll, 0);
    push(out,
         kFusedSpatial,
         divide_up(total, threads * elements),
         threads * elements,
         LoopKind::kBlock);
    push(out, kFusedSpatial, threads, 1, LoopKind::kThread);
    push(out, kFusedSpatial, elements, threads, LoopKind::kSerial);
    push_reduction(plan, out);
  }

  void push_reduction(const StagePlan& plan, NestStage& out) {
    const Stage& s = stage(plan);
    for (size_t r = 0; r < s.reduce_axes.size(); ++r) {
      const int axis = static_cast<int>(s.axes.size() + r);
      push(out, axis, s.reduce_axes[r].extent, 1, LoopKind::kSerial);
    }
  }

  void make_element(const StagePlan& plan, NestStage& out) {
    out.at = plan.root;
    out.depth = static_cast<int>(nest(plan.root).loops.size());
    out.scope = Scope::kLocal;
    out.unroll_steps = nest(plan.root).unroll_steps;
    out.extents.assign(out.extents.size(), 1);
    push_reduction(plan, out);
  }

  // ---- rows, each with a few threads

  void make_rows(const StagePlan& plan, NestStage& out) {
    const Stage& s = stage(plan);
    out.row_axes = plan.row_axes;
    int64_t rows = 1, rest = 1;
    for (size_t a = 0; a < s.axes.size(); ++a)
      (static_cast<int>(a) < plan.row_axes ? rows : rest) *= s.axes[a].extent;
    const int64_t threads = tiles_.value(plan.threads), block_rows = tiles_.value(plan.elements);
    push(out, kFusedRows, divide_up(rows, block_rows), block_rows, LoopKind::kBlock);
    push(out, kFusedRows, block_rows, 1, LoopKind::kThread);
    push(out, kFusedSpatial, threads, 1, LoopKind::kThread);
    push(out, kFusedSpatial, divide_up(rest, threads), threads, LoopKind::kSerial);
  }

  void make_row_reduction(const StagePlan& plan, NestStage& out) {
    const StagePlan& root = tiles_.plan(plan.root);
    const int64_t threads = tiles_.value(root.threads), terms = stage(plan).reduce_size();
    out.at = plan.root;
    out.depth = thread_depth(nest(plan.root));
    out.scope = Scope::kShared;
    out.row_axes = root.row_axes;
    out.extents.assign(out.extents.size(), 1);
    push(out, kFusedReduce, divide_up(terms, threads), threads, LoopKind::kSerial);
    push(out, kFusedReduce, threads, 1, LoopKind::kThread);
  }

  const Sketch& sketch_;
  const GpuTiles tiles_;
  LoopNest nest_;
};

}  // namespace

LoopNest make_gpu_loop_nest(const Sketch& sketch, const Candidate& candidate) {
  return GpuNestMaker(sketch, candidate).make();
}

}  // namespace pruner
