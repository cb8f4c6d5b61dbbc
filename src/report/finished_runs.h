// Turns work dirs of tuning runs into a Comparison, whose curves `pruner report` overlays.
#pragma once

#include <string>
#include <vector>

#include "report/comparison.h"

namespace pruner {

/// `kSearchSeconds` is the axis name for the seconds of runs that took no turns.
inline constexpr const char* kSearchSeconds = "seconds of search";

/// Returns a mode for each path, named after the mode of its run.json; if two modes would have one
/// name, the path follows. A path is a work dir, or a file like total_latency.tsv, which gives the
/// name. The network, its inputs, the number of tasks and the device are those of the run.json
/// files. If `warns`, standard error names the runs that did not reach their end. Errors: there is
/// no curve, or the runs have different networks or devices.
Result<Comparison> compare_runs(const std::vector<std::string>& paths, bool warns = true);

/// Returns the facts that compare_runs() reads from a run.json, under "more":
/// {"mode","update_mode","inputs","tasks"}; "end_to_end_ms" joins these facts if it is measured.
Json run_facts(const std::string& mode,
               const std::string& update_mode,
               const std::vector<std::vector<int64_t>>& input_shapes,
               size_t tasks);

}  // namespace pruner
