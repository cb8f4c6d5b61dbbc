#include "measure/narrow_contraction.h"

#include <gtest/gtest.h>

#include "measure/output_check.h"
#include "tensor/interpreter.h"
#include "tensor/operator_dags.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

ComputeDag dag_of(const std::string& op) {
  const Result<ComputeDag> dag = parse_operator(op);
  EXPECT_TRUE(dag.ok()) << op;
  return *dag;
}

std::optional<SumsBehind> sums_of(const std::string& op) {
  const ComputeDag dag = dag_of(op);
  return sums_behind(dag, dag.outputs()[0]);
}

TEST(SumsBehind, CountsTermsStagesAndGain) {
  const std::optional<SumsBehind> sums =
      sums_of("conv2d 1 16 7 7 16 3 3 padding=1 bits=16 exponent=8 +bias +relu +residual");
  ASSERT_TRUE(sums);
  EXPECT_EQ(sums->terms, 9 * 16);
  EXPECT_EQ(sums->stages, 3);
  EXPECT_EQ(sums->gain, 1);
  EXPECT_FALSE(sums->rounded);
  EXPECT_EQ(sums_of("dense 8 8 32 bits=8 +bias")->gain, 1) << "after a cast of integers";
  EXPECT_EQ(sums_of("conv2d 1 16 8 8 16 3 3 padding=1 bits=16 +relu +max_pool2d=2")->gain, 1);
  for (const char* bends : {"+gelu", "+sigmoid", "+bias +tanh"}) {
    const auto behind = sums_of(std::string("dense 8 8 32 bits=16 exponent=8 ") + bends);
    ASSERT_TRUE(behind) << bends;
    EXPECT_FALSE(behind->gain) << bends;
  }
  for (const char* other : {"dense 8 8 32", "softmax 8 8", "dense 8 8 32 +bias"})
    EXPECT_FALSE(sums_of(other)) << other;
}

// data [m, k] and weight [n, k] of a narrow type, their sums in float32, what `finish` makes of
// sums and bias.
ComputeDag dense_dag(
    DType narrow,
    int64_t terms,
    const std::function<StageId(DagBuilder&, StageId sums, StageId bias)>& finish) {
  DagBuilder b;
  const StageId data = b.placeholder("data", {32, terms}, narrow);
  const StageId weight = b.placeholder("weight", {48, terms}, narrow, true);
  const StageId sums = add_dense(b, data, weight, DType::kFloat32);
  const StageId bias = b.placeholder("bias", {48}, DType::kFloat32, true);
  return b.finish({finish(b, sums, bias)});
}

ComputeDag rounded_dense(DType narrow, int64_t terms) {
  return dense_dag(narrow, terms, [&](DagBuilder& b, StageId sums, StageId bias) {
    return add_cast(b, add_add(b, sums, bias), narrow);
  });
}

TEST(SumsBehind, EndAtOneRounding) {
  const ComputeDag dag = rounded_dense(DType::kBFloat16, 64);
  const std::optional<SumsBehind> sums = sums_behind(dag, dag.outputs()[0]);
  ASSERT_TRUE(sums);
  EXPECT_TRUE(sums->rounded);
  EXPECT_EQ(before_last_rounding(dag, dag.outputs()[0])[dag.outputs()[0]].dtype, DType::kFloat32);
  const ComputeDag twice =
      dense_dag(DType::kBFloat16, 64, [](DagBuilder& b, StageId sums, StageId bias) {
        const StageId rounded = add_cast(b, sums, DType::kBFloat16);
        const StageId wide = add_add(b, add_cast(b, rounded, DType::kFloat32), bias);
        return add_cast(b, wide, DType::kBFloat16);
      });
  EXPECT_FALSE(sums_behind(twice, twice.outputs()[0]));
}

TEST(ExactOnWholeNumbers, IsWhatMovesAddsAndCompares) {
  for (const char* op : {"dense 8 8 32 bits=16 exponent=8",
                         "dense 8 8 32 bits=16 +bias +relu +residual",
                         "conv2d 1 16 8 8 16 3 3 padding=1 bits=16 exponent=8 +relu +max_pool2d=2",
                         "conv2d 1 16 7 7 16 3 3 padding=1 bits=8 +bias +relu",
                         "dense 8 8 200000 bits=16 exponent=8"})
    EXPECT_TRUE(is_exact_on_whole_numbers(dag_of(op))) << op;
  for (const char* op : {"dense 8 8 32",
                         "dense 8 8 32 bits=16 exponent=8 +gelu",
                         "dense 8 8 32 bits=16 exponent=8 +sigmoid",
                         "dense 8 8 300000 bits=16 exponent=8",
                         "softmax 8 8"})
    EXPECT_FALSE(is_exact_on_whole_numbers(dag_of(op))) << op;
  EXPECT_TRUE(is_exact_on_whole_numbers(rounded_dense(DType::kBFloat16, 512)));
}

