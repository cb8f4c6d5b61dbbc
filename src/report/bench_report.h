// Times of a module's runs, and of those that ran in turns with it -> text and JSON.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "deploy/race.h"
#include "deploy/tensor_file.h"
#include "report/comparison.h"
#include "support/json.h"

namespace pruner {

/// The first extent of all inputs and outputs, where they have one in common that is above 1: so
/// many items are computed in a run.
std::optional<int64_t> batch_of(std::span<const TensorSpec> inputs,
                                std::span<const TensorSpec> outputs);

/// Three lines: mean and deviation; median, the spread and how often it ran; runs and items a
/// second.
std::string print_bench(const BenchResult& result, std::optional<int64_t> batch);
/// {"median_ms","mean_ms","std_ms","min_ms","max_ms","p90_ms","p99_ms","runs","warm_up","threads",
/// "inferences_per_s","items_per_s","others_share"}; "items_per_s" is null without a batch.
Json bench_json(const BenchResult& result, std::optional<int64_t> batch);

/// The share of racer `other`'s time that the first one takes: medians turn by turn.
Spread time_share(const RaceTimes& race, size_t other);
/// A line for each but the first: its median, and time_share().
std::string print_race(std::span<const std::string> names, const RaceTimes& race);
/// A list of {"name","time_share":{"median","least","most"},"turns"} and bench_json()'s, of each
/// but the first.
Json race_json(std::span<const std::string> names,
               const RaceTimes& race,
               std::optional<int64_t> batch);

}  // namespace pruner
