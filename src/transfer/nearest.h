// Records -> a schedule for a task without a record, without a measurement: the schedule of the
// task with the nearest shape.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "record/record.h"
#include "space/space.h"

namespace pruner {

/// Returns the distance of the shapes of two tasks of one anchor: the mean of |ln(a/b)| over the
/// extents of data, weights and output. The other task's extents are those in `workload_key`; the
/// result is infinite if these are too few.
double shape_distance(const Task& task, std::string_view workload_key);

class NearestSchedules {
 public:
  /// `records` are usable, and in the order of preference if a task has several.
  explicit NearestSchedules(std::vector<Record> records) : records_(std::move(records)) {}

  struct Found {
    Candidate candidate;
    bool same_task = false;  // else adapted from the nearest
  };
  /// Returns the task's own schedule, else that of the nearest task of its class, if near enough
  /// and fitting, in threads, too. Returns nullopt if the task's default is the better guess.
  std::optional<Found> find(const Task& task, const Space& space) const;

 private:
  std::vector<Record> records_;
};

}  // namespace pruner
