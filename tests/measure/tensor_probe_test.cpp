#include "measure/tensor_probe.h"

#include <gtest/gtest.h>

#include "space/mma.h"
#include "target/tensor_rates.h"

namespace pruner {
namespace {

Gpu gpu(const char* arch) {
  Gpu gpu;
  gpu.arch = arch;
  return gpu;
}

TEST(TensorProbe, HasAKernelForEachRateOfAnArch) {
  for (const int arch : {0, 70, 75, 80, 86, 90}) {
    const std::string source = tensor_probe_source(gpu(("sm_" + std::to_string(arch)).c_str()));
    for (const TensorRateRow& row : kTensorRates) {
      const std::string kernel = "tensor_" + std::string(row.name) + "(";
      EXPECT_EQ(source.find(kernel) != std::string::npos, row.is_on(arch)) << kernel << arch;
    }
  }
  EXPECT_EQ(tensor_probe_source(Gpu{}), "");
}

TEST(TensorProbe, MultipliesWithTheLargestInstruction) {
  EXPECT_NE(tensor_probe_source(gpu("sm_75")).find("m8n8k16.row.col.s32.s8"), std::string::npos);
  const std::string source = tensor_probe_source(gpu("sm_80"));
  for (const char* words : {"m16n8k16.row.col.f32.f16",
                            "m16n8k16.row.col.f16.f16",
                            "m16n8k16.row.col.f32.bf16",
                            "m16n8k8.row.col.f32.tf32",
                            "m16n8k32.row.col.s32.s8"})
    EXPECT_NE(source.find(words), std::string::npos) << words;
}

}  // namespace
}  // namespace pruner
