#include "space/structure.h"

#include "space/gpu/gpu_task.h"
#include "space/sketch_rule.h"

namespace pruner {
namespace {

TEST(Structures, AreWrittenAsAnsorWritesThem) {
  EXPECT_EQ(print(kRegisterTile), "SSSRS");
  EXPECT_EQ(print(kCacheTile), "SSRSRS");
  EXPECT_EQ(print(kBlockTile), "SSSRRSRS");
  for (const StructureRule& rule : kStructureRules) {
    EXPECT_EQ(print(*rule.structure) == "SSRSRRS",
              rule.structure->name == std::string("stepped-tile"));
  }
}

// A structure accumulates and fetches at levels of its own, and no level is beyond the most.
TEST(Structures, StageWithinTheirLevels) {
  for (const StructureRule& rule : kStructureRules) {
    const LoopStructure& structure = *rule.structure;
    const int levels = static_cast<int>(structure.levels.size());
    EXPECT_LE(levels, kMostLevels) << structure.name;
    EXPECT_GT(structure.sum.level, 0) << structure.name;
    EXPECT_EQ(structure.levels[static_cast<size_t>(structure.sum.level)].axes, Axes::kReduction);
    EXPECT_LE(structure.sum.loops_of, structure.sum.level) << structure.name;
    EXPECT_TRUE(!structure.fetches() || structure.fetch.level > structure.sum.level);
    EXPECT_LT(structure.registers(), levels + 1) << structure.name;
  }
}

// Every contraction of a sketch is of the sketch's structure, and each of its levels that splits an
// axis has a factor: decided, fixed or the rest, of which there is one an axis.
TEST(Structures, GiveEachAxisOneRest) {
  for (const Task& task : {operator_task("conv2d 1 64 28 28 128 3 3 padding=1"),
                           gpu_task("conv2d 1 64 28 28 128 3 3 padding=1")}) {
    const Space space = make_space(task, std::vector<std::string>{"direct"});
    for (const SketchId id : space.drawn) {
      for (const StagePlan& plan : space[id].plans) {
        for (const AxisTiles& tiles : plan.tiles) {
          int rests = 0;
          for (const Factor& factor : tiles.factors)
            rests += factor.decision == kFixed && factor.count == Factor::kRest;
          EXPECT_EQ(rests, 1) << space[id].name << " " << space[id].dag[plan.stage].name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace pruner
