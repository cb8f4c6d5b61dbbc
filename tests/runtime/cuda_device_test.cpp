// label: device
// Candidates of every kind of operator on this machine's NVIDIA GPU. PRUNER_CANDIDATES=N draws N of
// each.
#include "candidate_run.h"
#include "codegen/cuda/nvrtc.h"

namespace pruner {
namespace {

class CudaCandidates : public testing::TestWithParam<const char*> {};

TEST_P(CudaCandidates, ComputeWhatTheDagDoes) {
  const auto devices = list_gpus(Backend::kCuda);
  if (!devices.ok()) GTEST_SKIP() << devices.error().message();
  const auto nvrtc = find_nvrtc();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.error().message();
  const std::string arch = devices->front().arch;
  expect_candidates_compute(GetParam(), *parse_target("cuda --arch=" + arch, 0));
}

INSTANTIATE_TEST_SUITE_P(CudaDevice, CudaCandidates, testing::ValuesIn(kSmallOperators));

}  // namespace
}  // namespace pruner
