#include "deploy/race.h"

#include <algorithm>

#include "deploy/loaded_module.h"

namespace pruner {

namespace {

constexpr int kTurns = 10;

/// `turn` of so many, and who begins it.
BenchOptions share_of(const BenchOptions& all, int turn, int turns) {
  return {.warm_up = turn == 0 ? std::max(all.warm_up, 1) : 1,
          .min_runs = all.min_runs / turns + (turn < all.min_runs % turns ? 1 : 0),
          .min_s = all.min_s / turns};
}

/// Everybody's seconds, [racer][turn][run].
using TurnTimes = std::vector<std::vector<std::vector<double>>>;

template <typename TurnOptions>
Result<TurnTimes> take_turns(std::span<const Racer> racers, int turns, TurnOptions options_of) {
  TurnTimes times(racers.size());
  for (int turn = 0; turn < turns; ++turn) {
    for (size_t i = 0; i < racers.size(); ++i) {
      const size_t r = (i + static_cast<size_t>(turn)) % racers.size();
      Result<std::vector<double>> runs = racers[r].run(options_of(turn));
      if (!runs.ok()) return Error(racers[r].name, ": ", runs.error().message());
      times[r].push_back(*std::move(runs));
    }
  }
  return times;
}

}  // namespace

Result<RaceTimes> race(std::span<const Racer> racers, const BenchOptions& options) {
  const int turns = std::clamp(options.min_runs, 1, kTurns);
  TRY_ASSIGN(const TurnTimes times,
             take_turns(racers, turns, [&](int turn) { return share_of(options, turn, turns); }));
  RaceTimes race;
  for (const std::vector<std::vector<double>>& of : times) {
    std::vector<double> all;
    std::vector<double>& medians_ms = race.medians_ms.emplace_back();
    for (const std::vector<double>& runs : of) {
      all.insert(all.end(), runs.begin(), runs.end());
      medians_ms.push_back(percentile(runs, 50) * 1e3);
    }
    race.of.push_back(summarize(all, std::max(options.warm_up, 1) + turns - 1));
  }
  return race;
}

Result<std::vector<double>> race_modules(const std::vector<std::string>& paths, int threads) {
  constexpr int kRounds = 5;
  constexpr BenchOptions kRound{.warm_up = 1, .min_runs = 3, .min_s = 0.2};
  std::vector<LoadedModule> modules;
  for (const std::string& path : paths) {
    TRY_ASSIGN(LoadedModule module, load_module(path, threads));
    modules.push_back(std::move(module));
  }
  if (modules.empty()) return std::vector<double>();
  const std::vector<Tensor> inputs = seeded_inputs(modules[0].inputs(), 0);
  std::vector<Racer> racers;
  for (size_t m = 0; m < modules.size(); ++m)
    racers.push_back({paths[m], [&module = modules[m], &inputs](const BenchOptions& turn) {
                        return module.time_runs(inputs, turn);
                      }});
  TRY_ASSIGN(const TurnTimes times, take_turns(racers, kRounds, [&](int) { return kRound; }));
  std::vector<double> best_ms;
  for (const std::vector<std::vector<double>>& of : times) {
    std::vector<double> medians_s;
    for (const std::vector<double>& runs : of) medians_s.push_back(percentile(runs, 50));
    best_ms.push_back(*std::ranges::min_element(medians_s) * 1e3);
  }
  return best_ms;
}

}  // namespace pruner
