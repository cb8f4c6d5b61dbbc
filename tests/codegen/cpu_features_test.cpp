// label: codegen
#include "codegen/cpu_features.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

bool has(const std::string& features, const std::string& word) {
  return (" " + features + " ").find(" " + word + " ") != std::string::npos;
}

TEST(CpuFeatures, AreThoseOfTheCpuAndOfTheTarget) {
  Target target;
  target.mcpu = "haswell";
  EXPECT_TRUE(has(cpu_features(target), "avx2"));
  EXPECT_TRUE(has(cpu_features(target), "f16c"));
  EXPECT_FALSE(has(cpu_features(target), "avx512f"));
  target.features = "-bmi2,+avx512f";
  EXPECT_FALSE(has(cpu_features(target), "bmi2"));
  EXPECT_TRUE(has(cpu_features(target), "avx512f"));
  Target arm;
  arm.isa = Isa::kArm;
  arm.mcpu = "cortex-a76";
  EXPECT_TRUE(has(cpu_features(arm), "neon"));
  EXPECT_TRUE(has(cpu_features(arm), "dotprod"));
  // A module asks its CPU for extensions by the runtime's names (runtime/module/cpu_features.c).
  for (const char* extension : {"i8mm", "bf16"}) {
    EXPECT_FALSE(has(cpu_features(arm), extension));
    arm.mcpu = "neoverse-n2";
    EXPECT_TRUE(has(cpu_features(arm), extension));
    arm.mcpu = "cortex-a76";
  }
}

}  // namespace
}  // namespace pruner
