#include "report/comparison_set.h"

#include "golden.h"

namespace pruner {
namespace {

/// A run of 100 trials that has `late_ms` after 20 trials and `final_ms` after 80; its module takes
/// a tenth more.
TuningCurve run(
    const std::string& mode, uint64_t seed, double search_s, double late_ms, double final_ms) {
  return {.mode = mode,
          .seed = seed,
          .trials = 100,
          .search_s = search_s,
          .complete = true,
          .points = {{20, 0.2 * search_s, late_ms / 1e3}, {80, 0.8 * search_s, final_ms / 1e3}},
          .end_to_end_s = 1.1 * final_ms / 1e3};
}

Comparison comparison(const std::string& network, std::vector<TuningCurve> curves) {
  return {.subject = network + ", 100 trials",
          .device = "cpu",
          .modes = {{"ansor", "online"}, {"pruner", "online"}, {"draft", "draft only"}},
          .curves = std::move(curves)};
}

/// Pruner is first on both networks; draft never reaches anyone on the second.
ComparisonSet two_networks() {
  return {
      {"resnet_18",
       comparison("resnet_18",
                  {run("ansor", 0, 100, 16, 10),
                   run("pruner", 0, 80, 10, 8),
                   run("draft", 0, 50, 12, 9)})},
      {"bert_tiny",
       comparison(
           "bert_tiny",
           {run("ansor", 0, 200, 8, 4), run("pruner", 0, 100, 3, 2), run("draft", 0, 60, 6, 5)})}};
}

TEST(Performance, IsTheLeastLatencyByTheModesOwn) {
  const Performance all = performance(two_networks());
  EXPECT_TRUE(all.end_to_end);
  EXPECT_DOUBLE_EQ(*all.of[0][0], 0.8);
  EXPECT_DOUBLE_EQ(*all.of[1][0], 1);
  EXPECT_DOUBLE_EQ(*all.of[0][1], 0.5);
  EXPECT_DOUBLE_EQ(*all.geomean[0], std::sqrt(0.8 * 0.5));
  EXPECT_DOUBLE_EQ(*all.geomean[1], 1);
}

TEST(Performance, IsOfTheEstimatesWhereAModuleWasNotMeasured) {
  ComparisonSet set = two_networks();
  set[0].comparison.curves[1].end_to_end_s = std::nullopt;
  set[0].comparison.curves[0].end_to_end_s = 1;
  const Performance all = performance(set);
  EXPECT_FALSE(all.end_to_end);
  EXPECT_DOUBLE_EQ(*all.of[0][0], 0.8);
  EXPECT_NE(print_comparison_set(set).find("estimated performance"), std::string::npos);
}

TEST(Performance, LeavesANetworkOutOfTheMeanWhereAModeHasNothing) {
  ComparisonSet set = two_networks();
  set[1].comparison.curves[2].points.clear();
  set[1].comparison.curves[2].end_to_end_s = std::nullopt;
  const Performance all = performance(set);
  EXPECT_FALSE(all.of[2][1].has_value());
  EXPECT_DOUBLE_EQ(*all.geomean[0], 0.8) << "of the first network alone";
}

TEST(PrintComparisonSet, HasATableOfPerformanceAndOneToReachEachMode) {
  EXPECT_GOLDEN("report/comparison_set.txt", print_comparison_set(two_networks()));
  EXPECT_EQ(print_comparison_set({}), "");
}

TEST(PrintComparisonSet, ShowsThePublishedModesBesideOneAnotherFirst) {
  ComparisonSet set = two_networks();
  for (ComparedNetwork& network : set)
    for (const size_t published : {0, 2}) network.comparison.modes[published].ingredients = "none";
  const std::string text = print_comparison_set(set);
  const size_t ours = text.find("\nwith ingredients:\n");
  EXPECT_EQ(text.find("as published:\n"), 0u) << text;
  ASSERT_NE(ours, std::string::npos) << text;
  EXPECT_GT(text.find("pruner"), ours) << text;
  EXPECT_EQ(text.find("draft", ours), std::string::npos) << text;
  EXPECT_NE(text.find("ansor's latency", ours), std::string::npos) << text;
}

TEST(PrintComparisonSet, SaysInHowManySeedsALatencyWasReached) {
  ComparisonSet set = two_networks();
  std::vector<TuningCurve>& curves = set[0].comparison.curves;
  curves.push_back(run("ansor", 1, 100, 16, 10));
  curves.push_back(run("pruner", 1, 80, 13, 12));
  curves.push_back(run("draft", 1, 50, 12, 9));
  curves.push_back(run("ansor", 2, 100, 16, 10));
  curves.push_back(run("pruner", 2, 80, 10, 8));
  curves.push_back(run("draft", 2, 50, 12, 9));
  EXPECT_NE(print_comparison_set(set).find("16.0 (6.25 x), 2 of 3 seeds"), std::string::npos)
      << print_comparison_set(set);
}

TEST(PrintConclusionsOfASet, HaveARowForEachNetworkAndMode) {
  ComparisonSet set = two_networks();
  EXPECT_NE(print_conclusions(set).find("too few: 1 of 5 seeds on resnet_18"), std::string::npos);
  for (ComparedNetwork& network : set) {
    for (uint64_t seed = 1; seed < 5; ++seed) {
      const double slower = 1 + 0.01 * static_cast<double>(seed);
      for (size_t m = 0; m < 3; ++m) {
        TuningCurve curve = network.comparison.curves[m];
        curve.seed = seed;
        if (m == 1)
          for (CurvePoint& point : curve.points) point.latency_s *= slower;
        network.comparison.curves.push_back(curve);
      }
    }
  }
  EXPECT_GOLDEN("report/comparison_set_conclusions.txt", print_conclusions(set));
}

TEST(PerformanceTsv, HasALineANetworkAndMode) {
  EXPECT_GOLDEN("report/performance.tsv", performance_tsv(two_networks()));
}

TEST(SearchTimeTsv, HasALineANetworkAndPairOfModes) {
  EXPECT_GOLDEN("report/search_time.tsv", search_time_tsv(two_networks()));
}

TEST(PerformanceSvg, EndsWithTheGeometricMean) {
  EXPECT_GOLDEN("report/performance.svg", performance_svg(two_networks()));
}

TEST(SearchTimeSvg, HasNoBarWhereALatencyWasNotReached) {
  EXPECT_GOLDEN("report/search_time.svg", search_time_svg(two_networks()));
}

TEST(ComparisonSetJson, HasTheTablesNumbers) {
  const Json json = comparison_set_json(two_networks());
  EXPECT_EQ(json["end_to_end"], true);
  EXPECT_EQ(json["modes"], Json({"ansor", "pruner", "draft"}));
  const Json& pruner = json["networks"][1]["modes"][1];
  EXPECT_EQ(pruner["performance"], 1);
  EXPECT_EQ(pruner["latency_of_measure"]["median"], 0.5);
  EXPECT_EQ(pruner["latency_of_measure"]["p"], 1);
  EXPECT_EQ(pruner["to"][0]["mode"], "ansor");
  EXPECT_EQ(pruner["to"][0]["seconds"]["median"], 20);
  EXPECT_EQ(pruner["to"][0]["speedup"], 10);
  EXPECT_EQ(json["networks"][1]["modes"][2]["to"][0]["reached"], 0);
  EXPECT_EQ(json["geomean"][2]["to"][0]["networks_reached"], 1);
  EXPECT_DOUBLE_EQ(json["geomean"][1]["to"][0]["speedup"].get<double>(), std::sqrt(6.25 * 10));
  EXPECT_TRUE(json["networks"][1]["modes"][2]["to"][0]["speedup"].is_null());
}

}  // namespace
}  // namespace pruner
