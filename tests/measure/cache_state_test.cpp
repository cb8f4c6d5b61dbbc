#include "measure/cache_state.h"

#include <gtest/gtest.h>

#include <cstring>

#include "runtime/thread_pool.h"
#include "test_kernels.h"

namespace pruner {
namespace {

// Whatever a state does to the caches, it changes no byte and leaves all threads running.
TEST(CacheState, LeavesTheArgumentsAsTheyAre) {
  const Task task = matmul_16(2);
  const Result<Workload> workload = make_workload(task, {});
  ASSERT_TRUE(workload.ok()) << workload.error().message();
  const Result<KernelArguments> arguments = make_arguments(*workload, test_artifact("right"));
  ASSERT_TRUE(arguments.ok()) << arguments.error().message();
  const ThreadPool pool = make_thread_pool(2, false);
  for (const WeightsFrom from : {WeightsFrom::kMemory, WeightsFrom::kLastLevel}) {
    const CacheState state(*workload, *arguments, from);
    state.restore(*pool);
    for (size_t i = 0; i < workload->buffers.size(); ++i) {
      const Tensor& input = workload->inputs[i];
      EXPECT_EQ(std::memcmp(workload->buffers[i].data(), input.data(), size_t(input.bytes())), 0);
    }
  }
}

TEST(CacheState, WeightsThatNoCacheHoldsComeFromMemory) {
  const Target host = host_target(1);
  EXPECT_EQ(probe_weights(host, 0), WeightsFrom::kMemory);
  EXPECT_EQ(probe_weights(host, host.l3_bytes + 1), WeightsFrom::kMemory);
  EXPECT_EQ(probe_weights(*parse_target("cuda --arch=sm_80", 0), 1 << 20), WeightsFrom::kMemory);
}

}  // namespace
}  // namespace pruner
