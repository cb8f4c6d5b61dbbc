// label: device
// The rates of this machine's OpenCL device (PoCL on a CPU).
#include "measure/opencl_probe.h"

#include <cstdlib>

#include "golden.h"
#include "measure/device_probe.h"
#include "runtime/opencl.h"
#include "target/device_file.h"

namespace pruner {
namespace {

TEST(OpenClProbe, MeasuresWhatTheAnalysisReads) {
  setenv("POCL_CACHE_DIR", testing::TempDir().c_str(), 1);
  const auto devices = list_opencl_devices();
  if (!devices.ok()) GTEST_SKIP() << devices.error().message();
  const Target typical = *parse_target("opencl", 0);
  const Result<Target> probed = probe_device(typical, 0.02);
  ASSERT_TRUE(probed.ok()) << probed.error().message();
  const Gpu& gpu = probed->gpu;
  EXPECT_GT(gpu.peak_flops, 1e9);
  EXPECT_LT(gpu.peak_flops, 1e15);
  for (const double rate : {gpu.dram_bandwidth, gpu.l2_bandwidth, gpu.shared_bandwidth}) {
    EXPECT_GE(rate, 0.1e9);
    EXPECT_LT(rate, 1e15);
  }
  EXPECT_GT(gpu.launch_s, 0);
  EXPECT_LT(gpu.launch_s, 0.01);
  EXPECT_EQ(gpu.sms, devices->front().compute_units);
  EXPECT_EQ(gpu.psa.glbmem_bandwidth, gpu.dram_bandwidth * 1e-9);
  EXPECT_EQ(gpu.max_threads_per_block, typical.gpu.max_threads_per_block);
  EXPECT_NE(probed->source.find(devices->front().name), std::string::npos);
  const Result<Target> read = target_from_json(target_to_json(*probed));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(target_to_json(*read), target_to_json(*probed));
}

}  // namespace
}  // namespace pruner
