#include "deploy/race.h"

#include <gmock/gmock.h>

#include "golden.h"

namespace pruner {
namespace {

using testing::ElementsAre;

/// A racer that notes its turns and says that each run took `seconds`.
Racer racer(const std::string& name, double seconds, std::vector<std::string>& turns) {
  return {name, [=, &turns](const BenchOptions& turn) {
            turns.push_back(name + std::to_string(turn.warm_up) + std::to_string(turn.min_runs));
            return Result<std::vector<double>>(
                std::vector<double>(static_cast<size_t>(turn.min_runs), seconds));
          }};
}

TEST(Race, TakesTurnsOfWhichEachBeginsAnother) {
  std::vector<std::string> turns;
  const std::vector<Racer> racers = {racer("a", 1e-3, turns), racer("b", 4e-3, turns)};
  const Result<RaceTimes> times = race(racers, {.warm_up = 5, .min_runs = 3, .min_s = 0});
  ASSERT_TRUE(times.ok());
  EXPECT_THAT(turns, ElementsAre("a51", "b51", "b11", "a11", "a11", "b11"));
  EXPECT_EQ(times->of[0].runs, 3);
  EXPECT_EQ(times->of[0].warm_up, 7);
  EXPECT_DOUBLE_EQ(times->of[1].median_ms, 4);
  EXPECT_THAT(times->medians_ms[0], ElementsAre(1, 1, 1));
}

TEST(Race, SharesRunsAndSecondsAmongTenTurns) {
  std::vector<std::string> turns;
  const std::vector<Racer> racers = {racer("a", 1e-3, turns)};
  const Result<RaceTimes> times = race(racers, {.warm_up = 0, .min_runs = 25, .min_s = 0});
  ASSERT_TRUE(times.ok());
  EXPECT_EQ(times->of[0].runs, 25);
  EXPECT_EQ(turns.size(), 10u);
  EXPECT_EQ(turns.front(), "a13");
  EXPECT_EQ(turns.back(), "a12");
}

TEST(Race, NamesWhoFails) {
  const std::vector<Racer> racers = {{"x.so", [](const BenchOptions&) {
                                        return Result<std::vector<double>>(Error("no memory"));
                                      }}};
  EXPECT_ERROR(race(racers, {}), "x.so: no memory");
}

}  // namespace
}  // namespace pruner
