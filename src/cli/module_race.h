// Modules of one network, timed in turns.
#pragma once

#include <string>
#include <vector>

#include "support/result.h"

namespace pruner {

/// Median milliseconds of each module at `paths`, the least of five rounds of at least 0.2 s, in
/// which the modules take turns. They have the same inputs.
Result<std::vector<double>> race_modules(const std::vector<std::string>& paths, int threads);

}  // namespace pruner
