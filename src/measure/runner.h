// Runs candidates of one task on this CPU, each in a child process of its own: whatever the code
// does, the next candidate runs normally. The runner itself has one thread and never makes code.
#pragma once

#include <optional>

#include "measure/kernel_run.h"

namespace pruner {

class Runner {
 public:
  /// `loader` is called in the child.
  explicit Runner(KernelLoader loader);

  void set_options(MeasureOptions options) { options_ = std::move(options); }
  /// Prepares the inputs and expected outputs of what run() measures from now on.
  Result<Unit> set_task(Task task);
  bool has_task() const { return workload_.has_value(); }
  /// Checks and times one candidate; `best_s` as in Measurer::measure.
  MeasureResult run(const Artifact& artifact, double best_s);

 private:
  struct Attempt {
    MeasureResult result;
    bool killed = false;  // killed by another process: worth a second attempt
  };
  Attempt attempt_run(const Artifact& artifact, double best_s);

  KernelLoader loader_;
  MeasureOptions options_;
  std::optional<Workload> workload_;
  BestMoment best_moment_;  // lately
};

/// Serves frames on standard input and output: {"task"?, "options"?, "artifact", "best_s"} with the
/// object as body is answered by {"result"}.
int serve_runs(KernelLoader loader);

}  // namespace pruner
