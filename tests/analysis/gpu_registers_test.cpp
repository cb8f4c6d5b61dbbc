#include "analysis/gpu_registers.h"

#include "analysis/draft.h"
#include "space/gpu/gpu_task.h"

namespace pruner {
namespace {

KernelSymbols only_kernel(const Space& space, int sketch, const Decided& values) {
  const Candidate candidate = decided(space, sketch, values);
  std::string why;
  EXPECT_TRUE(is_legal(space, candidate, &why)) << why;
  const Draft drafted = draft(make_loop_nest(space, candidate), space.target);
  EXPECT_EQ(drafted.kernels.size(), 1u);
  return drafted.kernels.at(0);
}

TEST(GpuRegisters, OfAContractionHoldItsTileAndWhatItReads) {
  const Space space = make_space(gpu_task("matmul 32 48 64"));
  const KernelSymbols kernel = only_kernel(space, 0, kProductTile);
  // A tile of 4 x 3; a fetch of 4 elements of A, and 3 of 2 of B.
  EXPECT_EQ(kernel.registers, 24 + 12 + (4 + 3) + (4 + 6));
}

TEST(GpuRegisters, AreReadForMoreSumsWhereMoreIsUnrolled) {
  const Space space = make_space(gpu_task("matmul 64 256 64"));
  const auto with_unroll = [&](int unroll) {
    return only_kernel(space,
                       0,
                       {{".i.outer", 8},
                        {".j.threads", 32},
                        {".j.outer", 8},
                        {".k.inner", 8},
                        {".unroll", unroll}});
  };
  EXPECT_GT(with_unroll(64).shared_s, 2 * with_unroll(512).shared_s);
}

TEST(GpuRegisters, OfRowsAndElementsGrowWithTheirTerms) {
  EXPECT_EQ(only_kernel(make_space(gpu_task("relu 4096")), 0, {{".elements", 4}}).registers,
            12 + 4 + 1)
      << "4 elements of 1 term";
  const Space softmax = make_space(gpu_task("softmax 6 64"));
  EXPECT_EQ(only_kernel(softmax, 3, {{".threads", 16}, {".rows", 2}}).registers, 12 + 4 * 2 + 4)
      << "2 reductions of 4 terms a thread";
}

TEST(GpuRegisters, LimitTheBlocksOfAMultiprocessor) {
  const Space space = make_space(gpu_task("matmul 4096 4096 64"));
  const auto warps = [&](int outer) {
    const KernelSymbols kernel = only_kernel(
        space, 0, {{".i.threads", 16}, {".j.threads", 16}, {".i.outer", outer}, {".unroll", 64}});
    return std::pair(kernel.registers, kernel.active_warps);
  };
  EXPECT_EQ(warps(1), std::pair(24 + 1 + 2 + 2.0, 64.0));
  EXPECT_EQ(warps(32), std::pair(24 + 32 + 33 + 3.0, 16.0))
      << "65,536 registers / (96 x 256) = 2 blocks of 8";
}

}  // namespace
}  // namespace pruner
