// The inside of the child process that runs one candidate: load, run once, check, time. All that
// it finds out goes into a page shared with the runner, which reads it even if the child dies.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "codegen/codegen.h"
#include "codegen/loader.h"
#include "measure/kernel_arguments.h"
#include "measure/timing.h"
#include "measure/workload.h"
#include "target/core_watch.h"

namespace pruner {

/// Makes an artifact callable; load_kernel() but in tests.
using KernelLoader = std::function<Result<std::unique_ptr<LoadedKernel>>(const Artifact& artifact)>;

/// How far the child got.
enum class RunStage : int { kLoad, kFirstRun, kTiming, kDone };

/// BestMoment is what the machine did when nothing disturbed it: the best of the probes so far.
struct BestMoment {
  double peak_gflops = 0;  // 0: not probed yet
  double restore_s = 0;    // to restore the caches before a call of this workload; 0: not timed yet
};

/// RunReport is what the child leaves behind. Its plain memory outlives a crash at any moment.
struct RunReport {
  static constexpr int kMaxRepeats = 256;
  RunStage stage = RunStage::kLoad;
  MeasureError error = MeasureError::kNone;
  char error_text[512] = "";
  int repeats = 0;
  double costs_s[kMaxRepeats] = {};
  bool cut_off = false;
  bool refuted = false;     // the kernel whose outputs the candidates before had was wrong
  BestMoment best_moment;   // best of the runs before and of this run
  CoreTime busy;            // time of the kernel's cores
  int fault_argument = -1;  // argument that a crash's address belongs to; the workspace is the last
  int64_t fault_offset = 0;  // bytes from its beginning
};

/// Runs `artifact` and fills `report`. `best_s` as in Measurer::measure; `best_moment` is that of
/// the runs before.
void run_kernel(const Workload& workload,
                const Artifact& artifact,
                const KernelLoader& loader,
                const MeasureOptions& options,
                double best_s,
                BestMoment best_moment,
                RunReport& report);

// Functions that running on a CPU and on a GPU have in common.

void fail(RunReport& report, MeasureError error, const std::string& text);
TimingRules timing_rules(const MeasureOptions& options, double best_s);
/// Puts what was timed into the report.
void take(const Timing& timing, RunReport& report);

}  // namespace pruner
