// The measurer of this machine, as the options say.
#pragma once

#include <atomic>
#include <memory>

#include "cli/options.h"
#include "measure/measure.h"

namespace pruner {

/// Its workers are this program's own file, with the hidden commands; it ends when `interrupted`.
Result<std::unique_ptr<Measurer>> make_measurer(const Options& options,
                                                const std::atomic<bool>& interrupted);

}  // namespace pruner
