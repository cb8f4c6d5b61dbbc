#include "cli/module_race.h"

#include <algorithm>

#include "deploy/loaded_module.h"

namespace pruner {

Result<std::vector<double>> race_modules(const std::vector<std::string>& paths, int threads) {
  constexpr int kRounds = 5;
  constexpr BenchOptions kBench{.warm_up = 1, .min_runs = 3, .min_s = 0.2};
  std::vector<LoadedModule> modules;
  for (const std::string& path : paths) {
    TRY_ASSIGN(LoadedModule module, load_module(path, threads));
    modules.push_back(std::move(module));
  }
  std::vector<double> best_ms(modules.size());
  if (modules.empty()) return best_ms;
  const std::vector<Tensor> inputs = seeded_inputs(modules[0].inputs(), 0);
  for (int round = 0; round < kRounds; ++round) {
    for (size_t turn = 0; turn < modules.size(); ++turn) {
      const size_t m = (turn + static_cast<size_t>(round)) % modules.size();
      TRY_ASSIGN(const BenchResult result, modules[m].bench(inputs, kBench));
      best_ms[m] = round == 0 ? result.median_ms : std::min(best_ms[m], result.median_ms);
    }
  }
  return best_ms;
}

}  // namespace pruner
