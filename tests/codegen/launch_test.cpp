#include "codegen/launch.h"

#include <gtest/gtest.h>

#include "golden.h"
#include "lower/gpu_programs.h"
#include "lower/warp_programs.h"

namespace pruner {
namespace {

using Launch = Artifact::Launch;
constexpr int64_t kAll = INT64_MAX;  // all shared memory is declared

TEST(PlanLaunches, SaysWhatEachKernelTakes) {
  EXPECT_EQ(plan_launches(gpu_matmul({}), "k", kAll),
            (std::vector<Launch>{{"k_0", 8, 64, 16 * 16 * 4 + 16 * 32 * 4, {0, 1, 2}, false}}));
  EXPECT_EQ(plan_launches(gpu_softmax(10, 33, 32), "softmax", kAll),
            (std::vector<Launch>{{"softmax_0", 1, 32, 0, {0}, true},
                                 {"softmax_1", 10, 32, 0, {0, 1}, true}}));
}

TEST(PlanLaunches, BeginsEachSharedBufferAt16Bytes) {
  ProgramBuilder b("two");
  const TensorId y = b.output("y", {8}), first = b.shared("first", {3}),
                 second = b.shared("second", {5});
  b.program.body = b.blocks(1, [&](Expr) {
    const Stmt threads = b.threads(8, [&](Expr t) { return b.store(y, {t}, float_imm(0)); });
    return b.allocate(first, b.allocate(second, threads));
  });
  EXPECT_EQ(plan_launches(b.program, "k", 36),
            (std::vector<Launch>{{"k_0", 1, 8, 16 + 20, {0}, false, 0}}));
  EXPECT_EQ(plan_launches(b.program, "k", 35),
            (std::vector<Launch>{{"k_0", 1, 8, 16 + 20, {0}, false, 16 + 20}}));
}

// Buffers that the kernel declares cannot lie over others, so the launch allocates the memory.
TEST(PlanLaunches, LaysABufferOverOthers) {
  for (const int64_t over : {9, 90}) {
    ProgramBuilder b("over");
    const TensorId y = b.output("y", {8}), first = b.shared("first", {12}),
                   second = b.shared("second", {over});
    b.program.buffers[second.value].over = true;
    b.program.body = b.blocks(1, [&](Expr) {
      const Stmt threads = b.threads(8, [&](Expr t) { return b.store(y, {t}, float_imm(0)); });
      return b.allocate(first, b.allocate(second, threads));
    });
    const int64_t bytes = std::max<int64_t>(12, over) * 4;
    EXPECT_EQ(plan_launches(b.program, "k", kAll),
              (std::vector<Launch>{{"k_0", 1, 8, bytes, {0}, false, bytes}}));
  }
}

TEST(Artifact, OfAGpuSurvivesTheWayThroughJson) {
  const Result<Artifact> artifact =
      compile(gpu_softmax(10, 33, 32), *parse_target("opencl", 0), "k");
  ASSERT_TRUE(artifact.ok()) << artifact.error().message();
  const Result<Artifact> back = artifact_from_json(to_json(*artifact), artifact->object);
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(back->backend, Backend::kOpenCl);
  EXPECT_EQ(back->launches, artifact->launches);
  EXPECT_EQ(back->workspace_bytes, artifact->workspace_bytes);
}

TEST(Compile, TellsProgramsForGpusFromThoseForCpus) {
  EXPECT_ERROR(compile(gpu_matmul({}), Target{}, "k"), "is one for GPUs, the target is \"llvm\"");
  EXPECT_ERROR(compile_to_text(gpu_matmul({}), *parse_target("opencl", 0), CodeText::kAssembly),
               "of a GPU there is cuda, opencl, ptx");
}

TEST(Compile, HasNoWordsForStatementsOfWarpsInOpenCl) {
  const Program program = warp_matmul(warp_matmuls().front().matmul);
  const Target target = *parse_target("opencl", 0);
  const char* const words = "program matmul has statements of warps, for which OpenCL has no words";
  EXPECT_ERROR(compile(program, target, "k"), words);
  EXPECT_ERROR(compile_to_text(program, target, CodeText::kOpenCl), words);
}

}  // namespace
}  // namespace pruner
