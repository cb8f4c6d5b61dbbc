#include "analysis/nest_loops.h"

#include <algorithm>

#include "analysis/warp_lanes.h"
#include "space/factors.h"
#include "space/plan.h"
#include "space/read_box.h"
#include "support/ceil_div.h"

namespace pruner {

namespace {

bool is_gpu_nest(const LoopNest& nest) {
  for (const NestStage& stage : nest.stages) {
    for (const NestLoop& loop : stage.loops) {
      if (loop.kind == LoopKind::kBlock || loop.kind == LoopKind::kThread) return true;
    }
  }
  return false;
}

// The iterators that a fused axis stands for, from first to last.
std::pair<int, int> fused_axes(const NestStage& stage, const Stage& s, int axis) {
  const int rank = static_cast<int>(s.axes.size());
  if (axis == kFusedSpatial) return {stage.row_axes, rank};
  if (axis == kFusedRows) return {0, stage.row_axes};
  return {rank, rank + static_cast<int>(s.reduce_axes.size())};
}

int64_t whole_extent(const Stage& s, int i) {
  const auto rank = static_cast<int>(s.axes.size());
  return i < rank ? s.axes[i].extent : s.reduce_axes[i - rank].extent;
}

// Elements of iterator `i` in the box that the stage computes at one visit.
int64_t box_extent(const NestStage& stage, const Stage& s, int i) {
  return i < static_cast<int>(s.axes.size()) ? stage.extents[i] : whole_extent(s, i);
}

// The tiles of a fused axis's iterator in that box, and the elements of a tile.
struct FusedExtent {
  int64_t tiles, tile;
};
FusedExtent fused_extent(const NestStage& stage, const Stage& s, int i) {
  const int64_t extent = box_extent(stage, s, i), tile = s.tile(i);
  return {ceil_div(extent, tile), tile};
}

}  // namespace

NestLoops::NestLoops(const LoopNest& nest)
    : nest_(nest), gpu_(is_gpu_nest(nest)), stages_(nest.stages.size()) {
  groups_.reserve(16 * nest.stages.size());
  size_t loops = 0;
  for (size_t p = 0; p < nest.stages.size(); ++p) {
    stages_[p].first_loop = static_cast<int>(loops);
    loops += nest.stages[p].loops.size();
  }
  group_of_.assign(loops, -1);
  spans_.reserve(96 * nest.stages.size());
  moves_.reserve(96 * nest.stages.size());
  if (gpu_) lanes_.reserve(256 * nest.stages.size());
  // The stage that a stage hangs in, and the readers there, come after the stage in the nest.
  for (int p = static_cast<int>(nest.stages.size()); p-- > 0;) make(p);
}

int NestLoops::plan_of(StageId id) const { return nest_.tables->plan_of[id]; }

void NestLoops::make(int p) {
  StageLoops& made = stages_[p];
  const NestStage& stage = nest_.stages[p];
  const Stage& s = (*nest_.dag)[stage.stage];
  made.iterators = static_cast<int>(s.axes.size() + s.reduce_axes.size());
  made.root = p;
  made.first = static_cast<int>(groups_.size());
  made.first_move = static_cast<int>(moves_.size());
  if (stage.at.valid()) inherit(p);
  push_own(p);
  made.first_span = static_cast<int>(spans_.size());
  spans_.resize(spans_.size() + static_cast<size_t>((made.count + 1) * made.iterators), 1);
  span_own(p);
  if (gpu_) place_lanes(p);
  if (made.inherited == 0) return;
  for (const StageId id : nest_.tables->consumers[stage.stage]) {
    const int reader = plan_of(id);
    if (reader < 0 || of(reader).count < made.inherited) continue;
    const LoopGroup& last = groups(reader)[static_cast<size_t>(made.inherited) - 1];
    if (last.loop.identity != groups(p)[static_cast<size_t>(made.inherited) - 1].loop.identity)
      continue;
    for (const Access& access : nest_.tables->accesses[id]) {
      if (access.producer == stage.stage) span_inherited(p, access, reader);
    }
  }
}

void NestLoops::inherit(int p) {
  StageLoops& made = stages_[p];
  const NestStage& stage = nest_.stages[p];
  const int at = plan_of(stage.at);
  made.root = of(at).root;
  made.inherited = of(at).inherited;
  for (int i = 0; i < stage.depth; ++i)
    made.inherited = std::max(made.inherited, group_of(at, static_cast<size_t>(i)) + 1);
  made.count = made.inherited;
  for (int g = 0; g < made.inherited; ++g) {
    LoopGroup group = groups_[of(at).first + g];
    group.moved = 0;
    groups_.push_back(group);
  }
  moves_.resize(moves_.size() + static_cast<size_t>(made.inherited * made.iterators));
}

int NestLoops::push_group(int p, LoopRole role) {
  StageLoops& made = stages_[p];
  groups_.push_back({{role, identities_++, 1}, 0, false, 0});
  moves_.resize(moves_.size() + static_cast<size_t>(made.iterators));
  return made.count++;
}

// Adds the stage's own loop to a group: its extent, and what it moves.
void NestLoops::add_loop(int p, int group, size_t number) {
  const NestStage& stage = nest_.stages[p];
  const Stage& s = (*nest_.dag)[stage.stage];
  const NestLoop& loop = stage.loops[number];
  LoopGroup& made = groups_[of(p).first + group];
  group_of(p, number) = group;
  if (group >= of(p).inherited) made.loop.extent *= loop.extent;
  ++made.parts;
  const std::span<int64_t> moves = own_moves(p, group);
  const auto rank = static_cast<int>(s.axes.size());
  if (loop.axis >= 0) {
    made.moved |= 1u << loop.axis;
    made.reduces = made.reduces || loop.axis >= rank;
    std::ranges::fill(moves, 0);
    moves[loop.axis] = loop.step;
    return;
  }
  made.reduces = made.reduces || loop.axis == kFusedReduce;
  std::ranges::fill(moves, 0);
  const auto [first, last] = fused_axes(stage, s, loop.axis);
  int64_t inner = 1;
  for (int i = last; i-- > first;) {
    const auto [extent, tile] = fused_extent(stage, s, i);
    if (extent > 1) made.moved |= 1u << i;
    moves[i] = loop.step / inner % extent * tile;
    inner *= extent;
  }
}

// A kernel's blocks, virtual threads and threads first, each as one; a CPU's parallel loops as one.
void NestLoops::push_own(int p) {
  const NestStage& stage = nest_.stages[p];
  const bool root = !stage.at.valid();
  const bool vthreads = gpu_ && stage.structure != &kThreadTransform;
  const auto role_of = [&](size_t i) {
    switch (stage.loops[i].kind) {
      case LoopKind::kBlock: return LoopRole::kBlockX;
      case LoopKind::kThread: return LoopRole::kThreadX;
      case LoopKind::kParallel: return LoopRole::kParallel;
      case LoopKind::kVectorize: return LoopRole::kVectorize;
      case LoopKind::kDot:
      case LoopKind::kMatrix: return LoopRole::kUnroll;
      case LoopKind::kUnroll: return vthreads ? LoopRole::kVThread : LoopRole::kUnroll;
      case LoopKind::kSerial: break;
    }
    return static_cast<int>(i) < stage.parallel_loops ? LoopRole::kParallel : LoopRole::kSerial;
  };
  // Tiles keep bindings of extent 1, as Ansor's programs do.
  const bool tiled = vthreads && std::ranges::any_of(stage.loops, [](const NestLoop& loop) {
                       return loop.axis >= 0 && loop.kind != LoopKind::kSerial;
                     });
  const auto push_all = [&](LoopRole role) {
    int group = tiled && is_binding(role) ? push_group(p, role) : -1;
    for (size_t i = 0; i < stage.loops.size(); ++i) {
      if (role_of(i) != role) continue;
      if (group < 0) group = push_group(p, role);
      add_loop(p, group, i);
    }
  };
  if (root) {
    for (const LoopRole role :
         {LoopRole::kBlockX, LoopRole::kVThread, LoopRole::kThreadX, LoopRole::kParallel}) {
      push_all(role);
    }
  }
  for (size_t i = 0; i < stage.loops.size(); ++i) {
    if (group_of(p, i) >= 0) continue;
    const LoopRole role = role_of(i);
    // Virtual threads, and threads that reduce a row, are the kernel's again.
    const bool again = role == LoopRole::kVThread ||
                       (role == LoopRole::kThreadX && stage.loops[i].axis == kFusedReduce);
    int group = -1;
    for (int g = 0; again && g < of(p).inherited; ++g) {
      if (groups(p)[g].loop.role == role) group = g;
    }
    add_loop(p, group >= 0 ? group : push_group(p, role), i);
  }
}

bool NestLoops::fetched_together(int p) const {
  const NestStage& stage = nest_.stages[p];
  return std::ranges::any_of(stage.loops, [&](const NestLoop& loop) {
    return stage.at.valid() && loop.kind == LoopKind::kThread && loop.axis == kFusedSpatial;
  });
}

// Spans by the stage's own loops, from the innermost outwards; a fused axis runs over its box in
// row-major order.
void NestLoops::span_own(int p) {
  const NestStage& stage = nest_.stages[p];
  const Stage& s = (*nest_.dag)[stage.stage];
  int64_t reach[3] = {1, 1, 1};  // reach along fused spatial, reduce and row axes
  for (int g = of(p).count; g-- > 0;) {
    const std::span<int64_t> spans = own_spans(p, g);
    std::ranges::copy(own_spans(p, g + 1), spans.begin());
    for (size_t i = 0; i < stage.loops.size(); ++i) {
      if (group_of(p, i) != g) continue;
      const NestLoop& loop = stage.loops[i];
      const int64_t way = (loop.extent - 1) * loop.step;
      if (loop.axis >= 0) {
        int64_t& span = spans[loop.axis];
        span = std::min(span + way, whole_extent(s, loop.axis));
        continue;
      }
      int64_t& fused = reach[-1 - loop.axis];
      fused += way;
      const auto [first, last] = fused_axes(stage, s, loop.axis);
      int64_t inner = 1;
      for (int a = last; a-- > first;) {
        const auto [extent, tile] = fused_extent(stage, s, a);
        const int64_t reached = std::min(extent, (fused - 1) / inner + 1) * tile;
        spans[a] = std::min(reached, box_extent(stage, s, a));
        inner *= extent;
      }
    }
  }
}

// Returns the sums that a kernel's warps compute if stage `p` is these sums or their root, else
// null.
const NestStage* NestLoops::sums_of_warps(int p) const {
  const NestStage& one = nest_.stages[p];
  if (nest_.tables->mmas[one.stage]) return &one;
  for (const NestStage& stage : nest_.stages) {
    if (stage.at == one.stage && nest_.tables->mmas[stage.stage]) return &stage;
  }
  return nullptr;
}

// Lanes are numbered over the thread loops in row-major order; threads that are the kernel's own
// stand where the stage that reads this one there has them. Those of a warp that share a matrix of
// sums stand side by side in it, or in the rows that they write from shared memory.
void NestLoops::place_lanes(int p) {
  StageLoops& made = stages_[p];
  const NestStage& stage = nest_.stages[p];
  const Stage& s = (*nest_.dag)[stage.stage];
  made.first_lane = static_cast<int>(lanes_.size());
  lanes_.resize(lanes_.size() + static_cast<size_t>(kWarpLanes * made.iterators));
  for (const LoopGroup& group : groups(p)) {
    if (is_thread(group.loop.role))
      made.lanes = static_cast<int>(std::min<int64_t>(kWarpLanes, group.loop.extent));
  }
  const auto values = [&](int lane) {
    return lanes_.data() + made.first_lane + lane * made.iterators;
  };
  const auto own = [](const NestLoop& loop) { return loop.kind == LoopKind::kThread; };
  if (!stage.loops.empty() && stage.loops.back().kind == LoopKind::kVectorize)
    made.lane_width = static_cast<int>(stage.loops.back().extent);  // a space draws only vectors
  if (const NestStage* sums = sums_of_warps(p)) {
    const MmaContraction& c = *nest_.tables->mmas[sums->stage];
    const bool rows = sums->epilogue && !stage.at.valid();
    const int64_t run =
        rows ? epilogue_run(s.axes[static_cast<size_t>(c.n)].extent, dtype_bytes(s.dtype))
             : c.instruction->sum_fragment().run;
    const int64_t lanes_of_row = rows ? stage.block_extent(c.n) / run : kColumnLanes;
    for (int lane = 0; lane < made.lanes; ++lane) {
      values(lane)[c.m] += lane / lanes_of_row;
      values(lane)[c.n] += lane % lanes_of_row * run;
    }
    made.lanes_move |= 1u << c.m | 1u << c.n;
    if (rows) made.lane_width = static_cast<int>(run);
    return;
  }
  if (std::ranges::any_of(stage.loops, own)) {
    for (int lane = 0; lane < made.lanes; ++lane) {
      uint32_t rest = static_cast<uint32_t>(lane);  // divided in 32 bits: that is faster
      for (size_t i = stage.loops.size(); i-- > 0;) {
        const NestLoop& loop = stage.loops[i];
        if (!own(loop)) continue;
        const auto loop_extent = static_cast<uint32_t>(loop.extent);
        const uint32_t at = rest % loop_extent * static_cast<uint32_t>(loop.step);
        rest /= loop_extent;
        if (at == 0) continue;
        if (loop.axis >= 0) {
          values(lane)[loop.axis] += at;
          made.lanes_move |= 1u << loop.axis;
          continue;
        }
        const auto [first, last] = fused_axes(stage, s, loop.axis);
        uint32_t left = at;
        for (int a = last; left > 0 && a-- > first;) {
          const auto [tiles, tile] = fused_extent(stage, s, a);
          const auto extent = static_cast<uint32_t>(tiles);
          values(lane)[a] += left % extent * static_cast<uint32_t>(tile);
          made.lanes_move |= 1u << a;
          left /= extent;
        }
      }
    }
    return;
  }
  for (const StageId id : nest_.tables->consumers[stage.stage]) {
    const int reader = plan_of(id);
    if (reader <= p || of(reader).root != made.root) continue;
    for (const Access& access : nest_.tables->accesses[id]) {
      if (access.producer != stage.stage) continue;
      for (size_t d = 0; d < s.axes.size(); ++d) {
        if (!access.indices[d]) continue;
        for (const auto& [var, coefficient] : access.indices[d]->terms) {
          if ((lanes_move(reader) >> var.value & 1u) == 0) continue;
          made.lanes_move |= 1u << d;
          for (int lane = 0; lane < made.lanes; ++lane)
            values(lane)[d] += coefficient * this->lane(reader, lane)[var.value];
        }
      }
      return;
    }
  }
}

// Adds the spans and moves of the loops that the stage hangs in, by one read of the stage there.
void NestLoops::span_inherited(int p, const Access& access, int reader) {
  const NestStage& stage = nest_.stages[p];
  const Stage& s = (*nest_.dag)[stage.stage];
  const bool together = fetched_together(p);
  const int inside = of(reader).inherited;  // a kernel's bindings are outside of its chunks
  int blocks = 0;
  while (together && blocks < inside && is_block(groups(reader)[blocks].loop.role)) ++blocks;
  for (int g = 0; g < of(p).inherited; ++g) {
    LoopGroup& group = groups_[of(p).first + g];
    const bool of_all = together && g >= blocks;
    const auto from = spans(reader, of_all ? std::max(g, inside) : g);
    row_.assign(from.begin(), from.end());
    for (size_t i = 0; of_all && i < row_.size(); ++i)
      row_[i] += spans(reader, blocks)[i] - spans(reader, inside)[i];
    const std::span<int64_t> own = own_spans(p, g), moves = own_moves(p, g);
    const bool still = together && g >= blocks && g < inside;
    const LoopGroup& theirs = groups(reader)[g];
    const auto their_moves = this->moves(reader, g);
    for (size_t d = 0; d < s.axes.size(); ++d) {
      const int64_t whole = s.axes[d].extent;
      if (!access.indices[d]) {
        own[d] = whole;
        if (!still && theirs.moved != 0) group.moved |= 1u << d;
        continue;
      }
      int64_t move = 0;
      for (const auto& [var, coefficient] : access.indices[d]->terms) {
        const auto v = static_cast<size_t>(var.value);
        move += std::abs(coefficient) * their_moves[v];
        if (!still && (theirs.moved >> v & 1u) != 0) group.moved |= 1u << d;
      }
      own[d] = std::max(own[d], std::min(index_span(*access.indices[d], row_), whole));
      if (!still) moves[d] = std::max(moves[d], move);
    }
  }
}

}  // namespace pruner
