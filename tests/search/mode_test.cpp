#include "search/mode.h"

#include <set>

#include "golden.h"
#include "space/operator_task.h"

namespace pruner {
namespace {

TEST(FindMode, KnowsThePublishedSystemsByTheirNames) {
  for (const auto& [name, mode, policy] : {std::tuple{"pruner", "pam", &kPrunerPolicy},
                                           {"moa-pruner", "pam-siamese-update", &kPrunerPolicy},
                                           {"ansor", "mlp", &kAnsorPolicy},
                                           {"tenset-mlp", "mlp-no-update", &kAnsorPolicy},
                                           {"tlp", "tlp-no-update", &kAnsorPolicy},
                                           {"ansor-xgb", "xgb", &kAnsorPolicy},
                                           {"metaschedule", "metaschedule", &kMetaSchedulePolicy},
                                           {"pam", "pam", &kPrunerPolicy}}) {
    const Result<const SearchMode*> found = find_mode(name);
    ASSERT_TRUE(found.ok()) << name;
    EXPECT_EQ((*found)->name, mode);
    EXPECT_EQ((*found)->policy, policy) << name;
  }
  EXPECT_ERROR(find_mode("pamm"), "cost model pamm is unknown; use one of pam (pruner), ");
}

TEST(FindMode, NamesAreUnlikeOneAnother) {
  std::set<std::string_view> names;
  for (const SearchMode& mode : kSearchModes) {
    EXPECT_TRUE(names.insert(mode.name).second) << mode.name;
    EXPECT_TRUE(mode.alias.empty() || names.insert(mode.alias).second) << mode.alias;
  }
}

TEST(MakeModels, VerifyAsTheModeSays) {
  for (const SearchMode& mode : kSearchModes) {
    const Result<ModeModels> made = make_models(mode, *mode.policy, {});
    const bool pretrained = mode.model.ends_with("-update");
    ASSERT_EQ(made.ok(), !pretrained) << mode.name;
    if (made.ok()) {
      EXPECT_EQ(made->verify != nullptr, mode.name != "draft-only") << mode.name;
    } else {
      EXPECT_ERROR(made, "needs weights to start from: --load-model FILE");
    }
  }
}

TEST(SearchMode, SaysHowItsModelChanges) {
  const auto update_of = [](const char* name) { return update_mode(**find_mode(name)); };
  EXPECT_EQ(update_of("ansor"), "online");
  EXPECT_EQ(update_of("metaschedule"), "online");
  EXPECT_EQ(update_of("moa-pruner"), "momentum");
  EXPECT_EQ(update_of("tenset-mlp"), "offline");
  EXPECT_EQ(update_of("draft-only"), "draft only");
  EXPECT_EQ(update_of("random"), "random");
}

TEST(SearchMode, NeedsWeightsWhereMakingItsModelsDoes) {
  for (const SearchMode& mode : kSearchModes)
    EXPECT_EQ(needs_weights(mode), !make_models(mode, *mode.policy, {}).ok()) << mode.name;
}

TEST(FindPolicy, ListsThePolicies) {
  EXPECT_EQ(*find_policy("ansor"), &kAnsorPolicy);
  EXPECT_ERROR(find_policy("halide"), "policy halide is unknown; use pruner or ansor");
}

// Returns a machine's time: the draft's time times a fixed factor, which the draft cannot know.
double machine_s(const Task& task, const Space& space, const Candidate& candidate) {
  const float score = make_draft_model()->predict(task, space, {&candidate, 1})[0];
  return (1 + static_cast<double>(CandidateHash{}(candidate) % 1000) / 100) / score;
}

// Knows what the machine takes.
class Oracle : public CostModel {
 public:
  std::vector<float> predict(const Task& task,
                             const Space& space,
                             std::span<const Candidate> batch) override {
    std::vector<float> scores;
    for (const Candidate& c : batch)
      scores.push_back(static_cast<float>(1 / machine_s(task, space, c)));
    return scores;
  }
  Result<Unit> update(std::span<const Sample>) override { return Unit{}; }
};

// Seconds of the best of three rounds.
double best_after_rounds(const SearchPolicy& policy,
                         CostModel* verify,
                         uint64_t seed,
                         int* tried_twice) {
  const Task task = operator_task("matmul 128 256 128 +bias");
  const Space space = make_space(task);
  const auto draft = make_draft_model();
  const SearchModels models{*draft, verify};
  SearchOptions options = policy.options;
  options.random_samples = options.evolve.population = 192;
  History history;
  SearchMemory memory;
  Rng rng(seed);
  for (int round = 0; round < 3; ++round) {
    const std::vector<Candidate> batch =
        policy.next_batch({task, space, history, memory, 10, models, options}, rng);
    EXPECT_EQ(batch.size(), 10u);
    for (const Candidate& c : batch) {
      *tried_twice += history.tried().contains(c);
      history.add(c, machine_s(task, space, c));
    }
  }
  return history.best_cost_s();
}

// The sum of it over some seeds: what one seed draws may be lucky.
double best_of_seeds(const SearchPolicy& policy, CostModel* verify, int* tried_twice) {
  double sum = 0;
  for (uint64_t seed = 0; seed < 8; ++seed)
    sum += best_after_rounds(policy, verify, seed, tried_twice);
  return sum;
}

TEST(Policies, FindWhatTheVerifyingModelKnows) {
  Oracle oracle;
  int tried_twice = 0;
  for (const auto& [policy, drafts] : {std::pair{&kPrunerPolicy, &kPrunerPolicy},
                                       {&kAnsorPolicy, &kPrunerPolicy},
                                       {&kPublishedPrunerPolicy, &kPublishedPrunerPolicy},
                                       {&kPublishedAnsorPolicy, &kPrunerPolicy}}) {
    const double drafted = best_of_seeds(*drafts, nullptr, &tried_twice);
    EXPECT_LT(best_of_seeds(*policy, &oracle, &tried_twice), drafted) << policy->name;
  }
  EXPECT_EQ(tried_twice, 0);
}

TEST(Policies, HaveAPublishedFormWithThePapersConstants) {
  EXPECT_EQ(kPrunerPolicy.published, &kPublishedPrunerPolicy);
  EXPECT_EQ(kAnsorPolicy.published, &kPublishedAnsorPolicy);
  EXPECT_EQ(kUniformPolicy.published, nullptr);
  const SearchOptions &pruner = kPublishedPrunerPolicy.options,
                      &ansor = kPublishedAnsorPolicy.options;
  EXPECT_EQ(pruner.evolve.population, 1536);
  EXPECT_EQ(pruner.draft_generations, 2);
  EXPECT_EQ(pruner.draft_size, 512u);
  EXPECT_EQ(pruner.redraft_every, 2);
  EXPECT_EQ(pruner.verify_generations, 1);
  EXPECT_EQ(pruner.eps_greedy, 0.1);
  EXPECT_EQ(ansor.evolve.population, 2048);
  EXPECT_EQ(ansor.verify_generations, 4);
  EXPECT_EQ(ansor.measured_share, 0.2);
  EXPECT_EQ(ansor.eps_greedy, 0.05);
}

// A published search has no calibrated draft, no stacked model and no part of ours.
TEST(MakeModels, LeaveTheDraftAsItIsWherePublished) {
  const Task task = operator_task("matmul 128 256 128 +bias");
  const Space space = make_space(task);
  const Candidate candidate = default_schedule(task, space);
  const SearchMode& mode = **find_mode("draft-only");
  const auto moves = [&](const SearchPolicy& policy) {
    const ModeModels made = *make_models(mode, policy, {});
    const float before = made.draft->predict(task, space, {&candidate, 1})[0];
    const Sample sample{&task, &space, candidate, 2 / static_cast<double>(before)};
    EXPECT_TRUE(made.draft->update({&sample, 1}).ok());
    return made.draft->predict(task, space, {&candidate, 1})[0] != before;
  };
  EXPECT_TRUE(moves(kPrunerPolicy));
  EXPECT_FALSE(moves(kPublishedPrunerPolicy));
}

TEST(SearchMode, WithoutItsModelSaysSo) {
  SearchMode mode = **find_mode("ansor");
  mode.model = "untrained";
  EXPECT_FALSE(mode.learns());
  EXPECT_EQ(update_mode(mode), "untrained");
  EXPECT_EQ(display_name("ansor", mode), "ansor-untrained");
  EXPECT_EQ(display_name("ansor", **find_mode("ansor")), "ansor");
  const ModeModels made = *make_models(mode, *mode.policy, {});
  const Task task = operator_task("matmul 128 256 128 +bias");
  const Space space = make_space(task);
  const Candidate candidate = default_schedule(task, space);
  EXPECT_TRUE(made.verify->predict(task, space, {&candidate, 1}).empty());
}

// Without scores the drafts are taken in their order, and Ansor's policy draws.
class Silent : public CostModel {
 public:
  std::vector<float> predict(const Task&, const Space&, std::span<const Candidate>) override {
    return {};
  }
  Result<Unit> update(std::span<const Sample>) override { return Unit{}; }
};

TEST(Policies, GoOnWithoutScores) {
  Silent silent;
  int tried_twice = 0;
  const double drafted = best_of_seeds(kPrunerPolicy, &silent, &tried_twice);
  const double drawn = best_of_seeds(kAnsorPolicy, &silent, &tried_twice);
  EXPECT_LT(drafted, drawn);
  EXPECT_EQ(tried_twice, 0);
}

}  // namespace
}  // namespace pruner
