#include "dataset/draft_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/draft.h"
#include "search/evolve.h"
#include "space/operator_task.h"
#include "space/space.h"

namespace pruner {
namespace {

/// Programs of an operator, of whose times a machine of other numbers tells what the draft makes.
class DraftFitTest : public testing::Test {
 protected:
  static constexpr const char* kOperators[] = {
      "matmul 128 512 256", "conv2d 1 64 28 28 64 3 3 padding=1 +bias", "softmax 64 512"};

  void SetUp() override {
    for (const char* text : kOperators) {
      tasks_.push_back(operator_task(text));
      spaces_.push_back(std::make_unique<Space>(make_space(tasks_.back())));
    }
  }

  /// Returns tasks measured on a machine whose numbers are the usual ones times `factors`.
  std::vector<DraftedTask> measured_with(const DraftFactors& factors, size_t programs = 60) {
    std::vector<DraftedTask> made;
    for (size_t t = 0; t < tasks_.size(); ++t) {
      Rng rng(t);
      DraftedTask task{tasks_[t].name, tasks_[t].target, {}, {}};
      const Target machine = scaled(task.target, factors);
      for (const Candidate& candidate : sample_legal(*spaces_[t], programs, rng)) {
        task.nests.push_back(make_loop_nest(*spaces_[t], candidate));
        task.seconds.push_back(draft_latency_s(task.nests.back(), machine));
      }
      made.push_back(std::move(task));
    }
    return made;
  }

  static DraftFactors with(std::initializer_list<std::pair<std::string, double>> changes) {
    DraftFactors factors(draft_numbers().size(), 1);
    for (const auto& [name, factor] : changes) {
      const auto found = std::ranges::find_if(
          draft_numbers(), [&](const DraftNumber& number) { return name == number.name; });
      EXPECT_NE(found, draft_numbers().end()) << name;
      factors[static_cast<size_t>(found - draft_numbers().begin())] = factor;
    }
    return factors;
  }

  std::vector<Task> tasks_;
  std::vector<std::unique_ptr<Space>> spaces_;
};

TEST_F(DraftFitTest, ADraftThatIsRightChoosesTheBest) {
  for (const DraftedTask& task : measured_with(with({}))) {
    const DraftQuality quality = draft_quality(task);
    EXPECT_EQ(quality.best_1, 1) << task.name;
    EXPECT_EQ(quality.best_10, 1) << task.name;
    EXPECT_EQ(quality.pairwise, 1) << task.name;
    EXPECT_LT(quality.random_10, 1) << task.name;
    EXPECT_EQ(wrong_number(task).name, "") << task.name;
  }
}

// The draft's first choice takes 4 ms and the ten others 1 ms, so the choice has 1/4 of the best's
// speed. Then the first choice takes 1 ms and the others 4 ms.
TEST_F(DraftFitTest, CountsWhatIsChosenAndWhatChanceWouldChoose) {
  DraftedTask task = measured_with(with({}), 11)[0];
  std::vector<double> drafts;
  for (const LoopNest& nest : task.nests) drafts.push_back(draft_latency_s(nest, task.target));
  const auto first = static_cast<size_t>(std::ranges::min_element(drafts) - drafts.begin());
  for (size_t i = 0; i < task.seconds.size(); ++i) task.seconds[i] = 1e-3;
  task.seconds[first] = 4e-3;
  EXPECT_EQ(draft_quality(task).best_1, 0.25);
  EXPECT_EQ(draft_quality(task).best_10, 1);
  // Ten of eleven have a fast one always.
  EXPECT_NEAR(draft_quality(task).random_10, 1, 1e-12);
  for (double& seconds : task.seconds) seconds = 4e-3;
  task.seconds[first] = 1e-3;
  // ... and the only fast one ten times of eleven.
  EXPECT_NEAR(draft_quality(task).random_10, (10 + 0.25) / 11, 1e-12);
  EXPECT_EQ(draft_quality(task).pairwise, 1);
}

TEST_F(DraftFitTest, FindsTheNumbersOfAnotherMachine) {
  const DraftFactors other = with({{"l2_bandwidth", 0.25}, {"accumulator_cycles", 4}});
  const std::vector<DraftedTask> tasks = measured_with(other);
  const DraftFit fit = fit_draft(tasks, 1e-4, 1);
  EXPECT_LT(fit.loss, 0.5 * fit.loss_before);
  double before = 0, after = 0;
  for (DraftedTask task : tasks) {
    before += draft_quality(task).pairwise;
    task.target = scaled(task.target, fit.factors);
    after += draft_quality(task).pairwise;
  }
  EXPECT_GT(after, before);
  EXPECT_EQ(fit_draft(tasks, 1e-4, 2).factors, fit.factors) << "on any number of threads";
}

TEST_F(DraftFitTest, MovesNothingWhereThatCostsMoreThanItGains) {
  const DraftFit fit = fit_draft(measured_with(with({{"l2_bandwidth", 0.5}})), 1e6, 1);
  EXPECT_EQ(fit.factors, with({}));
}

// If one number is wrong, a change of one number, the same or another, mends the first choice.
TEST_F(DraftFitTest, NamesANumberThatMendsTheFirstChoice) {
  int wrong_choices = 0;
  for (const DraftNumber& number : draft_numbers()) {
    for (const double factor : {0.25, 4.0}) {
      for (const DraftedTask& task : measured_with(with({{number.name, factor}}), 30)) {
        if (draft_quality(task).best_1 > 0.99) continue;
        ++wrong_choices;
        const WrongNumber wrong = wrong_number(task);
        EXPECT_NE(wrong.name, "") << task.name << ", " << number.name;
        EXPECT_GT(wrong.best_1, 0.99) << task.name << ", " << number.name << ", " << wrong.name;
      }
    }
  }
  EXPECT_GT(wrong_choices, 0);
}

TEST_F(DraftFitTest, AShareIsNoMoreThanAWhole) {
  const Target target = scaled(tasks_[0].target, with({{"usable_cache_share", 8}}));
  EXPECT_EQ(target.draft.usable_cache_share, 1);
}

}  // namespace
}  // namespace pruner
