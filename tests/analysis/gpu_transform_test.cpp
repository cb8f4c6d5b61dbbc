// Checks what the analysis knows of Winograd's forms on a GPU.
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/draft.h"
#include "analysis/features.h"
#include "space/gpu/gpu_task.h"

namespace pruner {
namespace {

constexpr const char* kConvolution = "conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu";

Space space_of(const char* form) {
  return make_space(gpu_task(kConvolution), std::vector<std::string>{form});
}

// A transform reads and writes each element once, hundreds of them in the time of its arithmetic.
TEST(GpuTransform, IsDraftedByItsBytes) {
  struct {
    const char* form;
    double products;   // elements of V, and of M
    double registers;  // a tile of points x points beside indices
  } rows[] = {{"winograd-2x2", 16 * 28 * 28 * 64, 12 + 16},
              {"winograd-4x4", 36 * 14 * 14 * 64, 12 + 36}};
  constexpr double kImage = 56 * 56 * 64, kBias = 64;
  for (const auto& row : rows) {
    const Space space = space_of(row.form);
    Rng rng(3);
    for (int i = 0; i < 50; ++i) {
      const Candidate candidate = sample(space, rng);
      SCOPED_TRACE(print(space, candidate));
      const Draft drafted = draft(make_loop_nest(space, candidate), space.target);
      ASSERT_EQ(drafted.kernels.size(), 3u);
      const KernelSymbols &data = drafted.kernels[0], &sums = drafted.kernels[2];
      EXPECT_EQ(data.dram_bytes, 4 * (kImage + row.products));
      EXPECT_EQ(sums.dram_bytes, 4 * (kImage + row.products + kBias));
      for (const KernelSymbols& kernel : {data, sums}) {
        EXPECT_EQ(kernel.registers, row.registers);
        EXPECT_LT(kernel.compute_s, 10e-6);
      }
    }
  }
}

TEST(GpuTransform, HasFeatures) {
  const Space space = space_of("winograd-4x4");
  Rng rng(3);
  for (int i = 0; i < 20; ++i) {
    const Candidate candidate = sample(space, rng);
    const ProgramFeatures found = features(make_statements(make_loop_nest(space, candidate)), {});
    EXPECT_GT(found.row_count(), 7u);  // four parts, two roots and a product
    for (const float value : found.rows) EXPECT_TRUE(std::isfinite(value));
    for (const float value : found.dataflow) EXPECT_TRUE(std::isfinite(value));
  }
}

}  // namespace
}  // namespace pruner
