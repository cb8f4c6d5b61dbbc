// make_loop_nest: decisions -> loops, by the plans of the sketch.
#include <algorithm>

#include "space/draw_axis.h"
#include "space/gpu/space.h"
#include "space/read_box.h"
#include "space/sketch_rule.h"
#include "space/space.h"
#include "support/check.h"

namespace pruner {
namespace {

class NestMaker {
 public:
  NestMaker(const Sketch& sketch, const Candidate& candidate)
      : sketch_(sketch), candidate_(candidate) {
    nest_.dag = &sketch.dag;
    nest_.tables = sketch.tables.get();
    nest_.stages.resize(sketch.plans.size());
    depths_.resize(sketch.plans.size());
  }

  /// What one visit computes of each axis of a root that is inside of another.
  std::vector<int64_t> visited(const StagePlan& plan) {
    make();
    const Location location = static_cast<Location>(value(plan.location, 0));
    return region(plan.stage, plan.inside, depth_at(plan.inside, location));
  }

  LoopNest make() {
    // Consumers first: an attached stage computes what they read.
    for (int p = static_cast<int>(sketch_.plans.size()) - 1; p >= 0; --p) {
      const StagePlan& plan = sketch_.plans[p];
      NestStage& out = nest_.stages[p];
      out.stage = plan.stage;
      switch (plan.role) {
        case StageRole::kTileRoot: make_root(plan, out, depths_[p]); break;
        case StageRole::kAnchor: make_anchor(plan, out); break;
        case StageRole::kAttached: make_attached(plan, out); break;
        case StageRole::kRowPart: make_row_part(plan, out); break;
        case StageRole::kTransform: make_transform(plan, out); break;
        case StageRole::kTransformPart: make_transform_part(plan, out); break;
        default: CHECK(false) << "a GPU's stage in a CPU's sketch";
      }
    }
    return nest_;
  }

 private:
  int64_t value(DecisionRef ref, int64_t fixed) const {
    return ref == kFixed ? fixed : candidate_.decisions[static_cast<size_t>(ref)];
  }
  const Stage& stage(StageId id) const { return sketch_.dag[id]; }
  const NestStage& nest(StageId id) const {
    return nest_.stages[sketch_.tables->plan_of[id.value]];
  }

  static void push(std::vector<NestLoop>& loops, NestLoop loop) {
    if (loop.extent > 1 || loop.kind == LoopKind::kVectorize) loops.push_back(loop);
  }

  // Number of loops of a root after its parallel and after its middle level, and in all its levels.
  struct Depths {
    int parallel = 0, middle = 0, inner = 0;
  };

  // The axes of a root in the order of one level.
  template <typename Fn>
  void for_axes(const StagePlan& plan, bool vector_first, const Fn& fn) {
    if (vector_first) {
      for (const AxisPlan& axis : plan.axes) {
        if (axis.vector) fn(axis);
      }
    }
    for (const AxisPlan& axis : plan.axes) {
      if (!vector_first || !axis.vector) fn(axis);
    }
  }

  void make_root(const StagePlan& plan, NestStage& out, Depths& depths) {
    const Stage& s = stage(plan.stage);
    out.scope = s.output ? Scope::kArgument : Scope::kWorkspace;
    out.streaming = value(plan.streaming, 0) == 1;
    for (const Iterator& axis : s.axes) out.extents.push_back(axis.extent);
    const Location location = static_cast<Location>(value(plan.location, 0));
    const bool inside = location != Location::kRoot;
    if (inside) attach(out, plan.inside, location);
    const auto registers = [&](const AxisPlan& a) {
      return value(a.registers, 1) * (a.vector ? plan.lanes : 1);
    };
    const bool summed_once = std::ranges::none_of(sketch_.plans, [&](const StagePlan& other) {
      return other.cache_tile && other.root == plan.stage;
    });
    // Whether the blocks of a tile that is longer than its axis overlap: one loop runs over them.
    const auto blocks_overlap = [&](const AxisPlan& a, int64_t step) {
      const int64_t length = out.extents[static_cast<size_t>(a.axis)];
      return a.vector && plan.overlaps && summed_once && !inside && step > length &&
             registers(a) <= length && (value(a.middle, 1) == 1 || value(a.inner, 1) == 1);
    };
    for_axes(plan, value(plan.parallel_order, 0) == 1, [&](const AxisPlan& a) {
      const int64_t unit = registers(a);
      const int64_t length = out.extents[static_cast<size_t>(a.axis)];
      const int64_t units = (length + unit - 1) / unit;
      const int64_t tile = std::min(value(a.middle, 1) * value(a.inner, 1), units);
      const int64_t step = tile * unit;
      if (blocks_overlap(a, step)) return;
      const bool masked = a.vector && !(plan.overlaps && step <= length);
      const int64_t whole = masked ? units * unit : length;
      if (inside) out.extents[static_cast<size_t>(a.axis)] = whole;
      const int64_t extent = (whole + step - 1) / step;
      push(out.loops,
           {a.axis, extent, step, LoopKind::kSerial, whole % step == 0 ? -1 : whole - step, false});
    });
    depths.parallel = static_cast<int>(out.loops.size());
    if (!inside) out.parallel_loops = depths.parallel;
    const bool vector_first = value(plan.order, 0) == 1;
    const auto push_level = [&](const AxisPlan& a, int64_t extent, int64_t step) {
      const int64_t length = out.extents[static_cast<size_t>(a.axis)];
      const bool overlap = extent > 1 && blocks_overlap(a, extent * step);
      if (overlap) extent = (length + step - 1) / step;
      push(out.loops,
           {a.axis, extent, step, LoopKind::kSerial, overlap ? length - step : -1, false});
    };
    for_axes(plan, vector_first, [&](const AxisPlan& a) {
      push_level(a, value(a.middle, 1), value(a.inner, 1) * registers(a));
    });
    depths.middle = static_cast<int>(out.loops.size());
    for_axes(plan, vector_first, [&](const AxisPlan& a) {
      push_level(a, value(a.inner, 1), registers(a));
    });
    depths.inner = static_cast<int>(out.loops.size());
    push_register_loops(plan, plan, out.loops, LoopKind::kUnroll);
  }

