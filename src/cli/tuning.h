// What the commands that measure have in common.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cli/options.h"
#include "graph/partition.h"
#include "measure/measure.h"

namespace pruner {

inline constexpr int64_t kDefaultTrials = 1000;

/// Keeps the tasks whose name --tasks matches.
Result<Unit> keep_matching(const std::string& pattern, std::vector<WeightedTask>& tasks);

/// This machine's measurer, which stops when `interrupted`. Its workers are this program's own
/// file, with the hidden commands.
Result<std::unique_ptr<Measurer>> make_measurer(const Options& options,
                                                const std::atomic<bool>& interrupted);

}  // namespace pruner
