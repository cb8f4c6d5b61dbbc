// A structure that the program does not have, of rows alone: a toy of a tensor unit, whose
// instruction computes 4 x 4 sums of 4 products each. On a CPU it stands where registers do, on a
// GPU a warp issues it. Its programs compute what the DAG does, and their loops have its shape.
#include "space/structure.h"

#include <set>

#include "lower/meaning.h"
#include "space/gpu/gpu_task.h"
#include "space/sketch_rule.h"

namespace pruner {
namespace {

std::vector<int32_t> tiles(const TiledAxis& axis) { return tile_choices(axis.extent, 8); }

constexpr DecisionKind kTiles = DecisionKind::kTile;
constexpr int64_t kShape[] = {4, 4, 4};
constexpr int32_t kUnroll[] = {16, 64};
constexpr int32_t kBuffers[] = {1, 2};

constexpr Level kToyLevels[] = {
    {Axes::kSpace, Bind::kCores},
    {Axes::kSpace, Bind::kSerial, Iterations::kDecided, kTiles, "middle", nullptr, tiles},
    {Axes::kReduction, Bind::kSerial},
    {Axes::kReduction, Bind::kInstruction, Iterations::kShape},
    {Axes::kSpace, Bind::kInstruction, Iterations::kShape}};
constexpr LoopStructure kToy = {.name = "toy-tile",
                                .levels = kToyLevels,
                                .sum = {2, 2, Scope::kRegister},
                                .unroll = kUnroll,
                                .overlaps = true,
                                .instruction = kShape};

constexpr Level kToyLevelsOnGpu[] = {
    {Axes::kSpace, Bind::kBlocks},
    {Axes::kSpace, Bind::kWarps, Iterations::kDecided, kTiles, "warps", nullptr, tiles},
    {Axes::kReduction, Bind::kSerial},
    {Axes::kReduction, Bind::kSerial, Iterations::kDecided, kTiles, "chunk", nullptr, tiles},
    {Axes::kSpace, Bind::kSerial, Iterations::kDecided, kTiles, "tiles", nullptr, tiles},
    {Axes::kReduction, Bind::kInstruction, Iterations::kShape},
    {Axes::kSpace, Bind::kInstruction, Iterations::kShape}};
constexpr LoopStructure kToyOnGpu = {.name = "toy-block-tile",
                                     .levels = kToyLevelsOnGpu,
                                     .sum = {2, 2, Scope::kLocal},
                                     .fetch = {3, 1, Scope::kShared},
                                     .unroll = kUnroll,
                                     .buffers = kBuffers,
                                     .instruction = kShape};

// The instruction's loops of the contraction: 4 of each of its three axes.
void expect_instructions(const LoopNest& nest, LoopKind kind) {
  for (const NestStage& stage : nest.stages) {
    if (!(*nest.dag)[stage.stage].is_reduction()) continue;
    std::vector<NestLoop> last(stage.loops.end() - 3, stage.loops.end());
    EXPECT_EQ(last[0].axis, 2) << print(nest);
    EXPECT_EQ(last[1].axis, 0) << print(nest);
    EXPECT_EQ(last[2].axis, 1) << print(nest);
    for (const NestLoop& loop : last) {
      EXPECT_EQ(loop.extent, 4) << print(nest);
      EXPECT_EQ(loop.step, 1) << print(nest);
      EXPECT_EQ(loop.kind, kind) << print(nest);
    }
  }
}

// Each sketch of tasks that have them all, whatever structure its contraction has.
TEST(EveryStructure, ComputesWhatTheDagDoes) {
  std::set<std::string> seen;
  for (const char* op : {"matmul 3 18 4100 +bias", "conv2d 1 17 2 3 4099 3 3 padding=1 +relu"}) {
    const Task task = operator_task(op);
    const Space space = make_space(task, std::vector<std::string>{"direct"});
    Rng rng(3);
    const Meaning meaning(task.dag, rng);
    for (int i = 0; i < 8; ++i) {
      const Candidate candidate = sample(space, rng);
      seen.insert(space[candidate.sketch].name);
      meaning.check(space, candidate);
    }
  }
  EXPECT_EQ(seen, (std::set<std::string>{"cache-tile", "register-tile", "stepped-tile"}));
}

TEST(AStructureOfRowsAlone, ComputesWithAnInstructionOnACpu) {
  const StructureRule rule = {&kToy, [](const ComputeDag&, const Target&) { return true; }};
  const Task task = operator_task("matmul 16 24 32 +bias +relu");
  const Space space = make_space(task, {}, {&rule, 1});
  ASSERT_EQ(space.sketches.size(), 1u);
  Rng rng(1);
  const Meaning meaning(task.dag, rng);
  for (int i = 0; i < 20; ++i) {
    const Candidate candidate = sample(space, rng);
    expect_instructions(make_loop_nest(space, candidate), LoopKind::kUnroll);
    meaning.check(space, candidate);
  }
}

TEST(AStructureOfRowsAlone, ComputesWithAnInstructionOfAWarpOnAGpu) {
  const StructureRule rule = {&kToyOnGpu, [](const ComputeDag&, const Target&) { return true; }};
  Task task = gpu_task("matmul 16 24 32 +bias +relu");
  task.target.gpu.warp_size = 1;
  const Space space = make_space(task, std::vector<std::string>{"direct"}, {&rule, 1});
  Rng rng(2);
  const Meaning meaning(task.dag, rng);
  for (int i = 0; i < 20; ++i) {
    const Candidate candidate = sample(space, rng);
    expect_instructions(make_loop_nest(space, candidate), LoopKind::kUnroll);
    meaning.check(space, candidate);
  }
}

}  // namespace
}  // namespace pruner
