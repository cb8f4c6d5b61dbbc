// Runs candidates of one task on a GPU. The driver's context, the task's inputs and the timing are
// those of one process, which the measurer starts anew when a candidate has spoilt it or hangs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "measure/kernel_arguments.h"
#include "measure/timing.h"
#include "measure/workload.h"
#include "runtime/gpu_context.h"

namespace pruner {

class DeviceRunner {
 public:
  /// Opens the device of a backend with that number in list_gpus().
  static Result<std::unique_ptr<DeviceRunner>> open(Backend backend, int number);

  void set_options(MeasureOptions options) { options_ = std::move(options); }
  /// Puts the inputs of what run() measures from now on onto the device.
  Result<Unit> set_task(Task task);
  bool has_task() const { return workload_.has_value(); }
  /// Checks and times one candidate; times are the device's own. `best_s` as in Measurer::measure.
  MeasureResult run(const Artifact& artifact, double best_s);
  /// Whether the device serves this process no more.
  bool lost() { return context_->lost(); }

 private:
  explicit DeviceRunner(std::unique_ptr<GpuContext> context) : context_(std::move(context)) {}
  Result<Unit> prepare_flush();
  MeasureResult check_and_time(const Artifact& artifact, double best_s);
  /// Buffers of all arguments and the workspace: the task's own inputs, and `made` for the rest.
  Result<std::vector<GpuBuffer*>> fill_buffers(const Artifact& artifact,
                                               const KernelArguments& arguments,
                                               std::vector<GpuBuffer>& made);
  /// In how many turns the constants are others each time, so that none is in the second-level
  /// cache when its turn comes; 1: they are where the last call has left them.
  int64_t turns(const Artifact& artifact, const KernelArguments& arguments) const;
  /// The buffers of each turn: those of the first, and for each other copies of the constants.
  /// Those that are packed for this artifact alone go into `copies`.
  Result<std::vector<std::vector<GpuBuffer*>>> fill_turns(const Artifact& artifact,
                                                          const KernelArguments& arguments,
                                                          const std::vector<GpuBuffer*>& first,
                                                          std::vector<GpuBuffer>& copies);
  /// `repeat` leaves in `result` what went wrong.
  Timing time(const std::function<Repeat(int64_t calls)>& repeat,
              double best_s,
              MeasureResult& result);

  std::unique_ptr<GpuContext> context_;
  MeasureOptions options_;
  std::optional<Workload> workload_;
  std::vector<GpuBuffer> inputs_;                             // inputs of the task, unpacked
  std::map<size_t, std::vector<GpuBuffer>> constant_copies_;  // copies by their number in inputs_
  std::vector<GpuBuffer> flush_;  // one that fills the second-level cache, if that is asked for
};

}  // namespace pruner
