#include "search/search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/draft.h"
#include "space/carry_over.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

Task operator_task(const char* text) {
  return make_task(*parse_operator(text), *parse_target("llvm -mcpu=haswell", 2), text);
}

constexpr const char* kOperators[] = {"matmul 512 512 512",
                                      "conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu",
                                      "softmax 64 1000",
                                      "relu 7 13",
                                      "depthwise_conv2d 1 32 28 28 3 3 padding=1"};

TEST(DefaultSchedule, IsLegalAndTheSameEveryTime) {
  for (const char* text : kOperators) {
    const Task task = operator_task(text);
    const Space space = make_space(task);
    const Candidate chosen = default_schedule(task, space);
    EXPECT_TRUE(is_legal(space, chosen)) << text;
    EXPECT_EQ(chosen, default_schedule(task, space)) << text;
  }
}

TEST(DefaultSchedule, DraftsNoSlowerThanRandomOnes) {
  for (const char* text : kOperators) {
    const Task task = operator_task(text);
    const Space space = make_space(task);
    Rng rng(7);
    const std::vector<Candidate> random = sample_legal(space, 200, rng);
    const auto draft = make_draft_model();
    const Candidate chosen = default_schedule(task, space);
    const float score = draft->predict(task, space, {&chosen, 1})[0];
    for (const float other : draft->predict(task, space, random)) EXPECT_GE(score, other) << text;
  }
}

// A range of shapes has a search at each of a dozen shapes; all but one begin at a shape nearby.
TEST(BestByDraft, FindsAsGoodOnesFromThoseOfAnotherShape) {
  const std::pair<const char*, const char*> neighbours[] = {
      {"matmul 512 768 768", "matmul 300 768 768"},
      {"matmul 64 768 3072", "matmul 13 768 3072"},
      {"conv2d 4 64 56 56 64 3 3 padding=1", "conv2d 1 64 56 56 64 3 3 padding=1"}};
  for (const auto& [text, other] : neighbours) {
    const Task from = operator_task(text), to = operator_task(other);
    const Space from_space = make_space(from), space = make_space(to);
    DraftSearch search;
    for (const Candidate& good : best_by_draft(from, from_space, {}))
      if (const auto like = nearest_like(from_space, good, space)) search.near.push_back(*like);
    ASSERT_FALSE(search.near.empty()) << other;
    const std::vector<Candidate> near = best_by_draft(to, space, search);
    EXPECT_LE(near.size(), 32u);
    const auto seconds = [&](const Candidate& c) {
      return draft_latency_s(make_loop_nest(space, c), space.target);
    };
    EXPECT_TRUE(std::ranges::is_sorted(near, {}, seconds)) << other;
    EXPECT_LE(seconds(near.front()), 1.15 * seconds(default_schedule(to, space))) << other;
  }
}

TEST(BestByDraft, GivesOnlyWhatIsAccepted) {
  const Task task = operator_task("matmul 512 512 512");
  const Space space = make_space(task);
  const SketchId sketch = default_schedule(task, space).sketch;
  const auto is_other = [&](const Candidate& c) { return c.sketch != sketch; };
  const std::vector<Candidate> others = best_by_draft(task, space, {is_other, {}});
  EXPECT_FALSE(others.empty());
  EXPECT_TRUE(std::ranges::all_of(others, is_other));
  EXPECT_EQ(default_schedule_of(task, space, is_other), others.front());
  EXPECT_TRUE(best_by_draft(task, space, {[](const Candidate&) { return false; }, {}}).empty());
}

TEST(SampleLegal, GivesDistinctLegalCandidatesAndEndsInSmallSpaces) {
  for (const char* text : kOperators) {
    const Task task = operator_task(text);
    const Space space = make_space(task);
    Rng rng(0);
    const std::vector<Candidate> drawn = sample_legal(space, 300, rng);
    const CandidateSet distinct(drawn.begin(), drawn.end());
    EXPECT_EQ(distinct.size(), drawn.size());
    EXPECT_FALSE(drawn.empty()) << text;
    for (const Candidate& candidate : drawn) EXPECT_TRUE(is_legal(space, candidate)) << text;
  }
}

class Evolve : public testing::TestWithParam<int> {};

