#include "report/html/sections.h"

#include <gtest/gtest.h>

#include <cmath>

#include "report/html/table.h"

namespace pruner {
namespace {

constexpr const char* kHostile = "</script><b onclick=\"x\">&";

void expect_in(const std::string& html, const std::string& part) {
  EXPECT_NE(html.find(part), std::string::npos) << "no " << part << " in\n" << html;
}

TaskFacts task(const std::string& name, int weight, double untuned_s, double best_s) {
  return {.name = name,
          .key = name,
          .weight = weight,
          .flops = 2e9,
          .bytes = 1e6,
          .precision = "float32",
          .untuned_s = untuned_s,
          .best_s = best_s,
          .trials = 10,
          .failed = 1};
}
Ceiling ceiling() {
  return {.gflops = 100, .unit_gflops = {{"int8", 400}}, .bandwidth_gbs = 10, .source = "Made up."};
}
/// A program of task 0 whose time is its decisions' product.
TrialFacts trial(int32_t a, int32_t b, double noise = 1) {
  return {0, "tile", {{"a", a}, {"b", b}, {"same", 7}}, 1e-3 * a * b * noise, 1e-3 * b, {}};
}

TEST(VerdictSection, SaysHowMuchFasterAndBesideWhom) {
  Verdict verdict{.subject = "net",
                  .mode = "pam",
                  .device = kHostile,
                  .status = "done",
                  .untuned_s = 12e-3,
                  .tuned_s = 4e-3,
                  .module_s = 5e-3,
                  .module_std_s = 2e-5,
                  .peers = {{kHostile, 10}},
                  .trials = 320,
                  .tasks = 7,
                  .spent_s = 125};
  const std::string html = verdict_section(verdict).html;
  expect_in(html, "12.000 ms \u2192 4.000 ms, 3.00 x as fast");
  expect_in(html, "The module, measured, is 2.00 x as fast as &lt;/script&gt;");
  expect_in(html, "5.000 ms (std dev 20.0 us)");
  expect_in(html, "<dd>2:05</dd>");
  EXPECT_EQ(html.find("<b onclick"), std::string::npos);
  EXPECT_EQ(html.find("still going"), std::string::npos);
  EXPECT_EQ(html.find("other processes"), std::string::npos);

  Verdict raced = verdict;
  raced.race = {6e-3, 4.8e-3, 1.25, 1.2, 1.31};
  const std::string measured = verdict_section(raced).html;
  expect_in(measured, "6.000 ms \u2192 4.800 ms, 1.25 x as fast");
  expect_in(measured, "the module is 1.20 to 1.31 x as fast");
  expect_in(measured, "untuned module, measured");

  verdict.status = "interrupted";
  verdict.others_share = 0.25;
  verdict.untuned_s.reset();
  verdict.module_s.reset();
  const std::string half = verdict_section(verdict).html;
  expect_in(half, "did not reach its end (interrupted)");
  expect_in(half, "<p class=\"headline\">4.000 ms</p>");
  expect_in(half, "there is no before");
  expect_in(half, "other processes had 25 % of the cores&#39; time");
  expect_in(half, "By the estimate it is 2.50 x as fast as ");
  verdict.tuned_s.reset();
  verdict.tasks_without_time = 3;
  expect_in(verdict_section(verdict).html, "No time yet: 3 of 7 tasks have no valid trial.");
  verdict.trials = 0;
  expect_in(verdict_section(verdict).html, "Nothing is measured yet.");
}

TEST(CurvesSection, LaysRunsOverOneAnother) {
  Comparison comparison{.subject = "net",
                        .device = "cpu",
                        .modes = {{"pam", "online"}, {kHostile, "-"}},
                        .curves = {}};
  comparison.curves = {{.mode = "pam",
                        .trials = 30,
                        .search_s = 9,
                        .complete = true,
                        .points = {{10, 3, 4e-3}, {20, 6, 2e-3}}},
                       {.mode = kHostile,
                        .trials = 40,
                        .search_s = 12,
                        .complete = true,
                        .points = {{10, 4, 3e-3}}}};
  const std::string html = curves_section(comparison).html;
  expect_in(html, "id=\"curve-trials\"");
  expect_in(html, "id=\"curve-seconds\"");
  expect_in(html, "[[10.0,4.0],[20.0,2.0],[30.0,2.0]]");
  expect_in(html, "<td class=\"n\">not reached</td>");
  EXPECT_EQ(html.find("<b onclick"), std::string::npos);
  for (TuningCurve& curve : comparison.curves) curve.points.clear();
  expect_in(curves_section(comparison).html, "No curve yet");
}

TEST(TasksSection, HasSharesOfTimeAndOfTheCeiling) {
  std::vector<TaskFacts> tasks = {task("small", 1, 20e-3, 10e-3), task(kHostile, 3, 60e-3, 30e-3)};
  tasks.push_back({.name = "none"});
  EXPECT_EQ(by_time(tasks), (std::vector<size_t>{1, 0, 2}));
  // 2 GFLOP at 100 GFLOP/s take 20 ms; 1 MB at 10 GB/s 0.1 ms.
  EXPECT_DOUBLE_EQ(*least_s(tasks[1], ceiling()), 20e-3);
  const std::string html = tasks_section(tasks, ceiling()).html;
  expect_in(
      html,
      "<td class=\"n\">90.0 %</td><td class=\"n\">60.000 ms</td><td class=\"n\">30.000 ms</td>");
  expect_in(html, "<td class=\"n\">66.7 %</td>");
  EXPECT_EQ(html.find("<b onclick"), std::string::npos);
  EXPECT_LT(html.find("&lt;/script&gt;"), html.find(">small<"));
}

TEST(LeastS, IsOfTheUnitThatMultiplies) {
  TaskFacts narrow = task("int8", 1, 1, 1);
  narrow.precision = "int8";
  EXPECT_DOUBLE_EQ(*least_s(narrow, ceiling()), 5e-3);
  narrow.precision = "bfloat16_tile";
  EXPECT_FALSE(least_s(narrow, ceiling())) << "its rate is not known";
  narrow.precision = "";
  narrow.bytes = 1e9;
  EXPECT_DOUBLE_EQ(*least_s(narrow, ceiling()), 0.1) << "memory is slower";
  EXPECT_FALSE(least_s(narrow, {}));
}

TEST(RooflineSection, HasADotATaskUnderItsRoof) {
  const std::vector<TaskFacts> tasks = {task("a", 1, 1, 40e-3), {.name = "none"}};
  const std::string html = roofline_section(tasks, ceiling()).html;
  expect_in(html, "\"points\":[[2000.0,50.0]],\"labels\":[\"0\"]");
  expect_in(html, "float32 and memory: 100 GFLOP/s, 10 GB/s");
  EXPECT_EQ(html.find("int8 and memory"), std::string::npos) << "no task multiplies with it";
  expect_in(html, "Made up.");
  expect_in(roofline_section(std::span(tasks).subspan(1), ceiling()).html, "No task has a time");
}

TEST(PhasesSection, HasTheRest) {
  const std::string html = phases_section(Phases{1, 2, 3, 4, 12.5}).html;
  expect_in(html, "measure</th><td class=\"n\">4.0 s</td>");
  expect_in(html, "the rest</th><td class=\"n\">2.5 s</td>");
  EXPECT_EQ(phases_section(Phases{1, 2, 3, 4, 8}).html.find("the rest</th>"), std::string::npos);
}

TEST(FailuresSection, HasTheCommonestFirst) {
  Reasons failures;
  note(failures, "build timeout", "records.json:3");
  for (int i = 0; i < 3; ++i) note(failures, kHostile, "records.json:" + std::to_string(5 + i));
  const std::string html = failures_section(failures, 16).html;
  expect_in(html, "4 of 16 trials (25.0 %)");
  expect_in(html, "&amp; (first: records.json:5)</th><td class=\"n\">3</td>");
  EXPECT_LT(html.find("records.json:5"), html.find("records.json:3"));
  expect_in(failures_section({}, 16).html, "None of 16 trials failed.");
}

TEST(CalibrationSection, CountsPairsOfEachTask) {
  // The draft knows b alone: of the pairs of (1,1), (2,1), (1,2), (3,2) those of equal drafts or
  // times are none; (2,1) and (1,2) take the same time.
  const std::vector<TrialFacts> trials = {trial(1, 1), trial(2, 1), trial(1, 2), trial(3, 2)};
  const std::vector<TaskFacts> tasks = {task(kHostile, 1, 1, 1)};
  const std::string html = calibration_section({trials, "", PairCount{3, 4}}, tasks).html;
  expect_in(html, "Draft: pairs in their right order</dt><dd>100.0 % of 3 pairs");
  expect_in(html, "Model: pairs in their right order</dt><dd>75.0 % of 4 pairs");
  expect_in(html, "as drafted");
  EXPECT_EQ(html.find("<b onclick"), std::string::npos);
  expect_in(calibration_section({{}, "no reason.", std::nullopt}, tasks).html,
            "There is no draft of what was measured: no reason.");
}

TEST(ExplainedShare, IsOfTheVarianceOfTheLogarithm) {
  std::vector<int32_t> a, b, nothing;
  std::vector<double> costs_s;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      a.push_back(i);
      b.push_back(j);
      nothing.push_back(3);
      costs_s.push_back(std::exp(2.0 * i + 1.0 * j));
    }
  }
  // The variances of a full design add up, 4 : 1. The correction for four values of 16 programs is
  // 1 - (1 - share) x 15 / 12.
  EXPECT_NEAR(*explained_share(a, costs_s), 1 - 0.2 * 15 / 12, 1e-12);
  EXPECT_NEAR(*explained_share(b, costs_s), 0, 1e-12) << "1 - 0.8 x 15 / 12 is 0";
  EXPECT_FALSE(explained_share(nothing, costs_s)) << "it has one value";
  EXPECT_FALSE(explained_share(a, std::vector<double>(16, 1e-3))) << "there is nothing to explain";
  EXPECT_FALSE(explained_share(std::vector{1, 2}, std::vector{1.0, 2.0}))
      << "a value a program explains everything and says nothing";
  EXPECT_NEAR(*explained_share(std::vector{1, 1, 2, 2}, std::vector{1.0, 1.0, 5.0, 5.0}), 1, 1e-12);
}

