// label: slow
// Candidates of every kind of operator through NVRTC: what the sketches make is C that compiles,
// and takes what it says. PRUNER_CANDIDATES=N draws N candidates of each.
#include <gtest/gtest.h>

#include <cstdlib>

#include "codegen/codegen.h"
#include "codegen/cuda/cubin.h"
#include "codegen/cuda/nvrtc.h"
#include "lower/lower.h"
#include "space/operator_task.h"

namespace pruner {
namespace {

class CudaCandidates : public testing::TestWithParam<const char*> {};

TEST_P(CudaCandidates, Compile) {
  const auto nvrtc = find_nvrtc();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.error().message();
  setenv("XDG_CACHE_HOME", testing::TempDir().c_str(), 1);
  const Target target = *parse_target("cuda --arch=sm_80", 0);
  const Task task = operator_task(GetParam(), target);
  const Space space = make_space(task);
  Rng rng(5);
  for (int i = 0; i < candidates_each(2); ++i) {
    const Candidate candidate = sample(space, rng);
    const Result<Program> program = lower(space, candidate, "k");
    ASSERT_TRUE(program.ok()) << program.error().message();
    const Result<Artifact> artifact = compile(*program, target, "k");
    ASSERT_TRUE(artifact.ok()) << artifact.error().message() << print(space, candidate);
    const auto kernels = read_cubin(artifact->object);
    ASSERT_TRUE(kernels.ok()) << kernels.error().message();
    ASSERT_EQ(kernels->size(), artifact->launches.size());
    for (size_t k = 0; k < kernels->size(); ++k) {
      EXPECT_EQ((*kernels)[k].shared_bytes, artifact->launches[k].shared_bytes);
      EXPECT_GT((*kernels)[k].registers, 0);
      EXPECT_LE((*kernels)[k].registers * artifact->launches[k].threads,
                target.gpu.registers_per_block);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaCandidates, testing::ValuesIn(kSmallOperators));

}  // namespace
}  // namespace pruner
