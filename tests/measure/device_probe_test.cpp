// label: codegen
#include "measure/device_probe.h"

#include "golden.h"
#include "measure/dot_probe.h"
#include "runtime/gpu_context.h"
#include "target/device_file.h"

namespace pruner {
namespace {

TEST(DeviceProbe, MeasuresWhatTheAnalysisReads) {
  const Target host = host_target(1);
  const Result<Target> probed = probe_device(host, 0.005);
  ASSERT_TRUE(probed.ok()) << probed.error().message();
  EXPECT_GT(probed->peak_flops, 0.5e9);
  EXPECT_LT(probed->peak_flops, 1e12);
  EXPECT_GE(probed->l1_bandwidth, probed->l3_bandwidth / 4) << "whoever else runs here";
  for (const double rate :
       {probed->l1_bandwidth, probed->l2_bandwidth, probed->l3_bandwidth, probed->dram_bandwidth}) {
    EXPECT_GT(rate, 0.1e9);
    EXPECT_LT(rate, 3e12);
  }
  EXPECT_LT(probed->launch_s, 1e-3);
  EXPECT_NE(probed->source.find("measured by pruner device probe on"), std::string::npos);
  EXPECT_EQ(probed->l2_bytes, host.l2_bytes);
  const Result<Target> read = target_from_json(target_to_json(*probed));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(target_to_json(*read), target_to_json(*probed));
}

TEST(DeviceProbe, MeasuresTheUnitsThatTheCpuHas) {
  Target host = host_target(1);
  for (const DotRateRow& row : kDotRates) host.dots.*row.rate = 0;  // whatever is known of them
  const Result<Target> probed = probe_device(host, 0.02);
  ASSERT_TRUE(probed.ok()) << probed.error().message();
  for (const DotRateRow& row : kDotRates) {
    const double rate = probed->dots.*row.rate;
    if (has_dots(host, row)) {
      EXPECT_GE(rate, 0.1) << row.name << ", whoever else runs here";
      EXPECT_LT(rate, 300) << row.name;
    } else {
      EXPECT_EQ(rate, 0) << row.name;
    }
  }
}

TEST(DotProbe, IsZeroWithoutTheInstruction) {
  constexpr DotRateRow kNone{"float4", nullptr, "", ""};
  EXPECT_EQ(probe_dot_gflops(kNone, 1, 0.001), 0);
}

TEST(DeviceProbe, WaitsForEveryThread) {
  const double alone = probe_fork_join_s(1, 0.001), both = probe_fork_join_s(2, 0.005);
  EXPECT_GT(both, alone);
  EXPECT_LT(both, 0.1);
}

TEST(DeviceProbe, SaysWhatCannotBeMeasuredHere) {
  if (!list_gpus(Backend::kCuda).ok()) {
    EXPECT_ERROR(probe_device(*parse_target("cuda --model=t4", 0), 0), "no libcuda.so.1");
  }
  const char* other = kHostIsa == Isa::kX86 ? "llvm -mcpu=cortex-a76" : "llvm -mcpu=haswell";
  EXPECT_ERROR(probe_device(*parse_target(other, 1), 0), "cannot be measured on this");
}

}  // namespace
}  // namespace pruner
