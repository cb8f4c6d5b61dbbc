// Says what a record is about, and what makes two records the same: the task, the program, the
// trial. Also gives the time that a record says.
#pragma once

#include <compare>
#include <optional>
#include <string>

#include "record/record.h"

namespace pruner {

/// A task on a device. Logs of TVM do not name the device: their targets stand for it.
struct RecordedTask {
  std::string workload_key, target, device;

  friend auto operator<=>(const RecordedTask&, const RecordedTask&) = default;
};
RecordedTask task_of(const Record& record);

/// The task's name; the workload key where it has none.
const std::string& name_of(const Record& record);

struct RecordIds {
  std::string program;  // the same for records of one program of one task
  std::string trial;    // the same for copies of one trial, in whatever version of the format
};
RecordIds ids_of(const Record& record);

/// Returns seconds: the mean of the repeats (as TVM has it), or the lower quartile for our own
/// records. Returns nullopt if the trial failed or if the time cannot be (0 or less, 1e9 or more).
std::optional<double> measured_s(const Record& record);

}  // namespace pruner
