#include "target/host.h"

#include <gtest/gtest.h>

#include "target/cpu_table.h"

namespace pruner {
namespace {

constexpr const char* kAvx2 = "sse4_2 popcnt avx avx2 fma bmi1 bmi2 f16c abm movbe";
constexpr const char* kAvx512 = " avx512f avx512bw avx512cd avx512dq avx512vl";

HostCpu x86(const char* vendor, int family, int model, const std::string& flags) {
  return parse_cpuinfo(
      "processor\t: 0\nvendor_id\t: " + std::string(vendor) +
      "\ncpu family\t: " + std::to_string(family) + "\nmodel\t\t: " + std::to_string(model) +
      "\nmodel name\t: Some CPU\nflags\t\t: fpu " + flags + "\n\nprocessor\t: 1\n");
}

TEST(ParseCpuinfo, KnowsModels) {
  const std::string wide = std::string(kAvx2) + kAvx512;
  EXPECT_EQ(x86("AuthenticAMD", 25, 17, wide).mcpu, "znver4");
  EXPECT_EQ(x86("AuthenticAMD", 25, 1, kAvx2).mcpu, "znver3");
  EXPECT_EQ(x86("AuthenticAMD", 23, 49, kAvx2).mcpu, "znver2");
  EXPECT_EQ(x86("GenuineIntel", 6, 63, kAvx2).mcpu, "haswell");
  EXPECT_EQ(x86("GenuineIntel", 6, 85, wide).mcpu, "skylake-avx512");
  EXPECT_EQ(x86("GenuineIntel", 6, 85, wide + " avx512_vnni").mcpu, "cascadelake");
  EXPECT_EQ(x86("GenuineIntel", 6, 106, wide).mcpu, "icelake-server");
  EXPECT_EQ(x86("GenuineIntel", 6, 42, "sse4_2 popcnt avx").mcpu, "sandybridge");
  EXPECT_EQ(x86("GenuineIntel", 6, 63, kAvx2).model_name, "Some CPU");
}

TEST(ParseCpuinfo, SaysWhetherThereAreTiles) {
  const std::string wide = std::string(kAvx2) + kAvx512 + " avx512_fp16";
  const HostCpu with = x86("GenuineIntel", 6, 143, wide + " amx_tile amx_bf16");
  EXPECT_NE(with.features.find("+amx-tile,+amx-bf16,-amx-int8"), std::string::npos);
  const HostCpu hidden = x86("GenuineIntel", 6, 143, wide);
  EXPECT_NE(hidden.features.find("-amx-tile"), std::string::npos);
}

TEST(ParseCpuinfo, TakesTheLevelOfAnUnknownModel) {
  const std::string wide = std::string(kAvx2) + kAvx512;
  EXPECT_EQ(x86("GenuineIntel", 6, 255, wide).mcpu, "skylake-avx512");
  EXPECT_EQ(x86("GenuineIntel", 6, 255, wide + " avx512_vbmi2").mcpu, "icelake-server");
  EXPECT_EQ(x86("GenuineIntel", 6, 255, wide + " avx512_vbmi2 avx512_fp16").mcpu, "sapphirerapids");
  EXPECT_EQ(x86("AuthenticAMD", 255, 1, wide).mcpu, "znver4");
  EXPECT_EQ(x86("Other", 6, 255, wide).mcpu, "x86-64-v4");
  EXPECT_EQ(x86("Other", 1, 1, kAvx2).mcpu, "x86-64-v3");
  EXPECT_EQ(x86("Other", 1, 1, "sse4_2 popcnt").mcpu, "x86-64-v2");
  EXPECT_EQ(x86("Other", 1, 1, "sse2").mcpu, "x86-64");
}

TEST(ParseCpuinfo, BelievesTheFlagsOfAHypervisor) {
  const HostCpu hidden = x86("AuthenticAMD", 25, 17, kAvx2);
  EXPECT_EQ(hidden.mcpu, "x86-64-v3");
  EXPECT_NE(hidden.features.find("+avx2"), std::string::npos);
  EXPECT_NE(hidden.features.find("-avx512f"), std::string::npos);
  EXPECT_EQ(x86("AuthenticAMD", 23, 49, "sse4_2 popcnt avx").mcpu, "x86-64-v2");
}

TEST(ParseCpuinfo, KnowsArmParts) {
  EXPECT_EQ(parse_cpuinfo("processor\t: 0\nCPU part\t: 0xd0c\n").mcpu, "neoverse-n1");
  EXPECT_EQ(parse_cpuinfo("processor\t: 0\nCPU part\t: 0x123\n").mcpu, "generic");
  EXPECT_EQ(parse_cpuinfo("Features\t: fp asimd asimddp bf16\nCPU part\t: 0xd40\n").features,
            "+dotprod,-i8mm,+bf16");
  EXPECT_EQ(parse_cpuinfo("").mcpu, "generic");
}

TEST(ReadHost, IsARowOfTheTable) {
  const HostCpu host = read_host();
  EXPECT_NE(find_cpu(host.mcpu), nullptr) << host.mcpu;
  EXPECT_GE(host.cores, 1);
}

}  // namespace
}  // namespace pruner
