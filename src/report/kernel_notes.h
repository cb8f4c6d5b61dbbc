// Notes on the nodes of a network's file, which a viewer shows: tasks and their measurements.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/partition.h"

namespace pruner {

/// Returns a note for each kernel of a source whose nodes are numbered: "task 3: conv2d ..., called
/// 4 x". If `best_s` has the seconds of the kernel's task, the note goes on: "; 0.123 ms a call,
/// 4.5 % of the time of all tasks". Only tasks with a time count.
std::vector<NotedKernel> kernel_notes(const Source& source,
                                      std::span<const std::optional<double>> best_s);

}  // namespace pruner
