// label: device
// Candidates of every kind of operator on this machine's NVIDIA GPU. PRUNER_CANDIDATES=N draws N of
// each.
#include "candidate_run.h"
#include "codegen/cuda/nvrtc.h"
#include "dtype_run.h"
#include "space/gpu/attention_task.h"
#include "space/gpu/held_task.h"
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

// Candidates of tensor cores that this GPU has: products, attention, and products whose kernels
// make their operands.
TEST(CudaWarps, CandidatesComputeWhatTheDagDoes) {
  const Result<Target> target = cuda_target();
  if (!target.ok()) GTEST_SKIP() << target.error().message();
  for (const WarpOperator& row : kWarpOperators) {
    const Task task = operator_task(row.op, *target);
    Space space = make_space(task);
    std::erase_if(space.drawn, [&](SketchId id) { return space[id].name != row.structure; });
    if (space.drawn.empty()) continue;  // another GPU's
    SCOPED_TRACE(std::string(row.op) + " " + row.structure);
    expect_candidates_compute(task, space);
  }
}

TEST(CudaWarps, AttendAndMakeOperandsOfTheirOwn) {
  const Result<Target> target = cuda_target();
  if (!target.ok()) GTEST_SKIP() << target.error().message();
  const std::string arch = target->gpu.arch;
  Rng rng(37);
  const auto runs = [&](int first) {
    return compute_capability(arch) >= 80 && (first < 90 || compute_capability(arch) == 90);
  };
  for (const WarpDevice& device : kAttentionDevices) {
    if (!runs(compute_capability(device.arch))) continue;
    const Task task = drawn_attention(rng, arch.c_str(), device.fewest);
    SCOPED_TRACE(print(task.dag));
    expect_candidates_compute(task, warp_space(task, device.structure));
  }
  for (const WarpDevice& device : kHeldDevices) {
    for (const HeldKind kind : kHeldKinds) {
      if (!runs(compute_capability(device.arch))) continue;
      const Task task = drawn_held(rng, kind, arch.c_str(), device.fewest);
      SCOPED_TRACE(print(task.dag));
      expect_candidates_compute(task, held_space(task, device.structure), kHeldTolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(CudaDevice, CudaCandidates, testing::ValuesIn(kSmallOperators));

}  // namespace
}  // namespace pruner
