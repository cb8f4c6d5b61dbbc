#include "report/comparison.h"

#include "golden.h"

namespace pruner {
namespace {

/// Ansor's final latency is 10 ms and 12 ms; pruner reaches one, draft none of them.
Comparison two_seeds() {
  return {.subject = "resnet_50, 100 trials",
          .device = "cpu",
          .modes = {{"ansor", "online"}, {"pruner", "online"}, {"draft", "draft only"}},
          .curves = {
              {"ansor", 0, 100, 50, true, {{10, 5, 30e-3}, {40, 20, 10.05e-3}, {90, 45, 10e-3}}},
              {"pruner", 0, 100, 40, true, {{10, 4, 20e-3}, {20, 8, 9e-3}}},
              {"draft", 0, 100, 30, true, {{10, 3, 15e-3}}},
              {"ansor", 1, 100, 60, true, {{10, 6, 12e-3}}},
              {"pruner", 1, 100, 44, true, {{10, 4, 20e-3}, {30, 13, 12.13e-3}}},
              {"draft", 1, 100, 32, true, {}},
          }};
}

TEST(Reach, IsTheFirstPointWithinOnePercentOrNever) {
  const Comparison all = two_seeds();
  const Reached there = reach(*all.curve("ansor", 0), 10e-3);
  EXPECT_TRUE(there.ever());
  EXPECT_EQ(there.trials, 40);
  EXPECT_EQ(there.seconds, 20);
  const Reached never = reach(*all.curve("pruner", 1), 12e-3);
  EXPECT_FALSE(never.ever());
  EXPECT_TRUE(std::isinf(never.seconds));
}

TEST(Spread, IsTheMedianTheLeastAndTheMost) {
  EXPECT_FALSE(spread({}).has_value());
  const Spread three = *spread({9, 1, 2});
  EXPECT_EQ(three.median, 2);
  EXPECT_EQ(three.least, 1);
  EXPECT_EQ(three.most, 9);
  EXPECT_EQ(spread({4, 1, 2, 9})->median, 3);
}

TEST(Standings, AreSharesOfTheFirstModesBudgetAndOfItsOwnFirstReach) {
  const std::vector<Standing> all = standings(two_seeds());
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].reached, 2);
  EXPECT_EQ(all[0].trials_of_reach->ratio.high, 1);
  EXPECT_DOUBLE_EQ(all[0].trials_of_budget->high, 0.4);
  const Standing& pruner = all[1];
  EXPECT_EQ(pruner.reached, 1);
  EXPECT_DOUBLE_EQ(pruner.trials_of_budget->low, 20. / 100);
  EXPECT_DOUBLE_EQ(pruner.time_of_budget->low, 8. / 50);
  EXPECT_DOUBLE_EQ(pruner.trials_of_reach->ratio.low, 20. / 40);
  EXPECT_DOUBLE_EQ(pruner.time_of_reach->ratio.low, 8. / 20);
  EXPECT_TRUE(std::isinf(pruner.trials_of_reach->ratio.high));
  EXPECT_DOUBLE_EQ(pruner.latency_of_measure->ratio.low, 0.9);
  EXPECT_EQ(all[2].reached, 0);
  EXPECT_TRUE(std::isinf(all[2].trials->median));
}

TEST(Standings, LeaveASeedOutThatWasInterrupted) {
  Comparison comparison = two_seeds();
  for (size_t i = 3; i < 6; ++i) comparison.curves[i].complete = false;
  EXPECT_EQ(standings(comparison)[1].seeds, 1);
  for (TuningCurve& curve : comparison.curves) curve.complete = false;
  EXPECT_EQ(standings(comparison)[1].seeds, 2) << "there is nothing better to show";
}

TEST(PrintComparison, IsTheSummaryTable) {
  EXPECT_GOLDEN("report/comparison.txt", print_comparison(two_seeds()));
}

