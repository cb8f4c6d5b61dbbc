#include "space/mma.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace pruner {
namespace {

TEST(MmaInstructions, HaveAFewShapes) {
  std::map<std::string_view, int> numbers;
  for (const MmaInstruction& row : mma_instructions()) {
    const auto [at, fresh] = numbers.emplace(row.shape, shape_number(row));
    EXPECT_EQ(at->second, shape_number(row));
    if (fresh) {
      EXPECT_EQ(static_cast<size_t>(at->second) + 1, numbers.size()) << row.shape;
    }
  }
  EXPECT_EQ(numbers.size(), size_t{kMmaShapes});
}

TEST(MmaInstructions, AreFoundByShapeAndTypes) {
  for (const MmaInstruction& row : mma_instructions())
    EXPECT_EQ(find_mma_instruction(row.shape, row.a, row.b, row.sum), &row);
  EXPECT_EQ(find_mma_instruction("m16n8k16", DType::kFloat16, DType::kBFloat16, DType::kFloat32),
            nullptr);
}

TEST(MmaInstructions, TakeWholeRegisters) {
  for (const MmaInstruction& row : mma_instructions()) {
    EXPECT_EQ(row.a_fragment().elements() * dtype_bytes(row.a) % 4, 0) << row.shape;
    EXPECT_EQ(row.b_fragment().elements() * dtype_bytes(row.b) % 4, 0) << row.shape;
    EXPECT_EQ(row.sum_fragment().elements() * dtype_bytes(row.sum) % 4, 0) << row.shape;
    EXPECT_EQ(
        row.shape,
        "m" + std::to_string(row.m) + "n" + std::to_string(row.n) + "k" + std::to_string(row.k));
  }
}

}  // namespace
}  // namespace pruner