  // The register tile of a root's plan, for the root or (the same axes) its anchor.
  void push_register_loops(const StagePlan& root,
                           const StagePlan& plan,
                           std::vector<NestLoop>& loops,
                           LoopKind rows) {
    for (const AxisPlan& a : root.axes) {
      if (!a.vector) push(loops, {a.axis, value(a.registers, 1), 1, rows, -1, false});
    }
    for (const AxisPlan& a : root.axes) {
      if (!a.vector) continue;
      push(loops, {a.axis, value(a.registers, 1), plan.lanes, rows, -1, false});
      push(loops, {a.axis, plan.lanes, 1, LoopKind::kVectorize, -1, false});
    }
  }

  void make_anchor(const StagePlan& plan, NestStage& out) {
    const Stage& s = stage(plan.stage);
    const int root_index = sketch_.tables->plan_of[plan.root.value];
    const StagePlan& root = sketch_.plans[root_index];
    NestStage& root_nest = nest_.stages[root_index];
    const Depths& depths = depths_[root_index];
    out.at = plan.root;
    out.unroll_steps = value(plan.unroll, 16);
    out.prefetch_bytes = value(plan.prefetch, 0);
    out.extents.assign(s.axes.size(), 1);
    int64_t block = 1;  // of the vector axis in registers
    for (const AxisPlan& a : root.axes) {
      const int64_t unit = value(a.registers, 1) * (a.vector ? root.lanes : 1);
      if (a.vector) block = unit;
      out.extents[a.axis] = unit * (plan.cache_tile ? value(a.inner, 1) : 1);
    }
    const int spatial = static_cast<int>(s.axes.size());
    const int reduce = static_cast<int>(s.reduce_axes.size());
    const auto reduce_extent = [&](int r) { return s.reduce_axes[r].extent; };
    if (plan.cache_tile) {
      // The root's inner loops move into the anchor; the root then copies the finished tile out.
      out.depth = depths.middle;
      out.scope = Scope::kLocal;
      const int chunked = plan.chunk_axis - spatial;
      const int64_t chunk = value(plan.chunk, reduce_extent(chunked));
      const bool chunks = chunk < reduce_extent(chunked);
      if (chunks) {
        push(out.loops,
             {plan.chunk_axis,
              (reduce_extent(chunked) + chunk - 1) / chunk,
              chunk,
              LoopKind::kSerial,
              -1,
              false});
      }
      out.loops.insert(out.loops.end(),
                       root_nest.loops.begin() + depths.middle,
                       root_nest.loops.begin() + depths.inner);
      for (int r = 0; r < reduce; ++r) {
        if (r != chunked) {
          push(out.loops, {spatial + r, reduce_extent(r), 1, LoopKind::kSerial, -1, false});
        } else {
          push(out.loops,
               {spatial + r,
                chunk,
                1,
                LoopKind::kSerial,
                -1,
                chunks && reduce_extent(r) % chunk != 0});
        }
      }
      // The copy-out runs over the whole tile: its register rows become ordinary loops.
      for (NestLoop& loop : root_nest.loops) {
        if (loop.kind == LoopKind::kUnroll) loop.kind = LoopKind::kSerial;
      }
    } else {
      out.depth = depths.inner;
      out.scope = Scope::kRegister;
      for (int r = 0; r < reduce; ++r)
        push(out.loops, {spatial + r, reduce_extent(r), 1, LoopKind::kSerial, -1, false});
    }
    push_register_loops(root, plan, out.loops, LoopKind::kUnroll);
    for (const StagePlan::Packed& packed : plan.packed) {
      nest_.packed.push_back({packed.operand, PackSpec{packed.order, {{packed.dim, block}}, 0}});
    }
  }