TEST_P(Evolve, GivesDistinctLegalCandidatesBestFirstWithoutTheExcluded) {
  const Task task = operator_task("matmul 512 512 512");
  const Space space = make_space(task);
  Rng rng(0);
  const std::vector<Candidate> start = sample_legal(space, 100, rng);
  const CandidateSet excluded(start.begin(), start.end());
  const auto draft = make_draft_model();
  const std::vector<Scored> found = evolve(task,
                                           space,
                                           start,
                                           *draft,
                                           {.population = 100,
                                            .generations = 3,
                                            .elites = 12,
                                            .islands = GetParam(),
                                            .exclude = &excluded},
                                           rng);
  ASSERT_FALSE(found.empty());
  CandidateSet seen;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(is_legal(space, found[i].candidate));
    EXPECT_TRUE(seen.insert(found[i].candidate).second);
    EXPECT_FALSE(excluded.contains(found[i].candidate));
    EXPECT_GE(found[i == 0 ? 0 : i - 1].score, found[i].score);
  }
}

TEST_P(Evolve, BeatsRandomChoiceOfAsManyCandidates) {
  const Task task = operator_task("conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu");
  const Space space = make_space(task);
  const auto draft = make_draft_model();
  Rng rng(1);
  const EvolveOptions options{
      .population = 256, .generations = 4, .elites = 32, .islands = GetParam()};
  const float evolved =
      evolve(task, space, sample_legal(space, 256, rng), *draft, options, rng)[0].score;
  float best = 0;
  for (const float score : draft->predict(task, space, sample_legal(space, 256 * 5, rng)))
    best = std::max(best, score);
  EXPECT_GT(evolved, best);
}

// As published, a population has duplicates and parents by score; the results have no duplicates.
TEST(EvolveAsPublished, GivesDistinctLegalCandidatesBestFirst) {
  const Task task = operator_task("matmul 512 512 512");
  const Space space = make_space(task);
  const auto draft = make_draft_model();
  Rng rng(0);
  const std::vector<Candidate> start = sample_legal(space, 100, rng);
  std::vector<Candidate> twice = start;
  twice.insert(twice.end(), start.begin(), start.end());
  const EvolveOptions options{.population = 100, .generations = 3, .ingredients = {}};
  const std::vector<Scored> found = evolve(task, space, twice, *draft, options, rng);
  ASSERT_GT(found.size(), start.size());
  CandidateSet seen;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(is_legal(space, found[i].candidate));
    EXPECT_TRUE(seen.insert(found[i].candidate).second);
    EXPECT_GE(found[i == 0 ? 0 : i - 1].score, found[i].score);
  }
}

INSTANTIATE_TEST_SUITE_P(Islands, Evolve, testing::Values(1, 4));

// A machine that is a function of the candidate: sketches run at fixed shares of their draft.
double fake_cost_s(const Task& task, const Space& space, const Candidate& candidate) {
  const float score = make_draft_model()->predict(task, space, {&candidate, 1})[0];
  return 1 / score * (1 + 0.3 * static_cast<double>(CandidateHash{}(candidate) % 100) / 100) *
         (1 + candidate.sketch.value);
}

std::vector<Candidate> run_rounds(const Task& task, int rounds, uint64_t seed, int jobs) {
  const Space space = make_space(task);
  const auto model = make_calibrated_draft_model({.jobs = jobs});
  History history;
  SearchMemory memory;
  const SearchModels models{*model};
  SearchOptions options;
  options.evolve.jobs = jobs;
  const SearchRequest request{task, space, history, memory, 10, models, options};
  Rng rng(seed);
  std::vector<Candidate> tried;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Sample> samples;
    for (const Candidate& c : kPrunerPolicy.next_batch(request, rng)) {
      samples.push_back({&task, &space, c, fake_cost_s(task, space, c)});
      tried.push_back(c);
    }
    for (const Sample& s : samples) history.add(s.candidate, s.cost_s);
    EXPECT_TRUE(model->update(samples).ok());
  }
  return tried;
}

TEST(NextBatch, BeginsWithTheDefaultScheduleAndTriesEverySketch) {
  const Task task = operator_task("matmul 512 512 512");
  const Space space = make_space(task);
  const std::vector<Candidate> tried = run_rounds(task, 1, 0, 1);
  ASSERT_EQ(tried.size(), 10u);
  EXPECT_EQ(tried[0], default_schedule(task, space));
  std::vector<bool> seen(space.sketches.size());
  for (const Candidate& c : tried) seen[static_cast<size_t>(c.sketch.value)] = true;
  EXPECT_EQ(std::ranges::count(seen, false), 0);
}

