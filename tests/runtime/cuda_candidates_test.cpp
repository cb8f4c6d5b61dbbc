// label: cuda-fake
// Candidates of every kind of operator as CUDA C on the fake driver. PRUNER_CANDIDATES=N draws N of
// each.
#include "candidate_run.h"
#include "dtype_run.h"
#include "fakes/fake_cuda.h"
#include "space/gpu/attention_task.h"
#include "space/gpu/gpu_task.h"
#include "space/gpu/held_task.h"

namespace pruner {
namespace {

class FakeCudaCandidates : public testing::TestWithParam<const char*> {};

TEST_P(FakeCudaCandidates, ComputeWhatTheDagDoes) {
  const FakeCuda cuda;
  expect_candidates_compute(GetParam(), *parse_target("cuda --arch=sm_80", 0));
  EXPECT_EQ(cuda.end(), "");
}

// Those of tensor cores, each on a device of its arch.
TEST(FakeCudaWarpCandidates, ComputeWhatTheDagDoes) {
  for (const WarpOperator& row : kWarpOperators) {
    const FakeCuda cuda(std::string("arch=") + (row.arch + 3));
    const Task task = warp_task(row);
    expect_candidates_compute(task, warp_space(task, row.structure));
    EXPECT_EQ(cuda.end(), "");
  }
}

TEST(FakeCudaWarpCandidates, AttendInOneKernel) {
  Rng rng(29);
  for (const WarpDevice& device : kAttentionDevices) {
    const FakeCuda cuda(std::string("arch=") + (device.arch + 3));
    for (int i = 0; i < candidates_each(6); ++i) {
      const Task task = drawn_attention(rng, device.arch, device.fewest);
      SCOPED_TRACE(print(task.dag));
      expect_candidates_compute(task, warp_space(task, device.structure));
    }
    EXPECT_EQ(cuda.end(), "");
  }
}

TEST(FakeCudaWarpCandidates, MakeOperandsOfTheirOwn) {
  Rng rng(31);
  for (const WarpDevice& device : kHeldDevices) {
    const FakeCuda cuda(std::string("arch=") + (device.arch + 3));
    for (int i = 0; i < candidates_each(2); ++i) {
      for (const HeldKind kind : kHeldKinds) {
        const Task task = drawn_held(rng, kind, device.arch, device.fewest);
        SCOPED_TRACE(print(task.dag));
        expect_candidates_compute(task, held_space(task, device.structure), kHeldTolerance);
      }
    }
    EXPECT_EQ(cuda.end(), "");
  }
}

TEST(FakeCudaWarpCandidates, WriteHalves) {
  const FakeCuda cuda;
  for (const char* op : {"dense 61 48 90 bits=16 +bias +relu", "dense 40 44 64 bits=16 +bias"}) {
    const Task task = with_half_result(gpu_task(op));
    expect_candidates_compute(task, warp_space(task, "m16n8k16-tile"));
  }
  EXPECT_EQ(cuda.end(), "");
}

TEST(FakeCudaRuns, ComputeWhatTheDagDoes) {
  const FakeCuda cuda;
  for (const char* op : {"matmul 33 49 100 +bias", "conv2d 1 16 7 7 8 3 3 padding=1 +relu"}) {
    const Task task = gpu_task(op);
    expect_candidates_compute(task, space_of_runs(task));
  }
  EXPECT_EQ(cuda.end(), "");
}

TEST(FakeCudaWinograd, ComputesWhatTheDagDoes) {
  const FakeCuda cuda;
  for (const char* op : kWinogradOperators) {
    for (const char* form : {"winograd-2x2", "winograd-4x4"}) {
      const Task task = gpu_task(op);
      expect_candidates_compute(task, make_space(task, std::vector<std::string>{form}));
    }
  }
  EXPECT_EQ(cuda.end(), "");
}

TEST(FakeCudaDTypes, ComputeWhatTheInterpreterDoes) {
  const FakeCuda cuda;
  expect_dtypes_compute(*parse_target("cuda --arch=sm_80", 0));
  EXPECT_EQ(cuda.end(), "");
}

INSTANTIATE_TEST_SUITE_P(Cuda, FakeCudaCandidates, testing::ValuesIn(kSmallOperators));

}  // namespace
}  // namespace pruner
