// Declares the messages between a tuner and a fleet's workers. Candidates travel, not programs: a
// worker makes the code itself, so that no message can run anything but a legal schedule of a task.
// Only a worker without a compiler takes code, from those whose signature it trusts.
#pragma once

#include <span>

#include "fleet/nkey.h"
#include "measure/build_worker.h"
#include "measure/measure.h"
#include "support/json.h"

namespace pruner {

/// Candidates of one task that one worker is to measure. Its task lies in the table fleet::kTasks.
struct TrialMessage {
  std::string id;    // "RUN.N", unlike any other message's
  std::string task;  // hash of the task
  std::vector<Candidate> candidates;
  double best_s = kFailedCost;  // same as Measurer::measure's
  MeasureOptions options;
};

/// A trial of one candidate and its code: a shared library that exports the artifact's symbol.
struct ObjectMessage {
  TrialMessage trial;
  Build build;
};

/// ResultMessage says what became of a trial's candidates, in their order. If the worker was
/// stopped, only the first few have results.
struct ResultMessage {
  TrialMessage trial;
  std::vector<MeasureResult> results;
  std::string worker;
  double build_s = 0, run_s = 0;  // seconds that the worker spent, as MeasureTimes has them
};

std::string print(const TrialMessage& message);
Result<TrialMessage> parse_trial(std::string_view bytes);
/// Prints the message, signed by who has built the code.
Result<std::string> print(const ObjectMessage& message, const NKey& builder);
/// Fails, too, if the signature is by none of the public keys.
Result<ObjectMessage> parse_object(std::string_view bytes, std::span<const std::string> trusted);
/// The id of a printed TrialMessage or ObjectMessage; empty: it is none.
std::string trial_id(std::string_view bytes);
/// When the worker was at its trials is told in seconds before this call ...
std::string print(const ResultMessage& message);
/// ... and read as seconds before this one. An error where there is no result, or one too many.
Result<ResultMessage> parse_result(std::string_view bytes);

/// A task as the table has it, and its key there.
std::string print_task(const Task& task);
std::string task_hash(std::string_view printed);
Result<Task> parse_task(std::string_view printed);

/// WorkerRole says what a worker does with a trial: all of it, or only one half.
enum class WorkerRole : uint8_t { kMeasure, kBuild, kRun };
/// "measure", "build", "run".
std::string_view role_name(WorkerRole role);
Result<WorkerRole> parse_role(std::string_view name);

/// WorkerState is what a worker says of itself each few seconds.
struct WorkerState {
  std::string name, kind, host;
  WorkerRole role = WorkerRole::kMeasure;
  std::string program;  // program_hash()
  std::string target;   // empty: the worker builds for the target of each trial
  int threads = 1;
  int64_t trials = 0, started = 0;  // measured; Unix seconds
  std::string state;                // "waits", "measures", "drains"
};
Json to_json(const WorkerState& state);
std::string print(const WorkerState& state);
Result<WorkerState> parse_worker(std::string_view bytes);

}  // namespace pruner