  // Extents of the part of `id` that one visit of `at`'s loops inside the first `depth` reads.
  std::vector<int64_t> region(StageId id, StageId at, int depth) const {
    ReadBox box(stage(id), true);
    for (const StageId reader : sketch_.tables->consumers[id.value]) {
      const std::vector<int64_t> spans = iterator_spans(reader, at, depth);
      for (const Access& access : sketch_.tables->accesses[reader.value]) {
        if (access.producer == id) box.add(access, spans);
      }
    }
    return box.extents();
  }

  // How far each iterator of `id` runs in one visit of `at`'s loops inside the first `depth`.
  std::vector<int64_t> iterator_spans(StageId id, StageId at, int depth) const {
    const Stage& s = stage(id);
    std::vector<int64_t> spans;
    if (id == at) {
      spans.assign(s.axes.size() + s.reduce_axes.size(), 1);
      const NestStage& n = nest(id);
      for (size_t i = static_cast<size_t>(depth); i < n.loops.size(); ++i) {
        spans[n.loops[i].axis] += (n.loops[i].extent - 1) * n.loops[i].step;
      }
    } else {
      spans = region(id, at, depth);
      for (const Iterator& axis : s.reduce_axes) spans.push_back(axis.extent);
    }
    return spans;
  }

  // Loops over a box of the stage: serial rows, then the vector loop (or the lanes that are
  // folded).
  void push_box_loops(const StagePlan& plan, NestStage& out) {
    const Stage& s = stage(plan.stage);
    const int vector = vector_axis(s);
    const int spatial = static_cast<int>(s.axes.size());
    const bool fold = s.is_reduction() && plan.lanes > 1 && folds_lanes(plan.stage);
    for (int a = 0; a < spatial; ++a) {
      if (a != vector || fold)
        push(out.loops, {a, out.extents[a], 1, LoopKind::kSerial, -1, false});
    }
    if (fold) {
      const int64_t width = s.reduce_axes[0].extent;
      push(out.loops, {spatial, width / plan.lanes, plan.lanes, LoopKind::kUnroll, -1, false});
      push(out.loops, {spatial, plan.lanes, 1, LoopKind::kVectorize, -1, false});
      return;
    }
    if (vector >= 0) {
      const int64_t vectors = (out.extents[vector] + plan.lanes - 1) / plan.lanes;
      push(out.loops, {vector, vectors, plan.lanes, LoopKind::kSerial, -1, false});
    }
    for (int r = 0; r < static_cast<int>(s.reduce_axes.size()); ++r) {
      push(out.loops, {spatial + r, s.reduce_axes[r].extent, 1, LoopKind::kSerial, -1, false});
    }
    if (vector >= 0 && plan.lanes > 1)
      push(out.loops, {vector, plan.lanes, 1, LoopKind::kVectorize, -1, false});
  }

  bool folds_lanes(StageId id) const {
    for (const StagePlan& plan : sketch_.plans) {
      if (plan.role == StageRole::kRowPart && plan.root == id) return true;
    }
    return false;
  }

  void make_attached(const StagePlan& plan, NestStage& out) {
    const Stage& s = stage(plan.stage);
    const Location location = static_cast<Location>(value(plan.location, 0));
    if (location == Location::kRoot) {
      out.scope = s.output ? Scope::kArgument : Scope::kWorkspace;
      for (const Iterator& axis : s.axes) out.extents.push_back(axis.extent);
      push_box_loops(plan, out);
      // Spatial loops run in parallel up to the first that is vectorised or a reduction.
      const int spatial = static_cast<int>(s.axes.size());
      while (out.parallel_loops < static_cast<int>(out.loops.size()) &&
             out.loops[out.parallel_loops].axis < spatial &&
             out.loops[out.parallel_loops].kind == LoopKind::kSerial) {
        ++out.parallel_loops;
      }
      return;
    }
    attach(out, plan.root, location);
    push_box_loops(plan, out);
  }

  // Computes a stage where a root's loops read it, into a buffer of what they read there.
  void attach(NestStage& out, StageId root, Location location) const {
    out.at = root;
    out.depth = depth_at(root, location);
    out.scope = Scope::kLocal;
    out.extents = region(out.stage, out.at, out.depth);
  }

