#include <gtest/gtest.h>

#include <map>

#include "space/operator_task.h"
#include "space/space.h"

namespace pruner {
namespace {

// Each mutation is one rule's: a move within one split, or one other decision.
TEST(MutateAsPublished, ChangesOneSplitOrOneOtherDecision) {
  const Task task = operator_task("conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu");
  const Space space = make_space(task);
  Rng rng(0);
  std::map<bool, int> changed;  // key: whether the tile-size rule changed the candidate
  int legal = 0, applied = 0;
  for (int i = 0; i < 2000; ++i) {
    const Candidate parent = sample(space, rng);
    const std::optional<Candidate> child = mutate_as_published(space, parent, rng);
    if (!child) continue;
    ++applied;
    legal += is_legal(space, *child);
    const Sketch& sketch = space[parent.sketch];
    ASSERT_EQ(child->sketch, parent.sketch);
    int group = -1, others = 0;
    for (size_t d = 0; d < sketch.decisions.size(); ++d) {
      const Decision& decision = sketch.decisions[d];
      EXPECT_TRUE(std::ranges::find(decision.choices, child->decisions[d]) !=
                  decision.choices.end())
          << decision.name;
      if (child->decisions[d] == parent.decisions[d]) continue;
      ++changed[decision.kind == DecisionKind::kTile || decision.kind == DecisionKind::kChunk];
      if (decision.group < 0) {
        ++others;
      } else {
        EXPECT_TRUE(group < 0 || group == decision.group) << "two axes at once";
        group = decision.group;
      }
    }
    EXPECT_LE(others + (group >= 0), 1);
  }
  EXPECT_GT(applied, 1500);
  EXPECT_GT(legal, applied / 4);
  EXPECT_GT(changed[true], 4 * changed[false]) << "nine of ten are of tiles";
  EXPECT_GT(changed[false], 0);
}

}  // namespace
}  // namespace pruner
