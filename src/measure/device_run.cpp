#include "measure/device_run.h"

#include <algorithm>

#include "measure/kernel_arguments.h"
#include "measure/timing.h"
#include "runtime/opencl.h"

namespace pruner {
namespace {

// A program on the device and what lies in the host's memory for it.
class DeviceCall {
 public:
  DeviceCall(OpenClProgram& program, const Artifact& artifact, const KernelArguments& arguments)
      : program_(program), artifact_(artifact), arguments_(arguments) {}

  Result<Unit> write_all() {
    const auto count = static_cast<int>(arguments_.pointers.size());
    for (int i = 0; i < count; ++i) {
      TRY(program_.write_argument(i, arguments_.pointers[static_cast<size_t>(i)]));
    }
    if (artifact_.workspace_bytes == 0) return Unit{};
    return program_.write_argument(count, arguments_.workspace().data());
  }

  Result<Unit> read_outputs() {
    for (size_t i = 0; i < artifact_.arguments.size(); ++i) {
      if (!artifact_.arguments[i].output) continue;
      TRY(program_.read_argument(static_cast<int>(i), arguments_.pointers[i]));
    }
    return Unit{};
  }

  Repeat time(int64_t calls) {
    const Result<double> seconds = program_.run(calls);
    if (seconds.ok()) return {*seconds};
    problem_ = seconds.error().message();
    return {kFailedCost};  // ends the timing: too slow
  }

  const std::string& problem() const { return problem_; }

 private:
  OpenClProgram& program_;
  const Artifact& artifact_;
  const KernelArguments& arguments_;
  std::string problem_;
};

}  // namespace

void run_on_device(const Workload& workload,
                   const Artifact& artifact,
                   const MeasureOptions& options,
                   double best_s,
                   RunReport& report) {
  const auto program = load_opencl(artifact);
  if (!program.ok()) return fail(report, MeasureError::kCompileDevice, program.error().message());
  const auto arguments = make_arguments(workload, artifact);
  if (!arguments.ok()) {
    return fail(report, MeasureError::kRuntimeDevice, arguments.error().message());
  }
  DeviceCall call(**program, artifact, *arguments);
  const auto right = [&](const char* when) {
    if (const Result<Unit> read = call.read_outputs(); !read.ok()) {
      fail(report, MeasureError::kRuntimeDevice, read.error().message());
      return false;
    }
    const auto wrong = find_wrong(workload, artifact, *arguments);
    if (wrong) fail(report, MeasureError::kWrongAnswer, *wrong + when);
    return !wrong.has_value();
  };

  report.stage = RunStage::kFirstRun;
  if (const Result<Unit> written = call.write_all(); !written.ok()) {
    return fail(report, MeasureError::kRuntimeDevice, written.error().message());
  }
  if (const Result<double> ran = (*program)->run(1); !ran.ok()) {
    return fail(report, MeasureError::kRuntimeDevice, ran.error().message());
  }
  if (!right("")) return;

  report.stage = RunStage::kTiming;
  const Timing timing =
      time_repeats([&](int64_t calls) { return call.time(calls); }, timing_rules(options, best_s));
  if (!call.problem().empty()) {
    return fail(report, MeasureError::kRuntimeDevice, call.problem());
  }
  if (!right(" when run again")) return;
  take(timing, report);
  report.stage = RunStage::kDone;
}

}  // namespace pruner
