#include "space/nearest.h"

#include <cmath>

#include "golden.h"
#include "space/gpu/gpu_task.h"

namespace pruner {
namespace {

std::vector<double> values_of(const Candidate& candidate) {
  return {candidate.decisions.begin(), candidate.decisions.end()};
}

void expect_itself(const Space& space) {
  Rng rng(11);
  for (int i = 0; i < 100; ++i) {
    const Candidate candidate = sample(space, rng);
    const auto nearest = nearest_legal(space, candidate.sketch, values_of(candidate));
    ASSERT_TRUE(nearest) << print(space, candidate);
    EXPECT_EQ(print(space, *nearest), print(space, candidate));
  }
}

// Whatever is wanted: up to 64 times too much or too little of each size, or nothing.
int legal_of(const Space& space, int tries) {
  Rng rng(12);
  int legal = 0;
  for (int i = 0; i < tries; ++i) {
    const Candidate candidate = sample(space, rng);
    std::vector<double> wanted = values_of(candidate);
    for (double& value : wanted) {
      value *= std::exp2(static_cast<double>(rng.below(13)) - 6);
      if (rng.below(8) == 0) value = kNoWish;
    }
    const auto nearest = nearest_legal(space, candidate.sketch, wanted);
    if (!nearest) continue;
    std::string why;
    EXPECT_TRUE(is_legal(space, *nearest, &why)) << why;
    ++legal;
  }
  return legal;
}

class NearestOnACpu : public testing::TestWithParam<const char*> {};

TEST_P(NearestOnACpu, OfALegalCandidateIsItself) {
  expect_itself(make_space(operator_task(GetParam())));
}

TEST_P(NearestOnACpu, OfAnythingIsLegal) {
  EXPECT_EQ(legal_of(make_space(operator_task(GetParam())), 100), 100);
}

INSTANTIATE_TEST_SUITE_P(Nearest, NearestOnACpu, testing::ValuesIn(kSmallOperators));

class NearestOnAGpu : public testing::TestWithParam<const char*> {};

TEST_P(NearestOnAGpu, OfALegalCandidateIsItself) {
  expect_itself(make_space(gpu_task(GetParam())));
}

TEST_P(NearestOnAGpu, OfAnythingIsLegal) {
  EXPECT_GE(legal_of(make_space(gpu_task(GetParam())), 100), 99);
}

INSTANTIATE_TEST_SUITE_P(Nearest,
                         NearestOnAGpu,
                         testing::Values("matmul 512 512 512",
                                         "matmul 33 49 100 +bias +relu",
                                         "batch_matmul 3 64 80 96",
                                         "conv2d 1 64 14 14 64 3 3 padding=1 +bias +relu",
                                         "depthwise_conv2d 1 96 14 14 3 3 padding=1",
                                         "softmax 1536 128"));

// A register tile that is too large gives its rows to the tile around it: blocks stay as large.
TEST(Nearest, KeepsWhatATileHoldsWhenRegistersDoNot) {
  const Space space = make_space(operator_task("matmul 512 512 512", test_target(32)));
  const auto wanted = parse_candidate(
      space,
      "register-tile: T_matmul_NN.local.unroll=16 T_matmul_NN.i.middle=2 T_matmul_NN.i.inner=2 "
      "T_matmul_NN.i.rows=4 T_matmul_NN.j.middle=1 T_matmul_NN.j.inner=4 T_matmul_NN.j.vectors=2 "
      "T_matmul_NN.streaming=0 T_matmul_NN.parallel_order=0 T_matmul_NN.order=0");
  ASSERT_TRUE(wanted.ok()) << wanted.error().message() << print(space);
  const Sketch& sketch = space[wanted->sketch];
  std::vector<double> values = values_of(*wanted);
  for (size_t i = 0; i < values.size(); ++i)
    if (sketch.decisions[i].name == "T_matmul_NN.i.rows") values[i] = 16;
  const auto nearest = nearest_legal(space, wanted->sketch, values);
  ASSERT_TRUE(nearest);
  int64_t rows = 1;
  for (size_t i = 0; i < values.size(); ++i)
    if (sketch.decisions[i].name.starts_with("T_matmul_NN.i.")) rows *= nearest->decisions[i];
  EXPECT_NEAR(static_cast<double>(rows), 4 * 16, 6) << print(space, *nearest);
}

}  // namespace
}  // namespace pruner
