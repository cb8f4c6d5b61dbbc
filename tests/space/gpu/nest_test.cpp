#include "golden.h"
#include "space/gpu/gpu_task.h"
#include "space/gpu/warp_space.h"

namespace pruner {
namespace {

TEST(GpuNest, OfAProductHasBlocksVirtualThreadsThreadsAndChunks) {
  const Space space = make_space(gpu_task("matmul 32 48 64"));
  Decided tile = kProductTile;
  tile.push_back({".buffers", 2});
  const Candidate candidate = decided(space, 0, tile);
  std::string why;
  ASSERT_TRUE(is_legal(space, candidate, &why)) << why;
  EXPECT_GOLDEN("space/gpu/matmul_nest.txt", print(make_loop_nest(space, candidate)));
}

TEST(GpuNest, OfASoftmaxHasRowsOfThreads) {
  const Space space = make_space(gpu_task("softmax 6 64"));
  const Candidate candidate = decided(space, 3, {{".threads", 16}, {".rows", 2}});
  std::string why;
  ASSERT_TRUE(is_legal(space, candidate, &why)) << why;
  EXPECT_GOLDEN("space/gpu/softmax_nest.txt", print(make_loop_nest(space, candidate)));
}

TEST(GpuNest, OfWinogradsFormsHasATileAThread) {
  const Space space = make_space(gpu_task("conv2d 2 16 6 9 24 3 3 padding=1 +bias +relu"),
                                 std::vector<std::string>{"winograd-4x4"});
  const Candidate candidate =
      decided(space, space.drawn.front().value, {{"winograd_data.threads", 64}, {".t.threads", 6}});
  EXPECT_GOLDEN("space/gpu/winograd_nest.txt", print(make_loop_nest(space, candidate)));
}

// Blocks of 32 x 16 of 192 x 48 sums: six rows of blocks, of which four are no group.
TEST(GpuNest, OfWarpsGroupsRowsOfBlocks) {
  const Task task =
      operator_task("matmul 192 48 64 bits=16", *parse_target("cuda --arch=sm_80", 0));
  const Space space = warp_space(task, "m16n8k16-tile");
  const auto blocks = [&](int raster) {
    const Candidate candidate = decided(space,
                                        static_cast<int>(space.drawn[0].value),
                                        {{".i.fragments", 2},
                                         {".i.warps", 1},
                                         {".j.fragments", 2},
                                         {".j.warps", 1},
                                         {".raster", raster}});
    std::vector<std::array<int64_t, 3>> loops;
    const LoopNest nest = make_loop_nest(space, candidate);
    for (const NestLoop& loop : nest.stages.back().loops)
      if (loop.kind == LoopKind::kBlock) loops.push_back({loop.axis, loop.extent, loop.step});
    return loops;
  };
  using Loops = std::vector<std::array<int64_t, 3>>;
  EXPECT_EQ(blocks(1), (Loops{{0, 6, 32}, {1, 3, 16}}));
  EXPECT_EQ(blocks(4), (Loops{{0, 3, 64}, {1, 3, 16}, {0, 2, 32}}));
}

}  // namespace
}  // namespace pruner
