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
  EXPECT_ERROR(find_mode("pamm"), "cost model \"pamm\" is unknown; use one of pam (pruner), ");
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
    const Result<ModeModels> made = make_models(mode, mode.policy->options.ingredients, {});
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
    EXPECT_EQ(needs_weights(mode), !make_models(mode, mode.policy->options.ingredients, {}).ok())
        << mode.name;
}

TEST(FindPolicy, ListsThePolicies) {
  EXPECT_EQ(*find_policy("ansor"), &kAnsorPolicy);
  EXPECT_ERROR(find_policy("halide"), "policy halide is unknown; use pruner or ansor");
}

Task machine_task() { return operator_task("matmul 128 256 128 +bias"); }

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

// Returns the candidates of three rounds, in order.
std::vector<Candidate> tried_in_rounds(const SearchPolicy& policy,
                                       const Ingredients& ingredients,
                                       CostModel* verify,
                                       uint64_t seed) {
  const Task task = machine_task();
  const Space space = make_space(task);
  const auto draft = make_draft_model();
  const SearchModels models{*draft, verify};
  SearchOptions options = policy.options;
  options.random_samples = options.evolve.population = 192;
  options.ingredients = ingredients;
  History history;
  SearchMemory memory;
  Rng rng(seed);
  std::vector<Candidate> tried;
  for (int round = 0; round < 3; ++round) {
    const std::vector<Candidate> batch =
        policy.next_batch({task, space, history, memory, 10, models, options}, rng);
    EXPECT_EQ(batch.size(), 10u);
    for (const Candidate& c : batch) {
      EXPECT_FALSE(history.tried().contains(c));
      history.add(c, machine_s(task, space, c));
      tried.push_back(c);
    }
  }
  return tried;
}

// The sum of the best times over some seeds: what one seed draws may be lucky.
double best_of_seeds(const SearchPolicy& policy,
                     const Ingredients& ingredients,
                     CostModel* verify) {
  const Task task = machine_task();
  const Space space = make_space(task);
  double sum = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    double best_s = kWorstCost;
    for (const Candidate& c : tried_in_rounds(policy, ingredients, verify, seed))
      best_s = std::min(best_s, machine_s(task, space, c));
    sum += best_s;
  }
  return sum;
}

TEST(Policies, FindWhatTheVerifyingModelKnows) {
  Oracle oracle;
  for (const SearchPolicy* policy : {&kPrunerPolicy, &kAnsorPolicy}) {
    for (const Ingredients& ingredients : {policy->options.ingredients, Ingredients()}) {
      const double drafted = best_of_seeds(kPrunerPolicy, ingredients, nullptr);
      EXPECT_LT(best_of_seeds(*policy, ingredients, &oracle), drafted)
          << policy->name << " with " << print(ingredients);
    }
  }
}

// Each ingredient alone makes another sequence of trials, and so does its removal alone.
TEST(Policies, TakeAndLeaveOutEachIngredientAlone) {
  const Ingredients elsewhere = {Ingredient::kCalibration,
                                 Ingredient::kStackedDraft,
                                 Ingredient::kWeights,
                                 Ingredient::kIncrementalTraining,
                                 Ingredient::kOffers};
  Oracle oracle;
  for (const SearchPolicy* policy : {&kPrunerPolicy, &kAnsorPolicy}) {
    const Ingredients taken = policy->takes.without(elsewhere);
    const auto tried = [&](const Ingredients& ingredients) {
      return tried_in_rounds(*policy, ingredients, &oracle, 0);
    };
    const std::vector<Candidate> published = tried({}), whole = tried(taken);
    for (unsigned i = 0; i < std::size(kIngredients); ++i) {
      if (!taken.has(Ingredient{i})) continue;
      EXPECT_FALSE(tried({Ingredient{i}}) == published) << policy->name << kIngredients[i].name;
      // The task has two sketches, and a whole search's first batch has both in any case.
      if (Ingredient{i} == Ingredient::kEachSketch) continue;
      EXPECT_FALSE(tried(taken.without({Ingredient{i}})) == whole) << kIngredients[i].name;
    }
  }
}

