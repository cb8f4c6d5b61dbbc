#include "space/region.h"

#include "space/plan.h"
#include "space/read_box.h"

namespace pruner {

static const NestStage& stage_of(const LoopNest& nest, StageId id) {
  const auto plan = nest.tables->plan_of[id];
  return nest.stages[plan];
}

// How far each iterator of `id` runs in one visit of `at`'s loops inside the first `depth`.
static std::vector<int64_t> iterator_spans(const LoopNest& nest,
                                           StageId id,
                                           StageId at,
                                           int depth) {
  const Stage& s = (*nest.dag)[id];
  std::vector<int64_t> spans;
  if (id != at) {
    spans = touched_extents(nest, id, at, depth);
    for (const Iterator& axis : s.reduce_axes) spans.push_back(axis.extent);
    return spans;
  }
  spans.assign(s.axes.size() + s.reduce_axes.size(), 1);
  const NestStage& own = stage_of(nest, id);
  for (size_t i = static_cast<size_t>(depth); i < own.loops.size(); ++i) {
    const NestLoop& loop = own.loops[i];
    if (loop.axis >= 0) spans[loop.axis] += (loop.extent - 1) * loop.step;
  }
  return spans;
}

std::vector<int64_t> touched_extents(const LoopNest& nest, StageId id, StageId at, int depth) {
  ReadBox box((*nest.dag)[id], true);
  for (const StageId reader : nest.tables->consumers[id]) {
    const std::vector<int64_t> spans = iterator_spans(nest, reader, at, depth);
    for (const Access& access : nest.tables->accesses[reader])
      if (access.producer == id) box.add(access, spans);
  }
  return box.extents();
}

std::vector<int64_t> visited_extents(const LoopNest& nest, StageId id) {
  const NestStage& stage = stage_of(nest, id);
  return touched_extents(nest, id, stage.at, stage.depth);
}

}  // namespace pruner
