// Which kernels may give each other schedules: those that compute the same operators in the same
// order, whatever their shapes (Transfer-Tuning, section 4.2; reference.md, class, without TVM's
// suffixes).
#pragma once

#include <string>
#include <string_view>

namespace pruner {

/// The class of a task by its name: "conv2d 1x56x56x64 3x3 s1 -> 64 +bias +relu" is of the class
/// "conv2d+bias+relu".
std::string kernel_class(std::string_view task_name);

/// What stands between what is done to the data before and to the results after: "conv2d" of
/// "mul+add+relu+conv2d 1x56x56x64 1x1 s1 -> 128 +bias +relu".
std::string_view anchor_of(std::string_view task_name);

}  // namespace pruner