TEST(WholeNumbers, AreSmallAndOfBothSigns) {
  Rng rng(1);
  const std::vector<Tensor> inputs = whole_numbers(dag_of("dense 16 16 64 bits=8"), rng);
  double least = 0, most = 0;
  for (int64_t i = 0; i < inputs[1].num_elements(); ++i) {
    least = std::min(least, inputs[1].get(i));
    most = std::max(most, inputs[1].get(i));
    EXPECT_EQ(inputs[1].get(i), std::floor(inputs[1].get(i)));
    EXPECT_GE(inputs[0].get(i), 0);
  }
  EXPECT_EQ(least, -4);
  EXPECT_EQ(most, 4);
}

/// A kernel for rounded_dense(): what it may get wrong.
struct Kernel {
  int64_t dropped = 0;     // terms at the end
  bool narrow = false;     // its sums are as narrow as its factors
  bool late_bias = false;  // added to what has been rounded
  bool swapped = false;    // the last two terms of the weight
  bool zeroed = false;     // the last element of the first row

  Tensor run(DType type, const std::vector<Tensor>& inputs) const {
    const Tensor &data = inputs[0], &weight = inputs[1], &bias = inputs[2];
    const int64_t rows = data.shape()[0], columns = weight.shape()[0], terms = data.shape()[1];
    Tensor out(type, {rows, columns});
    for (int64_t m = 0; m < rows; ++m) {
      for (int64_t n = 0; n < columns; ++n) {
        float sum = 0;
        for (int64_t k = 0; k < terms - dropped; ++k) {
          const int64_t of_weight = swapped && k >= terms - 2 ? 2 * terms - 3 - k : k;
          const double product = data.get(m * terms + k) * weight.get(n * terms + of_weight);
          sum = static_cast<float>(sum + product);
          if (narrow) sum = static_cast<float>(round_to(type, sum));
        }
        if (late_bias) sum = static_cast<float>(round_to(type, sum));
        const bool none = zeroed && m == 0 && n == columns - 1;
        out.set(m * columns + n, none ? 0 : sum + static_cast<float>(bias.get(n)));
      }
    }
    return out;
  }
};

class NarrowKernels : public testing::TestWithParam<DType> {
 protected:
  std::optional<std::string> fault(const Kernel& kernel, bool of_whole_numbers, uint64_t seed = 1) {
    constexpr int64_t kElements = 1000;
    const ComputeDag dag = rounded_dense(GetParam(), 256);
    Rng rng(seed);
    const std::vector<Tensor> inputs =
        of_whole_numbers ? whole_numbers(dag, rng) : random_inputs(dag, rng);
    const std::vector<ExpectedOutput> expected =
        of_whole_numbers ? expect_exact_outputs(dag, inputs, kElements, rng)
                         : expect_outputs(dag, inputs, kElements, rng);
    return find_wrong_element(expected[0], kernel.run(GetParam(), inputs).data());
  }
};

TEST_P(NarrowKernels, PassWhereTheyRoundOnce) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    for (const bool whole : {false, true}) {
      const auto wrong = fault({}, whole, seed);
      EXPECT_FALSE(wrong) << *wrong;
    }
  }
}

TEST_P(NarrowKernels, FailInEitherCheckWhereTheyAreWrong) {
  const auto expect_found = [&](const Kernel& kernel, const char* what) {
    EXPECT_TRUE(fault(kernel, false)) << what;
    EXPECT_TRUE(fault(kernel, true)) << what << ", on whole numbers";
  };
  expect_found({.dropped = 4}, "a dropped chunk of the terms");
  expect_found({.swapped = true}, "two terms of one factor exchanged");
  expect_found({.zeroed = true}, "a column beyond the last whole tile");
}

TEST_P(NarrowKernels, FailWhereTheyRoundTooOften) {
  EXPECT_TRUE(fault({.narrow = true}, false));
  EXPECT_TRUE(fault({.late_bias = true}, false));
  EXPECT_TRUE(fault({.late_bias = true}, GetParam() == DType::kBFloat16))
      << "its whole numbers end at 256";
}

INSTANTIATE_TEST_SUITE_P(Types, NarrowKernels, testing::Values(DType::kBFloat16, DType::kFloat16));

}  // namespace
}  // namespace pruner