TEST(NextBatch, BeginsWithTheDefaultScheduleInEveryModeThatTakesIt) {
  const Task task = operator_task("matmul 512 512 512");
  const Space space = make_space(task);
  const Candidate first = default_schedule(task, space);
  const auto model = make_draft_model();
  for (const SearchPolicy* policy : {&kPrunerPolicy, &kAnsorPolicy}) {
    for (const Ingredients& ingredients :
         {Ingredients(), Ingredients{Ingredient::kDefaultSchedule}}) {
      History history;
      SearchMemory memory;
      const SearchModels models{*model, model.get()};
      SearchOptions options = policy->options;
      options.ingredients = ingredients;
      Rng rng(0);
      const std::vector<Candidate> batch =
          policy->next_batch({task, space, history, memory, 10, models, options}, rng);
      ASSERT_EQ(batch.size(), 10u);
      EXPECT_EQ(batch.front() == first, !ingredients.empty()) << policy->name;
    }
  }
}

TEST(NextBatch, NeverTriesACandidateTwice) {
  for (const char* text : kOperators) {
    const std::vector<Candidate> tried = run_rounds(operator_task(text), 4, 0, 1);
    const CandidateSet distinct(tried.begin(), tried.end());
    EXPECT_EQ(distinct.size(), tried.size()) << text;
  }
}

TEST(NextBatch, IsOneSequenceForOneSeedWhateverTheJobs) {
  const Task task = operator_task("matmul 512 512 512");
  const std::vector<Candidate> tried = run_rounds(task, 4, 3, 1);
  EXPECT_EQ(tried, run_rounds(task, 4, 3, 2));
  EXPECT_NE(tried, run_rounds(task, 4, 4, 1));
}

TEST(NextBatch, IsEmptyWhenTheSpaceIsUsedUp) {
  const Task task = operator_task("relu 1");
  const Space space = make_space(task);
  const auto model = make_draft_model();
  for (const SearchPolicy* policy : {&kPrunerPolicy, &kUniformPolicy}) {
    History history;
    SearchMemory memory;
    const SearchModels models{*model};
    const SearchOptions options;
    const SearchRequest request{task, space, history, memory, 10, models, options};
    Rng rng(0);
    size_t rounds = 0;
    for (; rounds < 1000; ++rounds) {
      const std::vector<Candidate> batch = policy->next_batch(request, rng);
      if (batch.empty()) break;
      for (const Candidate& c : batch) history.add(c, 1);
    }
    EXPECT_LT(rounds, 1000u) << policy->name;
  }
}

// A model that must not be asked.
class NoModel : public CostModel {
  std::vector<float> predict(const Task&, const Space&, std::span<const Candidate>) override {
    ADD_FAILURE() << "a model was asked";
    return {};
  }
  Result<Unit> update(std::span<const Sample>) override { return Unit{}; }
};

// The fewest decisions in which the candidate differs from one of the others.
size_t nearest(const Candidate& candidate, const std::vector<Candidate>& others) {
  size_t least = 1000;
  for (const Candidate& other : others) {
    if (other == candidate || other.sketch != candidate.sketch) continue;
    size_t differing = 0;
    for (size_t i = 0; i < other.decisions.size(); ++i)
      differing += other.decisions[i] != candidate.decisions[i];
    least = std::min(least, differing);
  }
  return least;
}

TEST(UniformPolicy, DrawsAShareAndEvolvesTheRestWithoutAModel) {
  const Task task = operator_task("conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu");
  const Space space = make_space(task);
  NoModel model;
  History history;
  SearchMemory memory;
  const SearchModels models{model};
  SearchOptions options;
  const SearchRequest request{task, space, history, memory, 64, models, options};
  size_t near_when[2] = {0, 0};
  for (const int evolved : {0, 1}) {
    options.eps_greedy = evolved ? 0.5 : 1;
    Rng rng(1);
    const std::vector<Candidate> batch = kUniformPolicy.next_batch(request, rng);
    ASSERT_EQ(batch.size(), 64u);
    EXPECT_EQ(CandidateSet(batch.begin(), batch.end()).size(), 64u);
    for (const Candidate& c : batch) {
      EXPECT_TRUE(is_legal(space, c));
      near_when[evolved] += nearest(c, batch) <= 3;
    }
  }
  EXPECT_LE(near_when[0], 2u);  // drawn ones have nothing to do with one another
  EXPECT_GE(near_when[1], 4u);
}

}  // namespace
}  // namespace pruner
