#include "report/simulation_table.h"

#include "golden.h"

namespace pruner {
namespace {

SimulatedRuns runs() {
  SimulatedRuns runs;
  runs.best_s = 0.9e-3;
  runs.tasks = 2;
  runs.programs = 500;
  runs.comparison.subject = "500 programs of 2 tasks, 200 trials";
  runs.comparison.device = "a log";
  runs.comparison.latency_name = "geometric mean (ms)";
  runs.comparison.seconds_name = "seconds <of> the log";
  runs.comparison.modes = {{"random", "random"}, {"pam", "online"}};
  const auto add = [&](const char* mode, uint64_t seed, std::vector<CurvePoint> points) {
    runs.comparison.curves.push_back({.mode = mode,
                                      .seed = seed,
                                      .trials = 200,
                                      .search_s = 300,
                                      .complete = true,
                                      .points = std::move(points)});
  };
  add("random", 0, {{10, 15, 2e-3}, {150, 225, 0.99e-3}});
  add("random", 1, {});
  add("pam", 0, {{10, 15, 1e-3}, {40, 60, 0.9e-3}});
  add("pam", 1, {{10, 15, 1e-3}, {20, 30, 0.94e-3}, {60, 90, 0.9e-3 * (1 + 1e-12)}});
  return runs;
}

TEST(SimulationTable, SaysWhatEachModeTakesToAShareOfTheBest) {
  const std::vector<SimulatedMode> modes = simulated_modes(runs());
  ASSERT_EQ(modes.size(), 2u);
  EXPECT_EQ(modes[0].reach[0].reached, 1);
  EXPECT_EQ(modes[0].reach[0].trials.least, 150);
  EXPECT_EQ(modes[0].reach[0].trials.most, 200) << "the budget, where it is not reached";
  EXPECT_EQ(modes[0].reach[1].reached, 0);
  EXPECT_EQ(modes[0].quality.least, 0) << "a task of that run has nothing";
  EXPECT_EQ(modes[1].reach[0].trials.median, 10);
  EXPECT_EQ(modes[1].reach[1].trials.median, 30);
  EXPECT_EQ(modes[1].reach[3].reached, 2) << "but for rounding";
  EXPECT_EQ(modes[1].reach[3].trials.median, 50);
  EXPECT_GOLDEN("report/simulation.txt", print_simulation(runs()));
  EXPECT_GOLDEN("report/simulation.tsv", simulation_tsv(runs()));
}

TEST(SimulationTable, GivesTheSameAsJson) {
  const Json json = simulation_json(runs());
  EXPECT_EQ(json["tasks"], 2);
  EXPECT_EQ(json["modes"][1]["reach"][1]["quality"], 0.95);
  EXPECT_EQ(json["modes"][1]["reach"][1]["trials"]["most"], 40);
  EXPECT_EQ(json["modes"][0]["reach"][0]["reached"], 1);
  EXPECT_EQ(json["curves"].size(), 4u);
}

TEST(SimulationTable, NamesTheAxesOfItsPlot) {
  const std::string svg = curves_svg(runs().comparison);
  EXPECT_NE(svg.find("200 trials</text>"), std::string::npos);
  EXPECT_NE(svg.find(">geometric mean (ms)"), std::string::npos);
  EXPECT_NE(svg.find("seconds &lt;of> the log"), std::string::npos);
}

}  // namespace
}  // namespace pruner
