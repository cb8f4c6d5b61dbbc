// The tasks of a network: ID, weight, FLOPs, name.
#pragma once

#include <span>
#include <string>

#include "graph/partition.h"
#include "support/json.h"

namespace pruner {

/// A line a task, and their number and the sum of their weights.
std::string print_task_list(std::span<const WeightedTask> tasks);

/// [{"id","weight","flops","name","key"}]; flops is null where it is unknown.
Json task_list_json(std::span<const WeightedTask> tasks);

}  // namespace pruner
