// MetaSchedule's evolutionary search.
#include <gtest/gtest.h>

#include "search/mode.h"
#include "space/metaschedule.h"
#include "space/operator_task.h"

namespace pruner {
namespace {

/// Scores each candidate by a function, and keeps what it was asked.
class Recorder : public CostModel {
 public:
  explicit Recorder(float (*score)(const Candidate&)) : score_(score) {}

  std::vector<float> predict(const Task&, const Space&, std::span<const Candidate> batch) override {
    populations.emplace_back(batch.begin(), batch.end());
    std::vector<float> scores;
    for (const Candidate& candidate : batch) scores.push_back(score_(candidate));
    return scores;
  }
  Result<Unit> update(std::span<const Sample>) override { return Unit{}; }

  std::vector<std::vector<Candidate>> populations;

 private:
  float (*score_)(const Candidate&);
};

float arbitrary(const Candidate& c) {
  return static_cast<float>(CandidateHash{}(c) % 1000) / 1000.0f;
}
float nothing(const Candidate&) { return 1; }

struct MetaScheduleSearch : testing::Test {
  std::vector<Candidate> batch(CostModel& model, size_t count, uint64_t seed = 0) {
    const SearchModels models{*draft, &model};
    Rng rng(seed);
    return kMetaSchedulePolicy.next_batch({task, space, history, memory, count, models, options},
                                          rng);
  }

  const Task task = operator_task("conv2d 1 64 14 14 64 3 3 padding=1 +bias +relu");
  const Space space = make_space(task);
  const MetaScheduleSpace own{space};
  const std::unique_ptr<CostModel> draft = make_draft_model();
  SearchOptions options = kMetaSchedulePolicy.options;
  History history;
  SearchMemory memory;
};

TEST_F(MetaScheduleSearch, HasTheConstantsOfItsRelease) {
  const SearchOptions& options = kMetaSchedulePolicy.options;
  EXPECT_EQ(options.evolve.population, 512);
  EXPECT_EQ(options.verify_generations, 4);
  EXPECT_EQ(options.evolve.mutate_probability, 0.85);
  EXPECT_EQ(options.measured_share, 0.2);
  EXPECT_EQ(options.eps_greedy, 0.05);
  EXPECT_EQ(options.round_size, 64);
  EXPECT_FALSE(kMetaSchedulePolicy.drafts);
  EXPECT_TRUE(options.ingredients.empty());
}

TEST_F(MetaScheduleSearch, ScoresFiveGenerationsOf512OfItsOwnSpace) {
  Recorder model(arbitrary);
  const std::vector<Candidate> picked = batch(model, 64);
  EXPECT_EQ(picked.size(), 64u);
  ASSERT_EQ(model.populations.size(), 5u);
  EXPECT_LE(model.populations[0].size(), 512u);
  for (size_t g = 0; g < 5; ++g) {
    EXPECT_TRUE(g == 0 || model.populations[g].size() == 512) << g;
    for (const Candidate& candidate : model.populations[g]) {
      ASSERT_TRUE(own.contains(candidate));
      ASSERT_TRUE(is_legal(space, candidate));
    }
  }
  const CandidateSet distinct(picked.begin(), picked.end());
  EXPECT_EQ(distinct.size(), picked.size());
}

TEST_F(MetaScheduleSearch, TakesTheDefaultScheduleOfItsOwnSpace) {
  Recorder model(arbitrary);
  const std::vector<Candidate> without = batch(model, 64);
  options.ingredients = {Ingredient::kDefaultSchedule};
  const std::vector<Candidate> with = batch(model, 64);
  EXPECT_EQ(with.front(),
            default_schedule_of(task, space, [&](const Candidate& c) { return own.contains(c); }));
  EXPECT_EQ(with.size(), 64u);
  EXPECT_TRUE(std::equal(with.begin() + 1, with.end(), without.begin()));
}

// Three of 64 candidates are drawn; the first 61 are the best that the model saw, best first.
TEST_F(MetaScheduleSearch, PicksTheBestAndThreeAtRandom) {
  Recorder model(arbitrary);
  const std::vector<Candidate> picked = batch(model, 64);
  ASSERT_EQ(picked.size(), 64u);
  std::vector<float> seen;
  CandidateSet all;
  for (const std::vector<Candidate>& population : model.populations)
    for (const Candidate& c : population)
      if (all.insert(c).second) seen.push_back(arbitrary(c));
  std::ranges::sort(seen, std::greater());
  for (size_t i = 0; i < 61; ++i) EXPECT_EQ(arbitrary(picked[i]), seen[i]) << i;
  const CandidateSet first(model.populations[0].begin(), model.populations[0].end());
  for (size_t i = 61; i < 64; ++i) {
    EXPECT_TRUE(first.contains(picked[i])) << "drawn ones are of the first population";
    EXPECT_LT(arbitrary(picked[i]), seen[60]);
  }
}

// 0.2 x 512 measured ones, the fastest, are in the first population, and none is measured again.
TEST_F(MetaScheduleSearch, StartsFromTheBestMeasured) {
  Recorder model(arbitrary);
  double cost_s = 0;
  for (uint64_t seed = 0; seed < 3; ++seed)
    for (const Candidate& candidate : batch(model, 64, seed)) history.add(candidate, cost_s += 1);
  ASSERT_GT(history.trials().size(), 150u);
  model.populations.clear();
  const std::vector<Candidate> picked = batch(model, 64, 7);
  const CandidateSet first(model.populations[0].begin(), model.populations[0].end());
  for (const Trial& trial : history.best(102)) EXPECT_TRUE(first.contains(trial.candidate));
  for (const Candidate& candidate : picked) EXPECT_FALSE(history.tried().contains(candidate));
}

TEST_F(MetaScheduleSearch, FollowsItsModel) {
  Recorder model(arbitrary), silent(nothing);
  const auto mean = [&](CostModel& scorer) {
    float sum = 0;
    for (const Candidate& candidate : batch(scorer, 64)) sum += arbitrary(candidate);
    return sum / 64;
  };
  EXPECT_GT(mean(model), mean(silent) + 0.2f);
}

TEST_F(MetaScheduleSearch, IsOneSequenceForOneSeed) {
  Recorder model(arbitrary);
  EXPECT_EQ(batch(model, 64, 3), batch(model, 64, 3));
  EXPECT_NE(batch(model, 64, 3), batch(model, 64, 4));
}

TEST_F(MetaScheduleSearch, EndsWhereItsSpaceIsUsedUp) {
  const Task small = operator_task("relu 1");
  const Space small_space = make_space(small);
  Recorder model(arbitrary);
  const SearchModels models{*draft, &model};
  const SearchRequest request{
      small, small_space, history, memory, 64, models, kMetaSchedulePolicy.options};
  Rng rng(0);
  const std::vector<Candidate> all = kMetaSchedulePolicy.next_batch(request, rng);
  ASSERT_FALSE(all.empty());
  for (const Candidate& candidate : all) history.add(candidate, 1);
  EXPECT_TRUE(kMetaSchedulePolicy.next_batch(request, rng).empty());
}

}  // namespace
}  // namespace pruner
