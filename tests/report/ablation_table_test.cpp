#include "report/ablation_table.h"

#include "golden.h"

namespace pruner {
namespace {

const std::vector<AblatedPair> kPairs = {
    {"default-schedule", "pruner", "pruner-without-default-schedule"},
    {"islands", "pruner", "pruner-without-islands"}};

/// A run that reaches 10 ms at `trials`, and ends at `final_s`.
TuningCurve run(const std::string& mode, uint64_t seed, int64_t trials, double final_s) {
  const auto seconds = static_cast<double>(trials) / 2;
  return {.mode = mode,
          .seed = seed,
          .trials = 100,
          .search_s = 50,
          .complete = true,
          .points = {{1, 0.5, 0.03}, {trials, seconds, 0.01}, {90, 45, final_s}}};
}

/// Without the default schedule twice to six times the trials; islands change nothing but noise.
ComparisonSet two_operators(uint64_t seeds) {
  ComparisonSet set;
  for (const int64_t factor : {1, 2}) {
    Comparison comparison{.subject = "op",
                          .device = "cpu",
                          .modes = {{"pruner-as-published", "online", "none"},
                                    {"pruner", "online", "default-schedule, islands"},
                                    {"pruner-without-default-schedule", "online", "islands"},
                                    {"pruner-without-islands", "online", "default-schedule"}},
                          .curves = {}};
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      const auto s = static_cast<int64_t>(seed);
      const double noise = 1 + 0.01 * static_cast<double>(s - 2);
      auto& curves = comparison.curves;
      curves.push_back(run("pruner-as-published", seed, 60, 0.01));
      curves.push_back(run("pruner", seed, 4, 0.009));
      curves.push_back(run("pruner-without-default-schedule", seed, 4 * factor * (2 + s), 0.0095));
      curves.push_back(run("pruner-without-islands", seed, 4 + (s == 4) - (s == 1), 0.009 * noise));
    }
    set.push_back({"op" + std::to_string(factor), std::move(comparison)});
  }
  return set;
}

TEST(PartWorth, IsTheRatioOfRunsWithAndWithout) {
  const std::vector<PartWorth> all = part_worth(two_operators(5), kPairs);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].runs, 10);
  // 1 / {2, 3, 4, 5, 6} and 1 / {4, 6, 8, 10, 12}: the middle two are 1/5 and 1/6.
  EXPECT_DOUBLE_EQ(all[0].trials->median, (1. / 5 + 1. / 6) / 2);
  EXPECT_DOUBLE_EQ(all[0].seconds->median, (1. / 5 + 1. / 6) / 2);
  EXPECT_LT(all[0].trials->high, 1);
  EXPECT_DOUBLE_EQ(all[0].latency->median, 0.009 / 0.0095);
  EXPECT_TRUE(all[1].trials->holds(1));
  EXPECT_TRUE(all[1].latency->holds(1));
}

TEST(PartWorth, LeavesOutRunsThatWereCutShort) {
  ComparisonSet set = two_operators(5);
  for (TuningCurve& curve : set[1].comparison.curves) curve.complete = false;
  EXPECT_EQ(part_worth(set, kPairs)[0].runs, 5);
}

TEST(PrintAblation, IsATableWithARowForEachPart) {
  const ComparisonSet set = two_operators(5);
  EXPECT_GOLDEN("report/ablation.txt", print_ablation(set, kPairs));
  EXPECT_GOLDEN("report/ablation.tsv", ablation_tsv(set, kPairs));
  EXPECT_NE(print_ablation(two_operators(3), kPairs).find("too few: 3 of 5 seeds"),
            std::string::npos);
  EXPECT_EQ(print_ablation({}, kPairs), "");
}

TEST(AblationJson, HasTheTablesNumbers) {
  const Json json = ablation_json(two_operators(5), kPairs);
  EXPECT_EQ(json[1]["part"], "islands");
  EXPECT_EQ(json[0]["runs"], 10);
  EXPECT_DOUBLE_EQ(json[0]["latency"]["median"].get<double>(), 0.009 / 0.0095);
}

}  // namespace
}  // namespace pruner
