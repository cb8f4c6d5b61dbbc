// label: cuda-fake
// Statements of warps as CUDA C on the fake driver.
#include "fakes/fake_cuda.h"
#include "golden.h"
#include "warp_run.h"

namespace pruner {
namespace {

Target sm_80() { return *parse_target("cuda --arch=sm_80", 0); }

TEST(FakeCudaWarps, Multiply) {
  const FakeCuda cuda;
  expect_warps_multiply(sm_80());
  EXPECT_EQ(cuda.end(), "");
}

TEST(FakeCudaWarps, HaveMoreSharedMemoryThanAKernelDeclares) {
  const FakeCuda cuda;
  const WarpMatmul g = large_warp_matmul();
  const std::vector<Tensor> args = run_warps(warp_matmul(g), sm_80());
  ASSERT_FALSE(args.empty());
  expect_product(g, args);
  EXPECT_NE(cuda.lines("cuFuncSetAttribute").find(" 8 98304 -> 0"), std::string::npos)
      << cuda.log();
  EXPECT_EQ(cuda.end(), "");
}

TEST(FakeCudaWarps, AreRefusedWhereADeviceHasTooLittleSharedMemory) {
  const FakeCuda cuda("arch=86");
  WarpMatmul g = large_warp_matmul();
  g.stages = 4;
  const Result<Artifact> artifact = compile(warp_matmul(g), sm_80(), "kernel");
  ASSERT_TRUE(artifact.ok()) << artifact.error().message();
  EXPECT_ERROR(LoadedProgram::load(*artifact),
               "kernel_0 takes 131072 bytes of shared memory a block, Fake GPU sm_86 has 101376");
}

// A driver may have less than it says.
TEST(FakeCudaWarps, AreRefusedWithBothSizesByTheDriver) {
  const FakeCuda cuda("arch=80,cuFuncSetAttribute@*=1");
  const Result<Artifact> artifact = compile(warp_matmul(large_warp_matmul()), sm_80(), "kernel");
  ASSERT_TRUE(artifact.ok()) << artifact.error().message();
  EXPECT_ERROR(
      LoadedProgram::load(*artifact),
      "(1): kernel_0 takes 98304 bytes of shared memory a block, Fake GPU sm_80 has 166912");
  EXPECT_EQ(cuda.end(), "");
}

// Data that are still on their way are NaN on the fake device; a product of such data is NaN, too.
TEST(FakeCudaWarps, ReadNothingBeforeItIsWaitedFor) {
  const FakeCuda cuda;
  for (const WarpPlant plant : {WarpPlant::kNoWait, WarpPlant::kNoCommit}) {
    const Program program = warp_matmul(warp_matmuls().front().matmul, plant);
    const std::vector<Tensor> args = run_warps(program, sm_80());
    ASSERT_FALSE(args.empty());
    EXPECT_TRUE(std::isnan(args[2].get(0)));
  }
}

}  // namespace
}  // namespace pruner
