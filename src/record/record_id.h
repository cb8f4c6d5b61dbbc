// What a record is of, and what makes two the same: its task, its program, its trial; and the time
// that it says.
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

/// Seconds: the mean of the repeats (as TVM has it), of our own records the lower quartile. nullopt
/// for a failed trial, and for a time that cannot be (0 or less, 1e9 or more).
std::optional<double> measured_s(const Record& record);

}  // namespace pruner
