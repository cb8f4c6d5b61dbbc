// What a viewer of a network's file shows of its nodes: their tasks, and what was measured of
// these.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/partition.h"

namespace pruner {

/// A note for each kernel of a source whose nodes are numbered: "task 3: conv2d ..., called 4 x",
/// and where `best_s` has the seconds of its task "; 0.123 ms a call, 4.5 % of the time of all
/// tasks", of those with a time.
std::vector<NotedKernel> kernel_notes(const Source& source,
                                      std::span<const std::optional<double>> best_s);

}  // namespace pruner
