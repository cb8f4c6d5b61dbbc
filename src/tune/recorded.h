// Records -> a task's history, and the schedule to build the task with.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "record/reasons.h"
#include "record/record.h"
#include "search/history.h"

namespace pruner {

/// The records of a file. A last line that a crash cut short is left out; any other line that is no
/// record is an error that names it.
Result<std::vector<Record>> read_intact_records(const std::string& path);

/// Returns the seconds that stand for a record; kWorstCost if the trial failed.
double recorded_cost_s(const Record& record);

/// A task's history from its records, in their order: when candidates were measured again at the
/// end of a run ("final"), the least of these times replaces what the search saw.
class RecordedTrials {
 public:
  void add(const Record& record, const Candidate& candidate);
  const History& history() const { return history_; }

 private:
  History history_;
  std::unordered_map<Candidate, double, CandidateHash> final_s_;
};

/// The best schedules that records hold for this device, by task.
class RecordedSchedules {
 public:
  RecordedSchedules(std::vector<Record> records, const Target& target);

  /// Returns the task's fastest recorded candidate; nullopt if this space knows none. If given,
  /// `unknown` takes in why records have no candidate here, such as a decision out of range.
  std::optional<Candidate> best(const Task& task,
                                const Space& space,
                                Reasons* unknown = nullptr) const;
  /// Returns the measured seconds of the candidate; nullopt if it was not measured.
  std::optional<double> cost_s(const Task& task,
                               const Space& space,
                               const Candidate& candidate) const;
  /// Return how many records are of this device, and how many of these are of the task. Records of
  /// kShapesOrigin are not counted.
  int64_t of_device() const { return of_device_; }
  int64_t of_task(const Task& task) const;

 private:
  using ByKey = std::unordered_map<std::string, std::vector<Record>>;
  ByKey by_key_;     // records of this device
  ByKey of_shapes_;  // those of kShapesOrigin
  int64_t of_device_ = 0;
};

}  // namespace pruner