/// Five seeds of two published modes and of two with ingredients: pruner reaches the latency of
/// ansor-as-published in a fifth of the trials, but ends level with it.
Comparison five_seeds() {
  Comparison comparison{.subject = "matmul, 100 trials",
                        .device = "cpu",
                        .modes = {{"ansor-as-published", "online", "none"},
                                  {"pruner", "online", "default-schedule, islands"},
                                  {"pruner-as-published", "online", "none"}},
                        .curves = {}};
  const auto add = [&](const char* mode, uint64_t seed, std::vector<CurvePoint> points) {
    comparison.curves.push_back({mode, seed, 100, 50, true, std::move(points)});
  };
  const double level[] = {0.98, 1.01, 1.0, 0.99, 1.02};
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const double final_s = (10 + static_cast<double>(seed)) * 1e-3;
    const auto trials = static_cast<int64_t>(50 + 2 * seed);
    add("ansor-as-published", seed, {{10, 5, 3e-2}, {trials, 25, final_s}});
    add("pruner",
        seed,
        {{2, 1, 2e-2}, {trials / 5, 5, 1.005 * final_s}, {80, 40, level[seed] * final_s}});
    add("pruner-as-published", seed, {{10, 5, 4e-2}, {90, 45, (seed < 3 ? 1.2 : 1) * final_s}});
  }
  return comparison;
}

TEST(PrintComparison, ShowsThePublishedModesBesideOneAnotherFirst) {
  const Comparison comparison = five_seeds();
  EXPECT_GOLDEN("report/comparison_published.txt",
                print_comparison(comparison) + print_conclusions(comparison));
}

TEST(PrintConclusions, NeedFiveSeeds) {
  const std::string text = print_conclusions(two_seeds());
  EXPECT_NE(text.find("No conclusion, since the seeds are too few: 2 of 5 seeds."),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("p = "), std::string::npos) << text;
}

TEST(CurvesSvg, DrawsTheMedianWithinItsBand) {
  EXPECT_GOLDEN("report/comparison_band.svg", curves_svg(five_seeds()));
}

TEST(PrintComparison, HasDashesWhereNothingIsKnown) {
  Comparison comparison = two_seeds();
  for (TuningCurve& curve : comparison.curves) curve.points.clear();
  const std::string text = print_comparison(comparison);
  const size_t line = text.find("| Trials to it  ");
  ASSERT_NE(line, std::string::npos) << text;
  EXPECT_LT(text.find("| -", line), text.find('\n', line)) << text;
}

TEST(CurvesTsv, HasALineAPointAndTheEnd) {
  EXPECT_GOLDEN("report/comparison.tsv", curves_tsv(two_seeds()));
}

TEST(CurvesSvg, DrawsAModeInBothPanels) {
  EXPECT_GOLDEN("report/comparison.svg", curves_svg(two_seeds()));
}

TEST(CompleteCurves, AreWhatJsonKeepsOfSeedsThatWereNotInterrupted) {
  Comparison comparison = two_seeds();
  for (size_t i = 3; i < 6; ++i) comparison.curves[i].complete = false;
  const auto read = complete_curves(comparison_json(comparison), comparison);
  ASSERT_TRUE(read.ok()) << read.error().message();
  ASSERT_EQ(read->size(), 3u);
  comparison.curves.resize(3);
  const std::string tsv = curves_tsv(comparison);
  comparison.curves = *read;
  EXPECT_EQ(curves_tsv(comparison), tsv);
}

TEST(CompleteCurves, AreOfTheSameComparison) {
  const Json saved = comparison_json(two_seeds());
  Comparison now = two_seeds();
  now.subject = "resnet_18, 100 trials";
  EXPECT_ERROR(complete_curves(saved, now), "of resnet_50, 100 trials, not resnet_18, 100 trials");
  now = two_seeds();
  now.device = "gpu";
  EXPECT_ERROR(complete_curves(saved, now), "of another device, cpu");
  now = two_seeds();
  now.modes.pop_back();
  EXPECT_ERROR(complete_curves(saved, now), "of the modes ansor,pruner,draft");
  EXPECT_ERROR(complete_curves(Json::object(), now), "missing key \"subject\"");
}

TEST(ComparisonJson, HasTheTablesNumbersAndTheCurves) {
  const Json json = comparison_json(two_seeds());
  EXPECT_EQ(json["modes"][1]["mode"], "pruner");
  EXPECT_EQ(json["modes"][1]["trials"]["low"], 20);
  EXPECT_TRUE(json["modes"][1]["trials"]["high"].is_null()) << "one seed never got there";
  EXPECT_EQ(json["modes"][1]["latency_of_measure"]["p"], 1);
  EXPECT_EQ(json["modes"][2]["latency_s"]["median"], 15e-3);
  EXPECT_EQ(json["curves"][3]["seed"], 1);
  EXPECT_EQ(json["curves"][0]["points"][1][0], 40);
}

}  // namespace
}  // namespace pruner
