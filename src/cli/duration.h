// Times as people write them: 30s, 10m, 1h, 1h30m.
#pragma once

#include <string_view>

#include "support/result.h"

namespace pruner {

/// Returns the seconds of a time. A number without a unit is an error: "3" may be meant as minutes.
Result<double> parse_duration_s(std::string_view text);

/// The seconds of --budget; none is infinite.
Result<double> parse_budget_s(std::string_view text);

}  // namespace pruner
