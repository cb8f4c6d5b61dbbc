// Splits measured programs into those that train a model and those that judge the model: tasks and
// ids of programs in, two lists out. One seed gives one split, in any order of the programs and
// with any other programs among them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace pruner {

enum class SplitScheme {
  kWithinTask,  // the share of each task's programs
  kByTask,      // whole workloads, on all targets, until the share is reached
  kByTarget,    // whole targets, at least one on either side
};

/// Parses "within_task", "by_task" or "by_target".
Result<SplitScheme> parse_split_scheme(std::string_view text);
std::string_view split_scheme_name(SplitScheme scheme);

struct SplitOptions {
  SplitScheme scheme = SplitScheme::kWithinTask;
  double train_ratio = 0.9;
  uint64_t seed = 0;
};

/// `SplitColumns` holds the columns that a split reads. Programs of equal id are on the same side.
struct SplitColumns {
  std::span<const int32_t> task;  // one a program
  std::span<const uint64_t> id;   // one a program
  // One a task:
  std::vector<std::string> workload, target;
};

struct Split {
  std::vector<size_t> train, test;  // programs, ascending
};

/// Errors: by_target without two targets.
Result<Split> split(const SplitColumns& columns, const SplitOptions& options);

/// Draws a share of each task's `programs` by id: at least 10 programs, or all if there are fewer.
std::vector<size_t> draw_share(std::span<const size_t> programs,
                               const SplitColumns& columns,
                               double share,
                               uint64_t seed);

}  // namespace pruner
