#include "space/factors.h"

#include "space/read_box.h"
#include "support/ceil_div.h"

namespace pruner {

int64_t tile_count(const Stage& stage) {
  int64_t count = 1;
  for (int a = 0; a < static_cast<int>(stage.axes.size()); ++a)
    count *= ceil_div(stage.axes[static_cast<size_t>(a)].extent, stage.tile(a));
  return count;
}

int64_t Factors::block_threads(const StagePlan& root) const {
  int64_t threads = 1;
  for (const AxisTiles& tiles : root.tiles)
    threads *= bound(root, tiles, Bind::kThreads) * bound(root, tiles, Bind::kWarps);
  return threads;
}

std::vector<int64_t> Factors::fetched_box(const Sketch& sketch,
                                          const StagePlan& fetch,
                                          bool moved) const {
  const StagePlan& sum = sketch.plan(sketch.tables->consumers[fetch.stage][0]);
  const Stage& stage = sketch.dag[sum.stage];
  std::vector<int64_t> spans(stage.axes.size() + stage.reduce_axes.size(), 1);
  for (const AxisTiles& tiles : sum.tiles) {
    const int64_t tile = inside(tiles, 0);
    const bool whole = fetch.is_held() && tiles.axis >= std::ssize(stage.axes);
    spans[tiles.axis] = whole ? ceil_div(iterator_of(stage, tiles.axis).extent, tile) * tile : tile;
  }
  ReadBox box(sketch.dag[fetch.stage], moved);
  for (const Access& access : sketch.tables->accesses[sum.stage]) {
    if (access.producer == fetch.stage) box.add(access, spans);
  }
  return box.extents();
}

}  // namespace pruner
