// Records -> a schedule for a task that none of them is of, without a measurement: that of the task
// with the nearest shape.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "record/record.h"
#include "space/space.h"

namespace pruner {

/// How far apart the shapes of two tasks of one anchor are: the mean of |ln(a/b)| over the extents
/// of their data, weights and output, as the workload key of the other lists them. Infinite where
/// that lists too few.
double shape_distance(const Task& task, std::string_view workload_key);

class NearestSchedules {
 public:
  /// `records`: usable ones, in the order of preference where a task has several.
  explicit NearestSchedules(std::vector<Record> records) : records_(std::move(records)) {}

  struct Found {
    Candidate candidate;
    bool same_task = false;  // else adapted from the nearest
  };
  /// The task's own schedule, or else that of the nearest task of its class, when that is near
  /// enough and fits, the number of threads, too. nullopt: the task's default is the better guess.
  std::optional<Found> find(const Task& task, const Space& space) const;

 private:
  std::vector<Record> records_;
};

}  // namespace pruner
