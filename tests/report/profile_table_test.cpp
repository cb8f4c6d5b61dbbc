#include "report/profile_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace pruner {
namespace {

const std::vector<KernelTime> kKernels = {
    {"conv2d 1x7x7x64", "tile+epilogue", 30e6, 2e6, 0.25, "float32"},
    {"transpose", "rows", 0, 6e6, 0.75, "float32"},
};

TEST(PrintProfile, HasALineAKernelAndTheTotal) {
  EXPECT_EQ(
      print_profile(kKernels, {.gflops = 200, .dots = {}, .bandwidth_gbs = 20, .threads = 2}),
      "  ID  Time (ms)      %   GFLOP/s  % peak     GB/s  % mem.  Precision      Sketch         "
      "Kernel\n"
      "   0     0.2500   25.0     120.0    60.0      8.0    40.0  float32        tile+epilogue  "
      "conv2d 1x7x7x64\n"
      "   1     0.7500   75.0       0.0     0.0      8.0    40.0  float32        rows           "
      "transpose\n"
      " all     1.0000  100.0      30.0    15.0      8.0    40.0  -                             2 "
      "kernels\n"
      "Peak: 200.0 GFLOP/s of fused multiply-adds, 20.0 GB/s read from memory, on 2 threads\n");
}

TEST(PrintProfile, SaysNothingOfRatesThatAreNotKnown) {
  const std::vector<KernelTime> kernels = {{"dense 1x512x768", "tile", 0, 0, 0.25, "float32"}};
  const PeakRates peaks = {.gflops = 200, .dots = {}, .bandwidth_gbs = 20, .threads = 2};
  const std::string table = print_profile(kernels, peaks);
  EXPECT_NE(table.find("0.2500  100.0         -       -        -       -  float32"),
            std::string::npos)
      << table;
  EXPECT_TRUE(profile_json(kernels, peaks)["kernels"][0]["gflops"].is_null());
}

TEST(PrintProfile, HoldsAKernelAgainstThePeakOfWhatItMultipliesWith) {
  const std::vector<KernelTime> kernels = {{"dense", "tile", 300e6, 1e6, 0.25, "bfloat16_tile"},
                                           {"dense", "tile", 80e6, 1e6, 0.25, "int8"},
                                           {"relu", "rows", 20e6, 1e6, 0.25, "float32"},
                                           {"older", "tile", 20e6, 1e6, 0.25, ""}};
  PeakRates peaks = {.gflops = 200, .dots = {}, .bandwidth_gbs = 20, .threads = 2};
  peaks.dots.bfloat16_tile = 15;
  peaks.dots.int8 = 4;
  const std::string table = print_profile(kernels, peaks);
  EXPECT_NE(table.find("1200.0    40.0      4.0    20.0  bfloat16_tile  tile"), std::string::npos)
      << table;
  EXPECT_NE(table.find("320.0    40.0      4.0    20.0  int8 "), std::string::npos) << table;
  EXPECT_NE(table.find("80.0    40.0      4.0    20.0  float32 "), std::string::npos) << table;
  EXPECT_NE(table.find("80.0       -      4.0    20.0  - "), std::string::npos) << table;
  EXPECT_NE(table.find("420.0    30.0 "), std::string::npos) << "0.3 ms of 1\n" << table;
  EXPECT_NE(table.find("multiply-adds, 800.0 of int8, 3000.0 of bfloat16_tile, 20.0 GB/s"),
            std::string::npos)
      << table;
  const Json json = profile_json(kernels, peaks);
  EXPECT_EQ(json["unit_gflops"], (Json{{"int8", 800}, {"bfloat16_tile", 3000}}));
  EXPECT_EQ(json["kernels"][0]["precision"], "bfloat16_tile");
  EXPECT_EQ(json["kernels"][0]["peak_percent"], 40);
  EXPECT_TRUE(json["kernels"][3]["precision"].is_null());
  EXPECT_TRUE(json["kernels"][3]["peak_percent"].is_null());
}

TEST(PrintProfile, HoldsAKernelAgainstTheTensorCoresOfAGpu) {
  const std::vector<KernelTime> kernels = {{"dense", "m16n8k16-tile", 300e6, 1e6, 0.25, "f16_f32"},
                                           {"dense", "m16n8k32-tile", 300e6, 1e6, 0.25, "s8"}};
  PeakRates peaks = {.gflops = 200, .dots = {}, .bandwidth_gbs = 20, .threads = 0};
  peaks.tensor.f16_f32 = 3000;
  const std::string table = print_profile(kernels, peaks);
  EXPECT_NE(table.find("1200.0    40.0      4.0    20.0  f16_f32 "), std::string::npos) << table;
  EXPECT_NE(table.find("1200.0       -      4.0    20.0  s8 "), std::string::npos) << table;
  EXPECT_NE(table.find("3000.0 of f16_f32, 20.0 GB/s read from memory, on the device"),
            std::string::npos)
      << table;
}

TEST(PrintProfile, LeavesOutWhatIsNotKnown) {
  const std::string table = print_profile(kKernels, {});
  EXPECT_EQ(table.find("Peak"), std::string::npos) << table;
  EXPECT_NE(table.find("     120.0       -      8.0       -  float32"), std::string::npos) << table;
  EXPECT_NE(print_profile({}, {}).find(" all     0.0000      -"), std::string::npos);
}

TEST(ProfileJson, HasTheSameNumbers) {
  const Json json =
      profile_json(kKernels, {.gflops = 200, .dots = {}, .bandwidth_gbs = 0, .threads = 2});
  EXPECT_EQ(json["peak_gflops"], 200);
  EXPECT_EQ(json["unit_gflops"], Json::object());
  ASSERT_EQ(json["kernels"].size(), 2u);
  const Json& conv = json["kernels"][0];
  EXPECT_EQ(conv["sketch"], "tile+epilogue");
  EXPECT_EQ(conv["peak_percent"], 60);
  EXPECT_EQ(conv["gbs"], 8);
  EXPECT_TRUE(conv["bandwidth_percent"].is_null());
}

}  // namespace
}  // namespace pruner
