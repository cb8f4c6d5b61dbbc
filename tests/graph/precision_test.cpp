#include "graph/precision.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

Support support(Precision precision, const std::string& target) {
  return row_of(precision).support(*parse_target(target, 0));
}

TEST(Precision, IsSupportedByUnitsOfCpusAndGpus) {
  using enum Precision;
  using enum Support;
  EXPECT_EQ(support(kBFloat16, "cuda --model=a100"), kUnit);
  EXPECT_EQ(support(kFloat16, "cuda --model=a100"), kUnit);
  EXPECT_EQ(support(kBFloat16, "cuda --model=t4"), kNone);
  EXPECT_EQ(support(kFloat16, "cuda --model=t4"), kUnit);
  EXPECT_EQ(support(kFloat16, "cuda --model=v100"), kScalar);
  EXPECT_EQ(support(kFloat16, "opencl"), kNone);
  EXPECT_EQ(support(kInt8, "cuda --model=t4"), kUnit);
  EXPECT_EQ(support(kInt8, "cuda --model=v100"), kNone);
  EXPECT_EQ(support(kInt8, "opencl"), kNone);
  EXPECT_EQ(support(kTf32, "cuda --model=a100"), kUnit);
  EXPECT_EQ(support(kTf32, "cuda --model=t4"), kNone);
  EXPECT_EQ(support(kTf32, "llvm -mcpu=sapphirerapids"), kNone);
  EXPECT_EQ(support(kBFloat16, "llvm -mcpu=sapphirerapids"), kUnit);
  EXPECT_EQ(support(kFloat16, "llvm -mcpu=sapphirerapids"), kNone);
  EXPECT_EQ(support(kFloat32, "opencl"), kUnit);
}

}  // namespace
}  // namespace pruner
