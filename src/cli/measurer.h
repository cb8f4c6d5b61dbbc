// What the commands that measure have in common: the measurer of this machine, as the options say.
#pragma once

#include <atomic>
#include <memory>

#include "cli/source.h"
#include "measure/measure.h"

namespace pruner {

inline constexpr int64_t kDefaultTrials = 1000;

/// Its workers are this program's own file, with the hidden commands; it ends when `interrupted`.
/// Kernels find their constants where the network does: of one that fits, in the last-level cache.
/// Errors: this machine, or a device of --devices, does not run code for the target.
Result<std::unique_ptr<Measurer>> make_measurer(const Options& options,
                                                const Source& source,
                                                const Target& target,
                                                const std::atomic<bool>& interrupted);

}  // namespace pruner
