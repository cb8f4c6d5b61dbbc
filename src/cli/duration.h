// Times as people write them: 30s, 10m, 1h, 1h30m.
#pragma once

#include <string_view>

#include "support/result.h"

namespace pruner {

/// Seconds; a number without a unit is seconds.
Result<double> parse_duration_s(std::string_view text);

}  // namespace pruner
