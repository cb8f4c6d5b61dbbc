#include "golden.h"
#include "space/gpu/gpu_task.h"

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

}  // namespace
}  // namespace pruner