TEST(Policies, WithoutIngredientsHaveThePapersConstants) {
  EXPECT_TRUE(kPrunerPolicy.published);
  EXPECT_TRUE(kAnsorPolicy.published);
  EXPECT_FALSE(kUniformPolicy.published);
  const SearchOptions &pruner = kPrunerPolicy.options, &ansor = kAnsorPolicy.options;
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

TEST(MakeModels, CorrectTheDraftIfCalibrationIsAnIngredient) {
  const Task task = operator_task("matmul 128 256 128 +bias");
  const Space space = make_space(task);
  const Candidate candidate = default_schedule(task, space);
  const SearchMode& mode = **find_mode("draft-only");
  const auto moves = [&](const Ingredients& ingredients) {
    const ModeModels made = *make_models(mode, ingredients, {});
    const float before = made.draft->predict(task, space, {&candidate, 1})[0];
    const Sample sample{&task, &space, candidate, 2 / static_cast<double>(before)};
    EXPECT_TRUE(made.draft->update({&sample, 1}).ok());
    return made.draft->predict(task, space, {&candidate, 1})[0] != before;
  };
  EXPECT_TRUE(moves({Ingredient::kCalibration}));
  EXPECT_FALSE(moves(Ingredients::all().without({Ingredient::kCalibration})));
}

TEST(SplitModeName, CutsWhereTheFirstChangeBegins) {
  for (const auto& [name, base, changes] :
       {std::tuple{"ansor-xgb", "ansor-xgb", ""},
        {"draft-only+islands", "draft-only", "+islands"},
        {"pruner-without-draft", "pruner", "-without-draft"},
        {"tlp-as-published+offers", "tlp", "-as-published+offers"}}) {
    EXPECT_EQ(split_mode_name(name).base, base);
    EXPECT_EQ(split_mode_name(name).changes, changes);
  }
}

Result<ModeVariant> variant_of(const char* name, bool own_weights = true) {
  const ModeName cut = split_mode_name(name);
  return vary_mode(**find_mode(cut.base), cut.changes, own_weights);
}

std::string ingredients_of(const char* name, bool own_weights = true) {
  const Result<ModeVariant> variant = variant_of(name, own_weights);
  return variant.ok() ? print(variant->ingredients) : variant.error().message();
}

TEST(VaryMode, ReadsTheChangesFromLeftToRight) {
  EXPECT_EQ(variant_of("pruner")->ingredients, Ingredients::all());
  EXPECT_EQ(ingredients_of("pruner-as-published"), "none");
  EXPECT_EQ(ingredients_of("ansor-as-published+islands+default-schedule"),
            "default-schedule, islands");
  EXPECT_EQ(ingredients_of("ansor"),
            "exact-epsilon, incremental-training, rank-parents, distinct, crossover, "
            "legal-mutants, islands");
  EXPECT_EQ(ingredients_of("ansor-without-islands-without-crossover+stacked-draft"),
            "exact-epsilon, stacked-draft, incremental-training, rank-parents, distinct, "
            "legal-mutants");
  EXPECT_EQ(ingredients_of("metaschedule"), "none");
}

TEST(VaryMode, LeavesOutWhatTheModelCannotUse) {
  EXPECT_FALSE(variant_of("pruner", false)->ingredients.has(Ingredient::kWeights));
  EXPECT_FALSE(variant_of("draft-only")->ingredients.has(Ingredient::kStackedDraft));
  EXPECT_TRUE(variant_of("pacm-no-update")->ingredients.has(Ingredient::kStackedDraft));
  EXPECT_FALSE(variant_of("pacm-no-update")->ingredients.has(Ingredient::kIncrementalTraining));
  EXPECT_FALSE(variant_of("random")->ingredients.has(Ingredient::kIncrementalTraining));
}

TEST(VaryMode, LeavesOutPartsOfThePaperAsWell) {
  const Result<ModeVariant> without = variant_of("pruner-without-dataflow-without-memory-l1");
  ASSERT_TRUE(without.ok()) << without.error().message();
  EXPECT_FALSE(without->ablation.features.dataflow);
  EXPECT_TRUE(without->ablation.features.rows);
  EXPECT_FALSE(without->ablation.penalties.counts(Penalty::kMemoryL1));
  EXPECT_EQ(without->ingredients, Ingredients::all());
  const Result<ModeVariant> no_draft = variant_of("pruner-without-draft");
  EXPECT_EQ(no_draft->mode.policy, &kAnsorPolicy);
  // All but those that no search without drafts can take.
  EXPECT_EQ(no_draft->ingredients, kAnsorPolicy.takes);
  EXPECT_EQ(ingredients_of("pruner-as-published-without-draft"), "none");
}

// A mode cannot do without what it has not.
TEST(VaryMode, KnowsThePartsOfEachMode) {
  const std::string nothing = "it has nothing named ";
  EXPECT_ERROR(variant_of("draft-only-without-draft"), nothing + "\"draft\"");
  EXPECT_ERROR(variant_of("ansor-without-draft"), nothing + "\"draft\"");
  EXPECT_ERROR(variant_of("metaschedule-without-draft"), nothing + "\"draft\"");
  EXPECT_ERROR(variant_of("ansor-without-dataflow"), nothing + "\"dataflow\"");
  EXPECT_ERROR(variant_of("ansor-without-compute-l0"), nothing + "\"compute-l0\"");
  EXPECT_ERROR(variant_of("random-without-statement"), nothing + "\"statement\"");
  EXPECT_ERROR(variant_of("tlp-without-statement"), nothing + "\"statement\"");
  EXPECT_TRUE(variant_of("ansor-without-statement").ok());
  EXPECT_TRUE(variant_of("ansor+stacked-draft-without-compute-l0").ok());
  EXPECT_TRUE(variant_of("draft-only-without-memory-l2").ok());
  EXPECT_ERROR(variant_of("pruner-without-draft-without-draft"), nothing + "\"draft\"");
  EXPECT_ERROR(variant_of("pruner-as-published-as-published"), "it is as published already");
}

TEST(VaryMode, NamesTheIngredientsThatThereAre) {
  const std::string ansor_takes =
      "; it can take default-schedule, offers, each-sketch, neighbours, thompson-sampling, "
      "stacked-draft";
  EXPECT_ERROR(variant_of("ansor+luck"), "no ingredient is named \"luck\"" + ansor_takes);
  EXPECT_ERROR(variant_of("ansor+calibration"), "it cannot take calibration" + ansor_takes);
  EXPECT_ERROR(variant_of("ansor+islands"), "it has islands already" + ansor_takes);
  EXPECT_ERROR(variant_of("metaschedule+islands"), "it can take default-schedule");
  EXPECT_ERROR(
      variant_of("ansor-without-neighbours"),
      "it has nothing named \"neighbours\"; leave out exact-epsilon, "
      "incremental-training, rank-parents, distinct, crossover, legal-mutants, islands, or "
      "of the published search statement");
  EXPECT_ERROR(variant_of("pruner+"), "no ingredient is named \"\"; it can take none");
  EXPECT_ERROR(variant_of("pruner-as-published2"), "\"2\" is no change of a mode");
}

TEST(SearchMode, WithoutItsModelSaysSo) {
  SearchMode mode = **find_mode("ansor");
  mode.model = "untrained";
  EXPECT_FALSE(mode.learns());
  EXPECT_EQ(update_mode(mode), "untrained");
  EXPECT_EQ(display_name("ansor", mode), "ansor-untrained");
  EXPECT_EQ(display_name("ansor", **find_mode("ansor")), "ansor");
  const ModeModels made = *make_models(mode, mode.policy->options.ingredients, {});
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
  const double drafted = best_of_seeds(kPrunerPolicy, kPrunerPolicy.options.ingredients, &silent);
  const double drawn = best_of_seeds(kAnsorPolicy, kAnsorPolicy.options.ingredients, &silent);
  EXPECT_LT(drafted, drawn);
}

}  // namespace
}  // namespace pruner
