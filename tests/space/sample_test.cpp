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
