// What a tuner and a fleet's workers tell each other. Candidates travel, not programs: a worker
// makes the code itself, so that no message can run anything but a legal schedule of a task.
#pragma once

#include "measure/measure.h"
#include "support/json.h"

namespace pruner {

/// Candidates of one task that one worker is to measure. Its task lies in the table fleet::kTasks.
struct TrialMessage {
  std::string id;    // "RUN.N", of no other message
  std::string task;  // its hash
  std::vector<Candidate> candidates;
  double best_s = kFailedCost;  // as Measurer::measure has it
  MeasureOptions options;
};

/// What became of them, in their order.
struct ResultMessage {
  TrialMessage trial;
  std::vector<MeasureResult> results;
  std::string worker;
};

std::string print(const TrialMessage& message);
Result<TrialMessage> parse_trial(std::string_view bytes);
std::string print(const ResultMessage& message);
/// An error where there is not one result for each candidate.
Result<ResultMessage> parse_result(std::string_view bytes);

/// A task as the table has it, and its key there.
std::string print_task(const Task& task);
std::string task_hash(std::string_view printed);
Result<Task> parse_task(std::string_view printed);

/// What a worker says of itself each few seconds.
struct WorkerState {
  std::string name, kind, target, host;
  int threads = 1;
  int64_t trials = 0, started = 0;  // measured; Unix seconds
  std::string state;                // "waits", "measures", "drains"
};
Json to_json(const WorkerState& state);
std::string print(const WorkerState& state);
Result<WorkerState> parse_worker(std::string_view bytes);

}  // namespace pruner
