// label: device
// Candidates of every kind of operator on this machine's NVIDIA GPU. PRUNER_CANDIDATES=N draws N of
// each.
#include "candidate_run.h"
#include "codegen/cuda/nvrtc.h"
#include "dtype_run.h"
#include "warp_run.h"

namespace pruner {
namespace {

// The target of the first GPU; an error where there is none, or nothing that compiles for it.
Result<Target> cuda_target() {
  TRY_ASSIGN(const auto devices, list_gpus(Backend::kCuda));
  TRY(find_nvrtc());
  return parse_target(std::string("cuda --arch=") + devices.front().arch, 0);
}

class CudaCandidates : public testing::TestWithParam<const char*> {};

TEST_P(CudaCandidates, ComputeWhatTheDagDoes) {
  const Result<Target> target = cuda_target();
  if (!target.ok()) GTEST_SKIP() << target.error().message();
  expect_candidates_compute(GetParam(), *target);
}

TEST(CudaDTypes, ComputeWhatTheInterpreterDoes) {
  const Result<Target> target = cuda_target();
  if (!target.ok()) GTEST_SKIP() << target.error().message();
  expect_dtypes_compute(*target);
}

TEST(CudaWarps, Multiply) {
  const Result<Target> target = cuda_target();
  if (!target.ok()) GTEST_SKIP() << target.error().message();
  expect_warps_multiply(*target);
  if (target->gpu.arch == "sm_75") return;
  const std::vector<Tensor> args = run_warps(warp_matmul(large_warp_matmul()), *target);
  ASSERT_FALSE(args.empty());
  expect_product(large_warp_matmul(), args);
}

INSTANTIATE_TEST_SUITE_P(CudaDevice, CudaCandidates, testing::ValuesIn(kSmallOperators));

}  // namespace
}  // namespace pruner
