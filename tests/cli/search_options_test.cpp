#include "cli/search_options.h"

#include "golden.h"
#include "model/learned_model.h"
#include "model/shipped_weights.h"

namespace pruner {
namespace {

TEST(SearchOptions, PamStartsFromTheProgramsWeightsOnACpu) {
  if (const Result<Unit> able = find_libraries_of("pam"); !able.ok())
    GTEST_SKIP() << able.error().message();
  const Target cpu = *parse_target("llvm -mcpu=haswell", 1);
  const Target gpu = *parse_target("cuda --arch=sm_80", 0);
  const auto start =
      [](const ContestantOptions& options, const ModeOptions& how, const Target& target) {
        const Result<Contestant> made = read_contestant(options, how, {}, target, false);
        EXPECT_TRUE(made.ok()) << made.error().message();
        return made.ok() ? made->models.load_model : "";
      };
  ContestantOptions none, mine, ansor;
  none.load_model = "none";
  mine.load_model = "mine.safetensors";
  ansor.cost_model = "mlp";
  ModeOptions published, trained_as_published;
  published.search = trained_as_published.training = "as-published";
  EXPECT_EQ(start({}, {}, cpu), kShippedWeights);
  EXPECT_EQ(start({}, {}, gpu), "");
  EXPECT_EQ(start(none, {}, cpu), "");
  EXPECT_EQ(start(mine, {}, cpu), "mine.safetensors");
  EXPECT_EQ(start(ansor, {}, cpu), "");
  EXPECT_EQ(start({}, published, cpu), "");
  EXPECT_EQ(start({}, trained_as_published, cpu), "");

  ContestOptions contest;
  contest.modes = "pruner,pruner-without-weights,pruner-as-published";
  const Result<std::vector<Contestant>> contestants = read_contestants(contest, {}, {}, &cpu);
  ASSERT_TRUE(contestants.ok()) << contestants.error().message();
  EXPECT_EQ((*contestants)[0].models.load_model, kShippedWeights);
  EXPECT_EQ((*contestants)[1].models.load_model, "");
  EXPECT_EQ((*contestants)[2].models.load_model, "");
}

TEST(SearchOptions, ModesTakeAndLeaveOutIngredients) {
  const Target cpu = *parse_target("llvm -mcpu=haswell", 1);
  const auto ingredients = [&](const char* mode, const char* training = "") {
    ContestantOptions options;
    options.cost_model = mode;
    ModeOptions how;
    how.training = training;
    how.allow_untrained = true;
    const Result<Contestant> made = read_contestant(options, how, {}, cpu, false);
    EXPECT_TRUE(made.ok()) << made.error().message();
    return made.ok() ? print(made->search.ingredients) : "";
  };
  EXPECT_EQ(ingredients("random+default-schedule-without-islands"),
            "default-schedule, exact-epsilon, rank-parents, distinct, crossover, legal-mutants");
  EXPECT_EQ(ingredients("draft-only-as-published+neighbours"), "neighbours");
  ContestantOptions with_policy;
  with_policy.cost_model = "random";
  with_policy.policy = "uniform";
  EXPECT_TRUE(read_contestant(with_policy, {}, {}, cpu, false)->search.ingredients.empty());
  with_policy.cost_model = "random+islands";
  EXPECT_ERROR(read_contestant(with_policy, {}, {}, cpu, false), "it cannot take islands");
}

TEST(SearchOptions, TrainingAsPublishedIsWithoutItsIngredients) {
  if (const Result<Unit> able = find_libraries_of("pam"); !able.ok())
    GTEST_SKIP() << able.error().message();
  const Target cpu = *parse_target("llvm -mcpu=haswell", 1);
  const auto made = [&](const char* mode, const char* training) {
    ContestantOptions options;
    options.cost_model = mode;
    ModeOptions how;
    how.training = training;
    return *read_contestant(options, how, {}, cpu, false);
  };
  const Ingredients of_training = {
      Ingredient::kIncrementalTraining, Ingredient::kStackedDraft, Ingredient::kWeights};
  EXPECT_FALSE(made("pruner", "").models.as_published);
  EXPECT_TRUE(made("pruner", "as-published").models.as_published);
  EXPECT_EQ(made("pruner", "as-published").search.ingredients,
            Ingredients::all().without(of_training));
  EXPECT_TRUE(made("ansor-as-published", "").models.as_published);
  EXPECT_FALSE(made("ansor-as-published+incremental-training", "").models.as_published);
}

TEST(AblatedPairs, AreTheModeWithAndWithoutEachPart) {
  const Target cpu = *parse_target("llvm -mcpu=haswell", 1);
  const std::vector<AblatedPair> all = *ablated_pairs("pruner", "", cpu);
  EXPECT_EQ(all.size(), std::size(kIngredients) - 1) << "all but offers";
  EXPECT_EQ(all[0].part, "default-schedule");
  EXPECT_EQ(all[0].with, "pruner");
  EXPECT_EQ(all[0].without, "pruner-without-default-schedule");
  const std::vector<AblatedPair> two = *ablated_pairs("ansor", "islands,neighbours", cpu);
  EXPECT_EQ(ablated_modes("", "ansor", two),
            "ansor-as-published,ansor,ansor-without-islands,ansor+neighbours");
  EXPECT_EQ(ablated_modes("random", "ansor", two),
            "random,ansor,ansor-without-islands,ansor+neighbours");
  const std::vector<AblatedPair> published = *ablated_pairs("ansor-as-published", "", cpu);
  EXPECT_EQ(published[0].with, "ansor-as-published+default-schedule");
  EXPECT_EQ(published[0].without, "ansor-as-published");
  const std::vector<AblatedPair> paper = *ablated_pairs("pruner-as-published", "draft", cpu);
  EXPECT_EQ(paper[0].with, "pruner-as-published");
  EXPECT_EQ(paper[0].without, "pruner-as-published-without-draft");
  EXPECT_ERROR(ablated_pairs("ansor", "weights", cpu), "--parts: ansor has or takes ");
  EXPECT_ERROR(ablated_pairs("ansor", "dataflow", cpu), "published search statement, not \"data");
  EXPECT_ERROR(ablated_pairs("draft-only", "draft", cpu), ", not \"draft\"");
  EXPECT_ERROR(ablated_pairs("ansor", "islands,islands", cpu), "--parts: islands is there twice");
  EXPECT_EQ(ablated_pairs("metaschedule", "", cpu)->front().with, "metaschedule+default-schedule");
}

}  // namespace
}  // namespace pruner
