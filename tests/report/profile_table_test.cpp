#include "report/profile_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace pruner {
namespace {

const std::vector<KernelTime> kKernels = {
    {"conv2d 1x7x7x64", "tile+epilogue", 30e6, 2e6, 0.25},
    {"transpose", "rows", 0, 6e6, 0.75},
};

TEST(PrintProfile, HasALineAKernelAndTheTotal) {
  EXPECT_EQ(
      print_profile(kKernels, {.gflops = 200, .bandwidth_gbs = 20, .threads = 2}),
      "  ID  Time (ms)      %   GFLOP/s  % peak     GB/s  % mem.  Sketch         Kernel\n"
      "   0     0.2500   25.0     120.0    60.0      8.0    40.0  tile+epilogue  conv2d "
      "1x7x7x64\n"
      "   1     0.7500   75.0       0.0     0.0      8.0    40.0  rows           transpose\n"
      " all     1.0000  100.0      30.0    15.0      8.0    40.0                 2 kernels\n"
      "Peak: 200.0 GFLOP/s of fused multiply-adds, 20.0 GB/s read from memory, on 2 threads\n");
}

TEST(PrintProfile, LeavesOutWhatIsNotKnown) {
  const std::string table = print_profile(kKernels, {});
  EXPECT_EQ(table.find("Peak"), std::string::npos) << table;
  EXPECT_NE(table.find("     120.0       -      8.0       -  tile"), std::string::npos) << table;
  EXPECT_NE(print_profile({}, {}).find(" all     0.0000      -"), std::string::npos);
}

TEST(ProfileJson, HasTheSameNumbers) {
  const Json json = profile_json(kKernels, {.gflops = 200, .bandwidth_gbs = 0, .threads = 2});
  EXPECT_EQ(json["peak_gflops"], 200);
  ASSERT_EQ(json["kernels"].size(), 2u);
  const Json& conv = json["kernels"][0];
  EXPECT_EQ(conv["sketch"], "tile+epilogue");
  EXPECT_EQ(conv["peak_percent"], 60);
  EXPECT_EQ(conv["gbs"], 8);
  EXPECT_TRUE(conv["bandwidth_percent"].is_null());
}

}  // namespace
}  // namespace pruner
