// label: device
// Statements of warps through NVRTC: every instruction for every arch that has it.
#include <gtest/gtest.h>

#include "codegen/codegen.h"
#include "codegen/cuda/cubin.h"
#include "codegen/cuda/nvrtc_fixture.h"
#include "golden.h"
#include "lower/lower.h"
#include "lower/warp_programs.h"
#include "space/gpu/warp_space.h"

namespace pruner {
namespace {

Target cuda(int arch) {
  Target target = *parse_target("cuda", 0);
  target.gpu.arch = "sm_" + std::to_string(arch);
  return target;
}

using CudaWarpCode = WithNvrtc;

TEST_F(CudaWarpCode, KeepFragmentsInRegisters) {
  for (const int arch : {75, 80, 86, 89, 90}) {
    for (const NamedMatmul& p : warp_matmuls()) {
      if (p.matmul.instruction->oldest > arch) continue;
      const std::string name = p.name + " for sm_" + std::to_string(arch);
      const Result<Artifact> artifact = compile(warp_matmul(p.matmul), cuda(arch), "k");
      ASSERT_TRUE(artifact.ok()) << name << ": " << artifact.error().message();
      const Result<std::vector<CubinKernel>> kernels = read_cubin(artifact->object);
      ASSERT_TRUE(kernels.ok()) << name << ": " << kernels.error().message();
      ASSERT_EQ(kernels->size(), 1u);
      EXPECT_EQ(kernels->front().stack_bytes, 0) << name;
      EXPECT_EQ(kernels->front().shared_bytes, artifact->launches.front().shared_bytes) << name;
    }
  }
}

// PTX of instructions that one arch alone has is for that arch, as the cubin is.
TEST_F(CudaWarpCode, NamesTheArchThatItsInstructionsAskFor) {
  const auto ptx = [](const char* structure) {
    const Task task = warp_task({"sm_90", "matmul 64 64 64 bits=16", structure});
    const Space space = warp_space(task, structure);
    Rng rng(1);
    const Result<std::string> text =
        compile_to_text(*lower(space, sample(space, rng), "k"), task.target, CodeText::kPtx);
    EXPECT_TRUE(text.ok()) << text.error().message();
    return *text;
  };
  EXPECT_NE(ptx("m64n8k16-tile").find(".target sm_90a"), std::string::npos);
  EXPECT_EQ(ptx("m16n8k16-tile").find(".target sm_90a"), std::string::npos);
}

TEST_F(CudaWarpCode, LetTheLaunchGiveSharedMemoryBeyond48KiB) {
  for (const int arch : {80, 86, 89, 90}) {
    const Result<Artifact> artifact = compile(warp_matmul(large_warp_matmul()), cuda(arch), "k");
    ASSERT_TRUE(artifact.ok()) << artifact.error().message();
    EXPECT_EQ(artifact->launches.front().shared_bytes, 96 << 10);
    EXPECT_EQ(artifact->launches.front().dynamic_bytes, 96 << 10);
    const CubinKernel kernel = read_cubin(artifact->object)->front();
    EXPECT_EQ(kernel.shared_bytes, 0);
    EXPECT_EQ(kernel.stack_bytes, 0);
    EXPECT_LE(kernel.registers, 224) << "128 sums, 32 elements of fragments, and places";
  }
}

TEST_F(CudaWarpCode, NeedADeviceThatHasTheInstruction) {
  const WarpMatmul g = warp_matmuls().front().matmul;
  EXPECT_ERROR(compile(warp_matmul(g), cuda(75), "k"), "sm_75 has no ");
}

}  // namespace
}  // namespace pruner
