// Measured programs whose latency is a known function of their features, as a table.
#pragma once

#include <string>

#include "dataset/program_table.h"

namespace pruner {

/// Adds `programs` programs of a workload: one row each, and a latency that doubles along its
/// columns 1 and 2. Ids differ by workload and number.
void add_synthetic(const std::string& workload,
                   const std::string& target,
                   int programs,
                   ProgramTable& table);

}  // namespace pruner
