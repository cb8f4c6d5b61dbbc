#include "model/nn/primitive_batch.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

ProgramFeatures program_of(std::vector<ansor::Step> steps) {
  ProgramFeatures program;
  program.primitives = primitives(steps);
  return program;
}

TEST(PrimitiveBatch, HoldsEachRowOnceAndFillsUpByWeight) {
  const ansor::ComputeInlineStep one{1}, two{2};
  const ProgramFeatures a = program_of({one, two, one}), b = program_of({two}), none;
  const std::vector<const ProgramFeatures*> programs = {&a, &b, &none};
  const PrimitiveForm form = {false, 4, 12};
  const PrimitiveBatch batch = make_primitive_batch(programs, form);
  EXPECT_EQ(batch.programs, 3);
  EXPECT_EQ(batch.tokens, 4);
  ASSERT_EQ(batch.rows.size(), 3u * 12);
  EXPECT_EQ(batch.rows[0], 0);
  EXPECT_EQ(batch.rows[12 + 11], 1);
  EXPECT_EQ(batch.rows[24 + 11], 2);
  EXPECT_EQ(batch.row_of, (std::vector<int64_t>{1, 2, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(batch.weight, (std::vector<float>{1, 1, 1, 1, 1, 3, 0, 0, 4, 0, 0, 0}));
}

TEST(PrimitiveBatch, CutsWhatTheFormDoesNotSee) {
  const ProgramFeatures long_one = program_of(
      {ansor::ComputeInlineStep{1}, ansor::ComputeInlineStep{2}, ansor::ComputeInlineStep{3}});
  const std::vector<const ProgramFeatures*> programs = {&long_one};
  const PrimitiveBatch batch = make_primitive_batch(programs, {false, 2, 12});
  EXPECT_EQ(batch.tokens, 2);
  EXPECT_EQ(batch.row_of, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(batch.weight, (std::vector<float>{1, 1}));
}

}  // namespace
}  // namespace pruner
