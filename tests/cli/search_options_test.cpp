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

}  // namespace
}  // namespace pruner
