// Work dirs of tuning runs -> a Comparison: what `pruner report` lays over one another.
#pragma once

#include <string>
#include <vector>

#include "report/comparison.h"

namespace pruner {

/// What a plot calls the seconds of runs that took no turns.
inline constexpr const char* kSearchSeconds = "seconds of search";

/// A mode for each path, named after the mode of its run.json; where two would have one name, the
/// path follows. A path is a work dir, or a file as total_latency.tsv, which is named after itself.
/// The network, its inputs, the number of tasks and the device are those of the run.json files.
/// `warns`: names on standard error the runs that did not reach their end. Errors: there is no
/// curve, or the runs are of different networks or devices.
Result<Comparison> compare_runs(const std::vector<std::string>& paths, bool warns = true);

/// What compare_runs() reads of a run's run.json, under "more":
/// {"mode","update_mode","inputs","tasks"}; "end_to_end_ms" joins them where it is measured.
Json run_facts(const std::string& mode,
               const std::string& update_mode,
               const std::vector<std::vector<int64_t>>& input_shapes,
               size_t tasks);

}  // namespace pruner