TEST(DecisionsSection, ShowsWhatExplainsMostFirst) {
  std::vector<TrialFacts> trials;
  for (const int32_t a : {1, 8, 64}) {
    for (const int32_t b : {1, 2, 3}) {
      trials.push_back(trial(a, b));
      trials.push_back(trial(a, b, 1.02));
    }
  }
  const std::vector<TaskFacts> tasks = {task(kHostile, 1, 1, 1)};
  const std::string html = decisions_section(trials, tasks).html;
  expect_in(html, "18 programs of the sketch tile");
  EXPECT_LT(html.find("<th scope=\"row\">a</th>"), html.find("<th scope=\"row\">b</th>"));
  EXPECT_EQ(html.find("<th scope=\"row\">same</th>"), std::string::npos);
  expect_in(html, "id=\"slice-0-0\"");
  EXPECT_EQ(html.find("<b onclick"), std::string::npos);
  expect_in(decisions_section(std::span(trials).first(3), tasks).html, "No task has 8 valid");
}

TEST(NoiseSection, HasTheSpreadOfRepeatsAndOfTimesAgain) {
  std::vector<TrialFacts> trials = {trial(1, 1), trial(1, 1), trial(1, 1)};
  trials[0].repeats_s = {1.0e-3, 1.0e-3, 1.0e-3, 1.0e-3, 1.0e-3};
  trials[1].repeats_s = {1.04e-3, 1.0e-3, 1.01e-3, 1.03e-3, 1.02e-3};  // (1.03 - 1.01) / 1.02
  const std::vector<TaskFacts> tasks = {task("a", 1, 1, 1)};
  const std::string html = noise_section({trials, {{0, 1e-3, {1.1e-3, 1.05e-3}}}, 2}, tasks).html;
  expect_in(html, "2 with 4 repeats or more");
  expect_in(html, "below 0.5 %</th><td class=\"n\">1</td>");
  expect_in(html, "1 to 2 %</th><td class=\"n\">1</td>");
  expect_in(
      html,
      "1.050 ms</td><td class=\"n\">1.100 ms</td><td class=\"n\">2</td><td class=\"n\">1.050");
  expect_in(html, "2 trials ran while other processes");
  expect_in(noise_section({}, tasks).html, "No program was timed often enough");
}

TEST(HtmlBars, AreAsLongAsTheirNumbers) {
  const std::string html = html_bars({{"a", "1", 1, 0}, {"<b>", "4", 4, 1}, {"c", "0", 0, 2}}, "n");
  expect_in(html, "class=\"s0\" width=\"25.00\"");
  expect_in(html, "class=\"s1\" width=\"100.00\"");
  expect_in(html, "&lt;b&gt;");
  EXPECT_EQ(html_facts({{"a", ""}, {"b", "<"}}), "<dl>\n<dt>b</dt><dd>&lt;</dd>\n</dl>\n");
}

}  // namespace
}  // namespace pruner
