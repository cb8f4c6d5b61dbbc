// Records -> what they say of a task: its history, and the schedule to build it with.
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

/// The seconds that stand for a record; kWorstCost when the trial failed.
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

  /// The task's fastest recorded candidate; nullopt when there is none that this space knows. Where
  /// `unknown` is given it takes in why records have no candidate here: a decision out of range,
  /// say.
  std::optional<Candidate> best(const Task& task,
                                const Space& space,
                                Reasons* unknown = nullptr) const;
  /// Seconds that the candidate was measured to take; nullopt: it was not.
  std::optional<double> cost_s(const Task& task,
                               const Space& space,
                               const Candidate& candidate) const;
  /// How many of its records are of this device, and how many of these are of the task; those of
  /// kShapesOrigin are not counted.
  int64_t of_device() const { return of_device_; }
  int64_t of_task(const Task& task) const;

 private:
  using ByKey = std::unordered_map<std::string, std::vector<Record>>;
  ByKey by_key_;     // of this device
  ByKey of_shapes_;  // ... of kShapesOrigin
  int64_t of_device_ = 0;
};

}  // namespace pruner
