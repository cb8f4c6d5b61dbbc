#include "report/bench_report.h"

#include <fmt/format.h>

namespace pruner {

std::optional<int64_t> batch_of(std::span<const TensorSpec> inputs,
                                std::span<const TensorSpec> outputs) {
  std::optional<int64_t> batch;
  for (const std::span<const TensorSpec> specs : {inputs, outputs}) {
    for (const TensorSpec& spec : specs) {
      if (spec.shape.empty()) return std::nullopt;
      if (batch.value_or(spec.shape[0]) != spec.shape[0]) return std::nullopt;
      batch = spec.shape[0];
    }
  }
  return batch && *batch > 1 && !inputs.empty() ? batch : std::nullopt;
}

std::string print_bench(const BenchResult& result, std::optional<int64_t> batch) {
  const std::string on =
      result.threads > 0 ? fmt::format("{} threads", result.threads) : "on the device";
  std::string text = fmt::format(
      "Mean inference time (std dev): {:.2f} ms ({:.2f} ms)\n"
      "Median: {:.3f} ms, {} runs, {}; least {:.3f}, 90 % {:.3f}, 99 % {:.3f}, most {:.3f} ms; {} "
      "warm-up runs\n",
      result.mean_ms,
      result.std_ms,
      result.median_ms,
      result.runs,
      on,
      result.min_ms,
      result.p90_ms,
      result.p99_ms,
      result.max_ms,
      result.warm_up);
  text += fmt::format("Throughput: {:.1f} inferences/s", result.runs_per_s());
  if (batch)
    text += fmt::format(", {:.1f} items/s (batches of {})",
                        result.runs_per_s() * static_cast<double>(*batch),
                        *batch);
  return text + "\n";
}

Json bench_json(const BenchResult& result, std::optional<int64_t> batch) {
  return {{"median_ms", result.median_ms},
          {"mean_ms", result.mean_ms},
          {"std_ms", result.std_ms},
          {"min_ms", result.min_ms},
          {"max_ms", result.max_ms},
          {"p90_ms", result.p90_ms},
          {"p99_ms", result.p99_ms},
          {"runs", result.runs},
          {"warm_up", result.warm_up},
          {"threads", result.threads},
          {"inferences_per_s", result.runs_per_s()},
          {"items_per_s", batch ? Json(result.runs_per_s() * static_cast<double>(*batch)) : Json()},
          {"others_share", result.busy.share()}};
}

Spread time_share(const RaceTimes& race, size_t other) {
  std::vector<double> shares;
  for (size_t turn = 0; turn < race.medians_ms[0].size(); ++turn)
    shares.push_back(race.medians_ms[0][turn] / race.medians_ms[other][turn]);
  return spread(std::move(shares)).value_or(Spread{});
}

std::string print_race(std::span<const std::string> names, const RaceTimes& race) {
  std::string text;
  for (size_t i = 1; i < names.size(); ++i)
    text += fmt::format(
        "{}: median {:.3f} ms, {} runs; the module takes {} x its time, over {} turns\n",
        names[i],
        race.of[i].median_ms,
        race.of[i].runs,
        print(time_share(race, i), 3),
        race.medians_ms[i].size());
  return text;
}

Json race_json(std::span<const std::string> names,
               const RaceTimes& race,
               std::optional<int64_t> batch) {
  Json all = Json::array();
  for (size_t i = 1; i < names.size(); ++i) {
    Json json = {{"name", names[i]},
                 {"time_share", to_json(std::optional(time_share(race, i)))},
                 {"turns", race.medians_ms[i].size()}};
    json.update(bench_json(race.of[i], batch));
    json.erase("others_share");  // was looked at over all of the race
    all.push_back(std::move(json));
  }
  return all;
}

}  // namespace pruner
