#include "analysis/computed_share.h"

#include <gtest/gtest.h>

#include <functional>

#include "space/operator_task.h"
#include "space/plan.h"
#include "space/space.h"

namespace pruner {
namespace {

// Iterations of the first `depth` loops whose first element lies before the part, over all.
double counted_share(const LoopNest& nest, const NestStage& stage, size_t depth) {
  const ConstantPart& part = *nest.tables->constant_parts[stage.stage];
  const Stage& s = (*nest.dag)[stage.stage];
  double all = 0, before = 0;
  std::vector<int64_t> at(s.axes.size() + s.reduce_axes.size(), 0);
  const std::function<void(size_t)> run = [&](size_t i) {
    if (i < depth) {
      const NestLoop& loop = stage.loops[i];
      int64_t& value = at[static_cast<size_t>(loop.axis)];
      const int64_t start = value;
      for (int64_t step = 0; step < loop.extent; ++step) {
        const int64_t offset = step * loop.step;
        value = start + (loop.clamp < 0 ? offset : std::min(offset, loop.clamp));
        run(i + 1);
      }
      value = start;
      return;
    }
    int64_t least = part.beyond.constant;
    for (const auto& [iterator, factor] : part.beyond.terms) {
      int64_t place = at[static_cast<size_t>(iterator.value)];
      for (size_t k = depth; factor < 0 && k < stage.loops.size(); ++k)
        if (stage.loops[k].axis == iterator.value)
          place += (stage.loops[k].extent - 1) * stage.loops[k].step;
      least += factor * place;
    }
    all += 1;
    before += least <= 0;
  };
  run(0);
  return before / all;
}

TEST(ComputedShare, IsWhatCausalAttentionComputesOfItsSquare) {
  const Task task = operator_task("attention 1 1 96 128 16 causal=1");
  const std::string forms[] = {"direct"};
  const Space space = make_space(task, forms);
  Rng rng(5);
  int parts = 0;
  for (int i = 0; i < 20; ++i) {
    const LoopNest nest = make_loop_nest(space, sample(space, rng));
    for (const NestStage& stage : nest.stages) {
      // Whole tensors alone: their loops go over all rows.
      if (!nest.tables->constant_parts[stage.stage] || stage.at.valid()) continue;
      // Up to the innermost loop that ends early: over keys, the last iterator.
      const int keys = static_cast<int>((*nest.dag)[stage.stage].axes.size()) - 1;
      size_t depth = stage.loops.size();
      while (depth > 0 && (stage.loops[depth - 1].kind != LoopKind::kSerial ||
                           stage.loops[depth - 1].axis != keys))
        --depth;
      const double share = computed_share(nest, stage, depth);
      if (share == 1) continue;
      EXPECT_NEAR(share, counted_share(nest, stage, depth), 0.08) << print(nest);
      ++parts;
    }
  }
  EXPECT_GT(parts, 8);
}

TEST(ComputedShare, IsAllWhereNothingIsHidden) {
  const Task task = operator_task("attention 1 1 96 128 16");
  const Space space = make_space(task);
  Rng rng(3);
  const LoopNest nest = make_loop_nest(space, sample(space, rng));
  for (const NestStage& stage : nest.stages)
    EXPECT_EQ(computed_share(nest, stage, stage.loops.size()), 1);
}

}  // namespace
}  // namespace pruner
