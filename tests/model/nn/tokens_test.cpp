#include "model/nn/tokens.h"

#include <gtest/gtest.h>

namespace pruner {
namespace {

ProgramFeatures program_of(std::vector<ansor::Step> steps) {
  ProgramFeatures program;
  program.primitives = primitives(steps);
  return program;
}

TEST(Tokens, OfPrimitivesHoldEachRowOnceAndFillUpByWeight) {
  const ansor::ComputeInlineStep one{1}, two{2};
  const ProgramFeatures a = program_of({one, two, one}), b = program_of({two}), none;
  const std::vector<const ProgramFeatures*> programs = {&a, &b, &none};
  const Tokens tokens = make_tokens(Input::kPrimitives, programs, {.primitives = {false, 4, 12}});
  ASSERT_EQ(tokens.row_count(), 3);
  EXPECT_EQ(tokens.rows[0], 0);
  EXPECT_EQ(tokens.rows[12 + 11], 1);
  EXPECT_EQ(tokens.rows[24 + 11], 2);
  EXPECT_EQ(tokens.row_of, (std::vector<int64_t>{1, 2, 1, 0, 2, 0, 0}));
  EXPECT_EQ(tokens.weight, (std::vector<float>{1, 1, 1, 1, 1, 3, 4}));
  EXPECT_EQ(tokens.begin, (std::vector<int64_t>{0, 4, 6, 7}));
}

TEST(Tokens, OfPrimitivesAreCutToWhatTheFormSees) {
  const ProgramFeatures long_one = program_of(
      {ansor::ComputeInlineStep{1}, ansor::ComputeInlineStep{2}, ansor::ComputeInlineStep{3}});
  const std::vector<const ProgramFeatures*> programs = {&long_one};
  const Tokens tokens = make_tokens(Input::kPrimitives, programs, {.primitives = {false, 2, 12}});
  EXPECT_EQ(tokens.row_of, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(tokens.weight, (std::vector<float>{1, 1}));
}

TEST(Tokens, OfDataflowAreItsStepsOrOneThatStandsForEight) {
  ProgramFeatures with, without;
  with.dataflow.fill(6);
  const std::vector<const ProgramFeatures*> programs = {&without, &with, &without};
  const std::vector<float> mean(kDataflowFeatures, 2), divisor(kDataflowFeatures, 4);
  const Tokens tokens = make_tokens(Input::kDataflow, programs, {.divisor = divisor, .mean = mean});
  ASSERT_EQ(tokens.row_count(), 9);
  EXPECT_EQ(tokens.rows.front(), -0.5f);
  EXPECT_EQ(tokens.rows.back(), 1);
  EXPECT_EQ(tokens.row_of, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 0}));
  EXPECT_EQ(tokens.weight, (std::vector<float>{8, 1, 1, 1, 1, 1, 1, 1, 1, 8}));
  EXPECT_EQ(tokens.begin, (std::vector<int64_t>{0, 1, 9, 10}));
}

}  // namespace
}  // namespace pruner
