// Kernels of transforms: a thread computes a tile whose places are constants in its code.
#include <map>

#include "lower/gpu_lowering.h"
#include "space/factors.h"
#include "support/ceil_div.h"

namespace pruner {

Stmt GpuLowering::transform(const NestStage& root) {
  const Stage& s = dag_[root.stage];
  std::vector<Iterator> tiles = s.axes;
  for (size_t a = 0; a < tiles.size(); ++a) {
    const int64_t tile = s.tile(static_cast<int>(a));
    tiles[a].extent = ceil_div(tiles[a].extent, tile);
  }
  size_t first = 0;  // first axis with several tiles; tiles along earlier axes start at a constant
  while (first < tiles.size() && tiles[first].extent == 1) ++first;
  const Values none(s.axes.size(), Expr(0));
  const auto at_tile = [&](const Values& tile) {
    Values start = tile;
    for (size_t a = 0; a < start.size(); ++a)
      start[a] = simple(start[a] * Expr(s.tile(static_cast<int>(a))));
    return transform_tile(root, start);
  };
  return guarded(place_.spatial < Expr(tile_count(s)),
                 decode_axes(tiles, first, tiles.size(), place_.spatial, none, 0, at_tile));
}

TensorId GpuLowering::hold_part(const NestStage& part, const Values& start) {
  const TensorId buffer = add_buffer(part, held_shape(part), Scope::kRegister);
  state(part.stage) = {buffer, [this, &part, start](const Values& at) {
                         Values dense;
                         for (size_t d = 0; d < at.size(); ++d)
                           dense.push_back(simple(at[d] - start[d]));
                         return held_place(part, dense);
                       }};
  return buffer;
}

Stmt GpuLowering::transform_tile(const NestStage& root, const Values& start) {
  const std::vector<const NestStage*> parts = attached_to(root.stage);
  std::map<StageId, Values> starts = {{root.stage, start}};
  std::vector<TensorId> held;
  for (size_t i = parts.size(); i-- > 0;) {  // a start follows from the reader's start
    const StageId id = parts[i]->stage, reader = nest_.tables->consumers[id][0];
    starts[id] = region_start(nest_, id, reader, starts.at(reader));
    held.push_back(hold_part(*parts[i], starts[id]));
  }
  const auto loops = [&](const NestStage& stage, const std::function<Stmt(const Values&)>& store) {
    const Values& from = starts.at(stage.stage);
    NestStage own = stage;
    std::erase_if(own.loops, [](const NestLoop& loop) { return loop.axis < 0; });
    return thread_loops(
        own, 0, 0, {from, from}, [&](const Point& point) { return store(point.values); });
  };
  std::vector<Stmt> body;
  for (const NestStage* part : parts) {
    const StageState& held_at = state(part->stage);
    body.push_back(loops(*part, [&](const Values& at) {
      return make_stmt(Store{held_at.buffer, held_at.place(at), body_at(part->stage, at)});
    }));
  }
  body.push_back(loops(root, [&](const Values& at) {
    return if_inside(inside(root.stage, at, 0, at.size()),
                     make_stmt(Store{state(root.stage).buffer, at, body_at(root.stage, at)}));
  }));
  Stmt result = block(std::move(body));
  for (const TensorId buffer : held) result = make_stmt(Allocate{buffer, result});
  return result;
}

}  // namespace pruner
