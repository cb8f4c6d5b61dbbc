// What the commands that measure have in common: the measurer of this machine, as the options say.
#pragma once

#include <atomic>
#include <memory>

#include "cli/options.h"
#include "measure/measure.h"

namespace pruner {

inline constexpr int64_t kDefaultTrials = 1000;

/// Its workers are this program's own file, with the hidden commands; it ends when `interrupted`.
Result<std::unique_ptr<Measurer>> make_measurer(const Options& options,
                                                const std::atomic<bool>& interrupted);

}  // namespace pruner
