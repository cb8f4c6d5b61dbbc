// The Transfer-Tuning experiment (its section 5; reference.md, experiment): each network of a set
// tuned, each from the schedules of each other, and what searches make of the same time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/transfer_run.h"
#include "report/transfer_report.h"

namespace pruner {

/// A network of the set.
struct ExperimentNetwork {
  std::string name;
  Partition partition;
  std::vector<WeightedTask> tasks;
};

struct ExperimentOptions {
  Target target;
  SessionOptions session;      // of every search: trials of a network's own tuning, seed, jobs
  LearnedModelOptions models;  // with weights: of a PaCM that ranks schedules
  int64_t verify = 0;          // schedules of a task that are measured; 0: all
  int64_t stops = 30;          // at which a search is looked at before it is given up
  bool minute_check =
      false;  // stops are a minute apart, as published; else half the transfer's time
};

/// What an experiment works with; all of it outlives the experiment.
struct ExperimentTools {
  std::function<Result<std::unique_ptr<Measurer>>(const ExperimentNetwork& network)> make_measurer;
  const std::atomic<bool>& stop;
  std::function<void(const std::string& what, const Tuner& tuner, const RoundSummary& summary)>
      on_round;
  /// A network was done, the last of `targets`.
  std::function<Result<Unit>(const std::vector<TransferTarget>& targets)> on_target;
};

/// Goes on after the targets that are `done`. The searches' records and the modules are under
/// session.work_dir. Fewer targets than networks come back when it was stopped.
Result<std::vector<TransferTarget>> run_experiment(const std::vector<ExperimentNetwork>& networks,
                                                   std::vector<TransferTarget> done,
                                                   const ExperimentOptions& options,
                                                   const ExperimentTools& tools);

}  // namespace pruner
