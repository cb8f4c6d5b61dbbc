// Classes of kernels that may give each other schedules. Kernels of a class compute the same
// operators in the same order, whatever their shapes (Transfer-Tuning, section 4.2; reference.md,
// class, without TVM's suffixes).
#pragma once

#include <string>
#include <string_view>

namespace pruner {

/// Returns the class of a task by its name: "conv2d+bias+relu" for "conv2d 1x56x56x64 3x3 s1 -> 64
/// +bias +relu".
std::string kernel_class(std::string_view task_name);

/// Returns the operator between those on the data before and those on the results after: "conv2d"
/// in "mul+add+relu+conv2d 1x56x56x64 1x1 s1 -> 128 +bias +relu".
std::string_view anchor_of(std::string_view task_name);

}  // namespace pruner
