// label: device
// The kernels of the tensor cores' rates through NVRTC, and on this machine's GPU.
#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/cuda/cubin.h"
#include "codegen/cuda/nvrtc_fixture.h"
#include "golden.h"
#include "measure/tensor_probe.h"
#include "target/tensor_rates.h"

namespace pruner {
namespace {

using TensorProbeOnCuda = WithNvrtc;

TEST_F(TensorProbeOnCuda, KeepsAllInRegisters) {
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90"}) {
    Target target = *parse_target(std::string("cuda --arch=") + arch, 0);
    const int rates = static_cast<int>(std::ranges::count_if(
        kTensorRates, [&](auto& row) { return row.is_on(compute_capability(target.gpu)); }));
    const std::string source = tensor_probe_source(target.gpu);
    if (std::string_view(arch) == "sm_90") target = *with_instructions_of_its_own(target);
    const Result<std::string> cubin = compile_to_cubin(source, target);
    ASSERT_TRUE(cubin.ok()) << arch << ": " << cubin.error().message();
    const Result<std::vector<CubinKernel>> kernels = read_cubin(*cubin);
    ASSERT_TRUE(kernels.ok()) << arch << ": " << kernels.error().message();
    EXPECT_EQ(kernels->size(), static_cast<size_t>(rates));
    for (const CubinKernel& kernel : *kernels) {
      const bool groups = kernel.name.find("wgmma") != std::string::npos;
      EXPECT_EQ(kernel.stack_bytes, 0) << arch;
      EXPECT_LE(kernel.registers, groups ? 255 : 128) << arch << ": 8 or 16 warps";
    }
  }
}

int count(std::string_view text, std::string_view word) {
  int found = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    ++found;
  return found;
}

// All products lie between the two looks at the clock, with nothing that rounds operands.
TEST_F(TensorProbeOnCuda, TimesProductsAlone) {
  const Target target = *parse_target("cuda --arch=sm_80", 0);
  const Result<std::string> ptx = compile_to_ptx(tensor_probe_source(target.gpu), target);
  ASSERT_TRUE(ptx.ok()) << ptx.error().message();
  std::string_view left = *ptx;
  for (const TensorRateRow& row : kTensorRates) {
    if (!row.is_on(compute_capability(target.gpu))) continue;
    const auto pass = [&](std::string_view word) {
      const std::string_view before = left.substr(0, left.find(word));
      left.remove_prefix(std::min(left.size(), before.size() + word.size()));
      return before;
    };
    EXPECT_EQ(count(pass("%clock64"), "mma.sync"), 0) << row.name;
    const std::string_view timed = pass("%clock64");
    EXPECT_GE(count(timed, "mma.sync"), 8) << row.name;
    EXPECT_EQ(count(timed, "mma.sync") % 8, 0) << row.name;
    EXPECT_EQ(count(timed, "cvt.rna"), 0) << row.name;
  }
  EXPECT_EQ(count(left, "mma.sync"), 0);
}

TEST_F(TensorProbeOnCuda, MeasuresWhatTheArchIsKnownFor) {
  const auto context = GpuContext::open(Backend::kCuda, 0);
  if (!context.ok()) GTEST_SKIP() << context.error().message();
  Target target = *parse_target("cuda", 0);
  const Result<Gpu> gpu = with_facts(target.gpu, (*context)->facts());
  ASSERT_TRUE(gpu.ok()) << gpu.error().message();
  target.gpu = *gpu;
  const Result<TensorRates> rates = probe_tensor_rates(**context, target, 0.2);
  ASSERT_TRUE(rates.ok()) << rates.error().message();
  for (const TensorRateRow& row : kTensorRates) {
    const double known = target.gpu.tensor_rates.*row.rate;
    if (known == 0) continue;
    EXPECT_GT(*rates.*row.rate, 0.4 * known) << row.name << ": GeForce cards have half";
    EXPECT_LT(*rates.*row.rate, 1.7 * known) << row.name;
  }
}

}  // namespace
}  // namespace pruner
