#include <gtest/gtest.h>

#include <set>

#include "golden.h"
#include "space/operator_task.h"
#include "space/space.h"

namespace pruner {
namespace {

class EveryOperator : public testing::TestWithParam<const char*> {};

TEST_P(EveryOperator, SamplesAreLegalAndPrintParsePrintIsStable) {
  const Task task = operator_task(GetParam());
  const Space space = make_space(task);
  Rng rng(1);
  for (int i = 0; i < 200; ++i) {
    const Candidate candidate = sample(space, rng);
    std::string why;
    ASSERT_TRUE(is_legal(space, candidate, &why)) << why;
    const Result<Candidate> parsed = parse_candidate(space, print(space, candidate));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message();
    EXPECT_EQ(*parsed, candidate);
  }
}

TEST_P(EveryOperator, MutationsAndCrossoversStayLegal) {
  const Task task = operator_task(GetParam());
  const Space space = make_space(task);
  Rng rng(2);
  for (int i = 0; i < 200; ++i) {
    const Candidate a = sample(space, rng), b = sample(space, rng);
    const std::optional<Candidate> child = mutate(space, a, rng),
                                   mix = cross_over(space, a, b, rng);
    EXPECT_TRUE(!child || (is_legal(space, *child) && !(*child == a)));
    EXPECT_TRUE(!mix || is_legal(space, *mix));
  }
}

INSTANTIATE_TEST_SUITE_P(Sample, EveryOperator, testing::ValuesIn(kSmallOperators));

TEST(Sample, OneSeedGivesOneSequence) {
  const Space space = make_space(operator_task("matmul 64 64 64"));
  Rng a(3), b(3);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(sample(space, a), sample(space, b));
}

TEST(Sample, EveryChoiceOfEveryDecisionIsReached) {
  const Space space = make_space(operator_task("matmul 24 48 32 +relu"));
  std::set<std::tuple<int, size_t, int>> seen;
  Rng rng(4);
  for (int i = 0; i < 20000; ++i) {
    const Candidate c = sample(space, rng);
    for (size_t d = 0; d < c.decisions.size(); ++d)
      seen.insert({c.sketch.value, d, c.decisions[d]});
  }
  for (int s = 0; s < static_cast<int>(space.sketches.size()); ++s) {
    const Sketch& sketch = space[SketchId{s}];
    for (size_t d = 0; d < sketch.decisions.size(); ++d) {
      for (const int32_t choice : sketch.decisions[d].choices) {
        EXPECT_TRUE(seen.count({s, d, choice}))
            << sketch.name << " " << sketch.decisions[d].name << "=" << choice;
      }
    }
  }
}

// The first sketch's smallest tiles, but for the rows and vectors of the register tile.
bool fits_registers(const Space& space, int32_t rows, int32_t vectors) {
  Candidate candidate{SketchId{0}, {}};
  const Sketch& sketch = space[candidate.sketch];
  bool rows_set = false;
  for (const Decision& decision : sketch.decisions) {
    candidate.decisions.push_back(decision.choices.front());
    if (decision.name.ends_with(".vectors")) candidate.decisions.back() = vectors;
    if (decision.name.ends_with(".rows") && !rows_set) {
      candidate.decisions.back() = rows;
      rows_set = true;
    }
  }
  std::string why;
  const bool legal = is_legal(space, candidate, &why);
  EXPECT_EQ(why, legal ? "" : "the register tile exceeds the registers");
  return legal;
}

TEST(IsLegal, KeepsRegistersForAVectorOfEachOperand) {
  const Space space = make_space(operator_task("matmul 64 256 64"));  // 32 registers
  EXPECT_TRUE(fits_registers(space, 16, 1));
  EXPECT_TRUE(fits_registers(space, 14, 2));   // 28 + 2 + 1
  EXPECT_FALSE(fits_registers(space, 15, 2));  // 30 + 2 + 1
  EXPECT_TRUE(fits_registers(space, 6, 4));
  EXPECT_FALSE(fits_registers(space, 8, 4));
}

// Nothing that a window loads is used twice: each accumulator has its own loads.
TEST(IsLegal, KeepsHalfOfTheRegistersForWhatAWindowLoads) {
  for (const char* op :
       {"depthwise_conv2d 1 256 64 64 3 3 padding=1", "max_pool2d 1 256 64 64 3 3 padding=1"}) {
    const Space space = make_space(operator_task(op));
    EXPECT_TRUE(fits_registers(space, 16, 1)) << op;
    EXPECT_TRUE(fits_registers(space, 8, 2)) << op;
    EXPECT_FALSE(fits_registers(space, 10, 2)) << op;
    EXPECT_FALSE(fits_registers(space, 8, 4)) << op;
  }
}

TEST(ParseCandidate, NamesTheDecisionThatIsOutOfRange) {
  const Space space = make_space(operator_task("matmul 6 6 6"));
  Rng rng(5);
  std::string text = print(space, sample(space, rng));
  text.replace(text.rfind('=') + 1, std::string::npos, "99");
  EXPECT_ERROR(parse_candidate(space, text), " is 99, sketch ");
  EXPECT_ERROR(parse_candidate(space, "register-tile: x=1"), "has no decision \"x\"");
  EXPECT_ERROR(parse_candidate(space, "spiral: x=1"), "no sketch \"spiral\"");
}

}  // namespace
}  // namespace pruner