  int depth_at(StageId root, Location location) const {
    const Depths& depths = depths_[sketch_.tables->plan_of[root.value]];
    return location == Location::kAfterParallel ? depths.parallel : depths.middle;
  }

  void make_row_part(const StagePlan& plan, NestStage& out) {
    const Stage& s = stage(plan.stage);
    const NestStage& fold = nest(plan.root);
    out.at = plan.root;
    out.scope = Scope::kRegister;
    // Inside the spatial loops of the fold: one row at a time.
    while (out.depth < static_cast<int>(fold.loops.size()) &&
           fold.loops[out.depth].axis < static_cast<int>(stage(plan.root).axes.size())) {
      ++out.depth;
    }
    out.extents.assign(s.axes.size(), 1);
    const int lane_axis = static_cast<int>(s.axes.size()) - 1;
    const int64_t width = s.axes[lane_axis].extent;
    out.extents[lane_axis] = width;
    const int spatial = static_cast<int>(s.axes.size());
    for (int r = 0; r < static_cast<int>(s.reduce_axes.size()); ++r) {
      push(out.loops, {spatial + r, s.reduce_axes[r].extent, 1, LoopKind::kSerial, -1, false});
    }
    push(out.loops, {lane_axis, width / plan.lanes, plan.lanes, LoopKind::kUnroll, -1, false});
    push(out.loops, {lane_axis, plan.lanes, 1, LoopKind::kVectorize, -1, false});
  }

  // The unrolled tile and the vectors in it.
  static void push_transform_tile(const Stage& s, const StagePlan& plan, NestStage& out) {
    for (const auto& [axis, tile] : s.unrolled) {
      const bool ragged = s.axes[static_cast<size_t>(axis)].extent % tile != 0;
      out.loops.push_back({axis, tile, 1, LoopKind::kUnroll, -1, ragged});
    }
    const int vector = vector_axis(s);
    push(out.loops, {vector, plan.lanes, 1, LoopKind::kVectorize, -1, false});
  }

  // Tiles and vectors run in parallel; parts of a tile are computed before it is.
  void make_transform(const StagePlan& plan, NestStage& out) {
    const Stage& s = stage(plan.stage);
    out.scope = s.output ? Scope::kArgument : Scope::kWorkspace;
    for (int a = 0; a < static_cast<int>(s.axes.size()); ++a) {
      const int64_t extent = s.axes[static_cast<size_t>(a)].extent;
      out.extents.push_back(extent);
      int64_t step = a == vector_axis(s) ? plan.lanes : 1;
      for (const auto& [axis, tile] : s.unrolled) step = axis == a ? tile : step;
      push(out.loops, {a, (extent + step - 1) / step, step, LoopKind::kSerial, -1, false});
    }
    out.parallel_loops = static_cast<int>(out.loops.size());
    push_transform_tile(s, plan, out);
  }

  void make_transform_part(const StagePlan& plan, NestStage& out) {
    const Stage& s = stage(plan.stage);
    out.at = plan.root;
    out.depth = nest(plan.root).parallel_loops;
    out.scope = Scope::kRegister;
    out.extents.assign(s.axes.size(), 1);
    for (const auto& [axis, tile] : s.unrolled) out.extents[static_cast<size_t>(axis)] = tile;
    out.extents[static_cast<size_t>(vector_axis(s))] = plan.lanes;
    push_transform_tile(s, plan, out);
  }

  const Sketch& sketch_;
  const Candidate& candidate_;
  LoopNest nest_;
  std::vector<Depths> depths_;
};

}  // namespace

std::vector<int64_t> visited_extents(const Sketch& sketch,
                                     const StagePlan& plan,
                                     const Candidate& candidate) {
  const bool inside =
      plan.location != kFixed && candidate.decisions[static_cast<size_t>(plan.location)] !=
                                     static_cast<int32_t>(Location::kRoot);
  if (inside) return NestMaker(sketch, candidate).visited(plan);
  std::vector<int64_t> extents;
  for (const Iterator& axis : sketch.dag[plan.stage].axes) extents.push_back(axis.extent);
  return extents;
}

LoopNest make_loop_nest(const Space& space, const Candidate& candidate) {
  if (space.target.is_gpu()) return make_gpu_loop_nest(space[candidate.sketch], candidate);
  return NestMaker(space[candidate.sketch], candidate).make();
}

const NestStage& LoopNest::of(StageId id) const {
  for (const NestStage& stage : stages) {
    if (stage.stage == id) return stage;
  }
  CHECK(false) << "stage " << id.value << " has no loops";
  return stages[0];
}

}  // namespace pruner
