#include "space/gpu/tiles.h"

#include <algorithm>
#include <numeric>

#include "space/read_box.h"

namespace pruner {

std::vector<int64_t> read_box(const Sketch& sketch,
                              StageId producer,
                              StageId reader,
                              std::span<const int64_t> spans) {
  ReadBox box(sketch.dag[producer]);
  for (const Access& access : sketch.tables->accesses[static_cast<size_t>(reader.value)]) {
    if (access.producer == producer) box.add(access, spans);
  }
  return box.extents();
}

std::vector<int64_t> GpuTiles::chunk_spans(const StagePlan& contraction) const {
  const Stage& stage = sketch_.dag[contraction.stage];
  std::vector<int64_t> spans(stage.axes.size() + stage.reduce_axes.size(), 1);
  for (const GpuAxisPlan& a : plan(contraction.root).tiles)
    spans[static_cast<size_t>(a.axis)] = block(a);
  for (const GpuAxisPlan& a : contraction.tiles) spans[static_cast<size_t>(a.axis)] = block(a);
  return spans;
}

int64_t GpuTiles::block_threads(const StagePlan& root) const {
  if (root.role == StageRole::kElements) return value(root.threads);
  if (root.role == StageRole::kRows) return value(root.threads) * value(root.elements);
  return std::accumulate(
      root.tiles.begin(), root.tiles.end(), int64_t{1}, [&](int64_t n, const GpuAxisPlan& a) {
        return n * threads(a);
      });
}

std::vector<int64_t> GpuTiles::shared_box(const StagePlan& shared) const {
  const StagePlan& contraction = reader_of(shared);
  return read_box(sketch_, shared.stage, contraction.stage, chunk_spans(contraction));
}

}  // namespace pruner
