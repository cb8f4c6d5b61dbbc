#include "space/gpu/tiles.h"

#include <algorithm>
#include <numeric>

namespace pruner {

std::vector<int64_t> read_box(const Sketch& sketch,
                              StageId producer,
                              StageId reader,
                              std::span<const int64_t> spans) {
  const Stage& stage = sketch.dag[producer];
  const size_t rank = stage.axes.size();
  std::vector<int64_t> low(rank, 0), high(rank, 0), extents(rank);
  std::vector<const Affine*> first(rank, nullptr);
  std::vector<bool> whole(rank, false);
  for (const Access& access : sketch.tables->accesses[static_cast<size_t>(reader.value)]) {
    if (access.producer != producer) continue;
    for (size_t d = 0; d < rank; ++d) {
      const std::optional<Affine>& index = access.indices[d];
      if (access.whole[d] || (first[d] != nullptr && first[d]->terms != index->terms)) {
        whole[d] = true;
        continue;
      }
      int64_t lo = index->constant, hi = index->constant;
      for (const auto& [var, coefficient] : index->terms) {
        const int64_t reach = coefficient * (spans[static_cast<size_t>(var.value)] - 1);
        (reach < 0 ? lo : hi) += reach;
      }
      low[d] = first[d] == nullptr ? lo : std::min(low[d], lo);
      high[d] = first[d] == nullptr ? hi : std::max(high[d], hi);
      first[d] = &*index;
    }
  }
  for (size_t d = 0; d < rank; ++d)
    extents[d] = whole[d] ? stage.axes[d].extent : high[d] - low[d] + 1;
  return extents;
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
