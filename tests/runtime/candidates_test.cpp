// label: slow
// Candidates of every kind of operator on this machine's OpenCL device. PRUNER_CANDIDATES=N draws N
// of each.
#include <cstdlib>

#include "candidate_run.h"

namespace pruner {
namespace {

class OpenClCandidates : public testing::TestWithParam<const char*> {};

TEST_P(OpenClCandidates, ComputeWhatTheDagDoes) {
  setenv("POCL_CACHE_DIR", testing::TempDir().c_str(), 1);
  const auto devices = list_gpus(Backend::kOpenCl);
  if (!devices.ok()) GTEST_SKIP() << devices.error().message();
  expect_candidates_compute(GetParam(), *parse_target("opencl", 0));
}

INSTANTIATE_TEST_SUITE_P(OpenCl, OpenClCandidates, testing::ValuesIn(kSmallOperators));

}  // namespace
}  // namespace pruner
