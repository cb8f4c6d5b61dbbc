#include "analysis/primitives.h"

#include <gtest/gtest.h>

#include "golden.h"
#include "support/json.h"

namespace pruner {
namespace {

std::vector<int32_t> sequence_of(const std::string& steps) {
  return primitives(*ansor::steps_from_json(*parse_json(steps)));
}

struct Example {
  const char* step;
  int64_t row_length;
  std::vector<float> row;
};

void expect_rows(const std::vector<Example>& examples, const PrimitiveForm& form) {
  for (const Example& example : examples) {
    const std::vector<int32_t> sequence = sequence_of("[" + std::string(example.step) + "]");
    const std::vector<Primitive> steps = primitives_of(sequence);
    ASSERT_EQ(steps.size(), 1u) << example.step;
    EXPECT_EQ(steps[0].row_length(), example.row_length) << example.step;
    std::vector<float> row(static_cast<size_t>(form.width), -1);
    write_primitive(steps[0], form, row.data());
    EXPECT_EQ(row, example.row) << example.step;
    EXPECT_EQ(unlisted_primitives(sequence, form), 0) << example.step;
  }
}

// The worked examples of TLP's script for data sets.
TEST(Primitives, OfACpuHaveTheReferencesRows) {
  expect_rows(
      {{R"(["CHW", 2, "local"])", 13, {0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0,
                                       2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
       {R"(["SP", 2, 0, 1024, [1, 2, 8], 1])", 18, {0, 0, 0,    0, 0, 1, 0, 0, 0, 0, 0,
                                                    2, 0, 1024, 1, 2, 8, 1, 0, 0, 0, 0}},
       {R"(["RE", 2, [0,4,8,1,5,9,12,2,6,10,13,3,7,11]])", 26, {0, 1, 0, 0, 0, 0, 0, 0,  0, 0, 0,
                                                                2, 0, 4, 8, 1, 5, 9, 12, 2, 6, 10}},
       {R"(["PR", 2, 0, "auto_unroll_max_step$16"])", 14, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
                                                           2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}}},
      kCpuPrimitives);
}

TEST(Primitives, OfAGpuHaveTheReferencesRows) {
  expect_rows({{R"(["FFSP", 4, 0, [4, 3, 2, 1], 1, 1])", 19, {0, 0, 0, 0, 0, 1, 0, 0, 0, 0,
                                                              0, 4, 0, 4, 3, 2, 1, 1, 1, 0}},
               {R"(["CHR", 2, "shared", [3]])", 14, {0, 1, 0, 0, 0, 0, 0, 0, 0, 0,
                                                     0, 2, 1, 3, 0, 0, 0, 0, 0, 0}},
               {R"(["PR", 5, 0, "auto_unroll_max_step$512"])", 14, {0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
                                                                    0, 5, 0, 5, 0, 0, 0, 0, 0, 0}}},
              kGpuPrimitives);
}

// Kinds by their place from 1, in TLP's tables.
TEST(Primitives, KindsAndPragmasHaveTheTablesPlaces) {
  const auto place = [](const char* step, const PrimitiveForm& form) {
    const std::vector<float> row =
        primitive_matrix(sequence_of("[" + std::string(step) + "]"), form);
    const auto one = std::find(row.begin(), row.begin() + kPrimitiveKinds, 1.0f) - row.begin();
    return one == kPrimitiveKinds ? 0 : static_cast<int>(one) + 1;
  };
  const struct {
    const char* step;
    int cpu, gpu;
  } kinds[] = {{R"(["AN", 1, 0, 3])", 3, 1},
               {R"(["FU", 1, [0, 1]])", 9, 8},
               {R"(["PR", 1, 0, "auto_unroll_max_step$0"])", 11, 10},
               {R"(["RE", 1, [1, 0]])", 2, 9},
               {R"(["SP", 1, 0, 8, [2], 1])", 6, 7},
               {R"(["FSP", 1, 0, 2, 1])", 10, 11},
               {R"(["FFSP", 1, 0, [2], 1, 1])", 0, 6},
               {R"(["SA", 1, 0, 32, 31])", 0, 0},
               {R"(["CA", 1, 2, 0])", 8, 5},
               {R"(["CI", 1])", 1, 4},
               {R"(["CR", 1])", 7, 0},
               {R"(["CHR", 1, "shared", [2]])", 0, 2},
               {R"(["CHW", 1, "local"])", 5, 3},
               {R"(["RF", 1, 0, 1])", 4, 0}};
  for (const auto& kind : kinds) {
    EXPECT_EQ(place(kind.step, kCpuPrimitives), kind.cpu) << kind.step;
    EXPECT_EQ(place(kind.step, kGpuPrimitives), kind.gpu) << kind.step;
  }
  const auto pragma = [](int steps, const PrimitiveForm& form) {
    const std::string text = "auto_unroll_max_step$" + std::to_string(steps);
    return primitive_matrix(sequence_of(R"([["PR", 1, 0, ")" + text + R"("]])"), form)[13];
  };
  const std::pair<int, int> cpu[] = {{16, 1}, {0, 2}, {512, 3}, {64, 4}, {7, 0}};
  for (const auto& [steps, index] : cpu)
    EXPECT_EQ(pragma(steps, kCpuPrimitives), static_cast<float>(index)) << steps;
  const std::pair<int, int> gpu[] = {{0, 1}, {16, 2}, {64, 3}, {1024, 4}, {512, 5}, {7, 0}};
  for (const auto& [steps, index] : gpu)
    EXPECT_EQ(pragma(steps, kGpuPrimitives), static_cast<float>(index)) << steps;
}

TEST(Primitives, WhatTheTableHasNotKeepsItsArgumentsAndIsCounted) {
  const std::vector<int32_t> sequence =
      sequence_of(R"([["SA", 3, 1, 32, 31], ["CHW", 2, "other"], ["PR", 2, 0, "made_up"]])");
  const std::vector<float> matrix = primitive_matrix(sequence, kCpuPrimitives);
  EXPECT_EQ(std::vector<float>(matrix.begin(), matrix.begin() + 16),
            (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 1, 32, 31, 0}));
  EXPECT_EQ(matrix[22 + 11], 2);
  EXPECT_EQ(matrix[22 + 12], 0);
  EXPECT_EQ(unlisted_primitives(sequence, kCpuPrimitives), 2);
}

TEST(Primitives, AMatrixIsFilledWithZerosAndCutToTheForm) {
  const std::vector<int32_t> three = sequence_of(R"([["CI", 1], ["CI", 2], ["CI", 3]])");
  const std::vector<float> matrix = primitive_matrix(three, kCpuPrimitives);
  ASSERT_EQ(matrix.size(), 25u * 22);
  EXPECT_EQ(matrix[2 * 22 + 11], 3);
  EXPECT_TRUE(std::all_of(matrix.begin() + 3 * 22, matrix.end(), [](float v) { return v == 0; }));
  EXPECT_EQ(
      primitive_matrix(three, {false, 2, 12}),
      (std::vector<float>{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}));
}

TEST(Primitives, MayBeReadByTheirLogarithm) {
  const std::vector<int32_t> split = sequence_of(R"([["SP", 1, 3, 1023, [7], 1]])");
  EXPECT_EQ(primitive_matrix(split, {false, 1, 18, true}),
            (std::vector<float>{0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 10, 3, 1, 0, 0}));
}

TEST(Primitives, ThreadsMakeThemAGpus) {
  EXPECT_FALSE(has_gpu_primitives(sequence_of(R"([["AN", 1, 0, 3], ["AN", 1, 2, 2]])")));
  EXPECT_TRUE(has_gpu_primitives(sequence_of(R"([["CI", 0], ["AN", 1, 0, 5]])")));
}

}  // namespace
}  // namespace pruner
