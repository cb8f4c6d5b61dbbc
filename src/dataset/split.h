// Which measured programs a model trains on and which judge it: a task and an id of each program
// in, two lists out. The same for one seed, however the programs are ordered and whatever else is
// among them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace pruner {

enum class SplitScheme {
  kWithinTask,  // of each task its share
  kByTask,      // whole workloads, of all targets, until the share is reached
  kByTarget,    // whole targets, at least one on either side
};

/// "within_task", "by_task" or "by_target".
Result<SplitScheme> parse_split_scheme(std::string_view text);
std::string_view split_scheme_name(SplitScheme scheme);

struct SplitOptions {
  SplitScheme scheme = SplitScheme::kWithinTask;
  double train_ratio = 0.9;
  uint64_t seed = 0;
};

/// What a split looks at. Programs of equal id are on the same side.
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

/// Of each task's `programs` a share, drawn by id: all where that is less than 10.
std::vector<size_t> draw_share(std::span<const size_t> programs,
                               const SplitColumns& columns,
                               double share,
                               uint64_t seed);

}  // namespace pruner
