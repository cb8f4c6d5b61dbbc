#include "analysis/computed_share.h"

#include <algorithm>
#include <cmath>

#include "space/plan.h"

namespace pruner {
namespace {

double extent_of(const Stage& stage, int axis) {
  const size_t spatial = stage.axes.size(), at = static_cast<size_t>(axis);
  const Iterator& i = at < spatial ? stage.axes[at] : stage.reduce_axes[at - spatial];
  return static_cast<double>(i.extent);
}

}  // namespace

double computed_share(const LoopNest& nest, const NestStage& stage, size_t depth) {
  const std::optional<ConstantPart>& part = nest.tables->constant_parts[stage.stage];
  if (!part) return 1;
  const auto ends = [&](const NestLoop& loop) {
    return loop.kind == LoopKind::kSerial && loop.clamp < 0 && loop.extent > 1 &&
           part->beyond.coefficient(VarId{loop.axis}) > 0;
  };
  size_t inner = depth;
  while (inner > 0 && !ends(stage.loops[inner - 1])) --inner;
  if (inner == 0) return 1;
  const NestLoop& end = stage.loops[inner - 1];
  const Stage& s = (*nest.dag)[stage.stage];
  const auto factor = static_cast<double>(part->beyond.coefficient(VarId{end.axis}));
  // The form where the axis begins, over the other axes, and how much of it a tile covers.
  double least = static_cast<double>(part->beyond.constant), most = least;
  double tile = factor * static_cast<double>(end.step);
  for (const auto& [iterator, c] : part->beyond.terms) {
    if (iterator.value == end.axis) continue;
    const auto coefficient = static_cast<double>(c);
    (c < 0 ? least : most) += coefficient * (extent_of(s, iterator.value) - 1);
    for (size_t k = inner; k < stage.loops.size(); ++k) {
      const NestLoop& loop = stage.loops[k];
      if (loop.axis == iterator.value)
        tile += std::abs(coefficient) * static_cast<double>((loop.extent - 1) * loop.step);
    }
  }
  constexpr int kPlaces = 16;
  double sum = 0;
  for (int place = 0; place < kPlaces; ++place) {
    const double form = least + (most - least) * (place + 0.5) / kPlaces;
    sum += std::clamp((tile / 2 - form) / (factor * extent_of(s, end.axis)), 0.0, 1.0);
  }
  return sum / kPlaces;
}

}  // namespace pruner
