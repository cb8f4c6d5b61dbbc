#include "measure/runner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <utility>

#include "measure/frame.h"
#include "measure/kernel_arguments.h"
#include "measure/process_limits.h"
#include "measure/shared_memory.h"
#include "measure/wire.h"
#include "measure/worker_loop.h"

namespace pruner {

namespace {

// Address space of a child: for what is not known to need more, and for each thread (its stack, and
// what malloc sets aside).
constexpr int64_t kMemoryBytes = int64_t{4} << 30;
constexpr int64_t kThreadBytes = int64_t{64} << 20;

// How often a candidate is run that another kills, until it counts as its own fault.
constexpr int kKilledAttempts = 3;

// A probe seen long ago should not call every later moment noisy.
constexpr double kForget = 0.998;

struct End {
  bool timed_out;
  int wait_status;

  /// Whether another process killed the child: a system that is short of memory, say.
  bool killed() const {
    return !timed_out && WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
  }
};

/// Tells when a child ends: it alone holds the other end of a pipe. Every kernel has that, and
/// every container allows it.
class EndOfChild {
 public:
  EndOfChild() { open_ = pipe2(ends_, O_CLOEXEC) == 0; }
  EndOfChild(const EndOfChild&) = delete;
  ~EndOfChild() {
    close_end(0);
    close_end(1);
  }
  bool open() const { return open_; }
  void in_child() { close_end(0); }
  void in_parent() { close_end(1); }

  /// Waits for the child for at most `seconds`; then kills it.
  End wait(pid_t child, double seconds) {
    const Deadline deadline = after(seconds);
    pollfd entry{ends_[0], POLLIN, 0};
    int ready = -1;
    do {
      ready = poll(&entry, 1, milliseconds_until(deadline));
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0) kill(child, SIGKILL);
    End end{ready == 0, 0};
    while (waitpid(child, &end.wait_status, 0) < 0 && errno == EINTR) {
    }
    return end;
  }

 private:
  void close_end(int which) {
    if (open_ && ends_[which] >= 0) close(std::exchange(ends_[which], -1));
  }

  bool open_;
  int ends_[2];
};

MeasureResult no_process() {
  return failed_result(MeasureError::kUnknown,
                       std::string("no process for a candidate: ") + std::strerror(errno));
}

std::string_view stage_words(RunStage stage) {
  switch (stage) {
    case RunStage::kLoad: return "while it was loaded";
    case RunStage::kFirstRun: return "in its first run";
    case RunStage::kTiming: return "while it was timed";
    case RunStage::kDone: return "after it was timed";
  }
  return "";
}

// "128 bytes past the end of output 0 (float32 8x8)"
std::string describe_fault(const RunReport& report, const Artifact& artifact) {
  const std::string name = argument_name(artifact, report.fault_argument);
  const int64_t bytes = argument_bytes(artifact, report.fault_argument);
  if (report.fault_offset < 0) {
    return fmt::format("{} bytes before {}", -report.fault_offset, name);
  }
  if (report.fault_offset >= bytes) {
    return fmt::format("{} bytes past the end of {}", report.fault_offset - bytes, name);
  }
  return "writing to " + name;
}

MeasureResult judge(const RunReport& report,
                    const End& end,
                    const Artifact& artifact,
                    double timeout_s) {
  const std::string_view when = stage_words(report.stage);
  if (end.timed_out) {
    return failed_result(MeasureError::kRunTimeout,
                         fmt::format("still running after {} s, {}", timeout_s, when));
  }
  if (report.error != MeasureError::kNone) return failed_result(report.error, report.error_text);
  if (report.stage != RunStage::kDone) {
    std::string text = fmt::format("{} {}", describe_end(end.wait_status), when);
    if (report.fault_argument >= 0) text += ", " + describe_fault(report, artifact);
    return failed_result(MeasureError::kRuntimeDevice, text);
  }
  MeasureResult result;
  result.costs_s.assign(report.costs_s, report.costs_s + report.repeats);
  result.cut_off = report.cut_off;
  return result;
}

}  // namespace

Runner::Runner(KernelLoader loader) : loader_(std::move(loader)) {}

Result<Unit> Runner::set_task(Task task) {
  const bool same_threads = workload_ && workload_->task.target.threads == task.target.threads;
  if (!same_threads) best_moment_ = {};
  best_moment_.restore_s = 0;
  workload_.reset();
  TRY_ASSIGN(workload_, make_workload(std::move(task), options_));
  return Unit{};
}

MeasureResult Runner::run(const Artifact& artifact, double best_s) {
  CHECK(workload_.has_value()) << "no task to run a kernel of";
  const auto start = std::chrono::steady_clock::now();
  MeasureResult result;
  for (int attempt = 0; attempt < kKilledAttempts; ++attempt) {
    const Attempt made = attempt_run(artifact, best_s);
    result = made.result;
    if (!made.killed) break;
  }
  result.run_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.timestamp = std::time(nullptr);
  return result;
}

Runner::Attempt Runner::attempt_run(const Artifact& artifact, double best_s) {
  int64_t memory_bytes = kMemoryBytes;
  for (size_t i = 0; i < artifact.arguments.size(); ++i) {
    memory_bytes += 4 * argument_bytes(artifact, static_cast<int>(i));
  }
  const int threads = workload_->task.target.threads;
  memory_bytes += threads * kThreadBytes;
  const double limit_s = options_.run_timeout_s;
  const double cpu_s = (limit_s + 2) * threads;
  const Shared<RunReport> report;
  workload_->fresh = workload_->fresh.split();
  EndOfChild end_of_child;
  if (!report.mapped() || !end_of_child.open()) return {no_process()};
  const pid_t child = fork();
  if (child < 0) return {no_process()};
  if (child == 0) {
    end_of_child.in_child();
    die_with_parent();
    limit_this_process(memory_bytes, cpu_s);
    run_kernel(*workload_, artifact, loader_, options_, best_s, best_moment_, *report);
    _exit(0);
  }
  end_of_child.in_parent();
  const End end = end_of_child.wait(child, limit_s);
  const BestMoment& found = report->best_moment;
  if (found.peak_gflops > 0) {
    best_moment_.peak_gflops = std::max(found.peak_gflops, best_moment_.peak_gflops * kForget);
    best_moment_.restore_s = found.restore_s / kForget;
  }
  MeasureResult result = judge(*report, end, artifact, limit_s);
  result.refuted = report->refuted;
  result.busy = report->busy;
  return {std::move(result), end.killed()};
}

static Result<MeasureResult> answer_run(Runner& runner, const Frame& request) {
  const Json& header = request.header;
  if (header.contains("options")) {
    TRY_ASSIGN(MeasureOptions options, options_from_json(header["options"]));
    runner.set_options(std::move(options));
  }
  if (header.contains("task")) {
    TRY_ASSIGN(Task task, task_from_json(header["task"]));
    TRY(runner.set_task(std::move(task)));
  }
  if (!runner.has_task()) return Error("an artifact came before its task");
  TRY_ASSIGN(const RunRequest asked, run_request_from_frame(request));
  return runner.run(asked.artifact, asked.best_s);
}

int serve_runs(KernelLoader loader) {
  Runner runner(std::move(loader));
  return serve([&](const Frame& request) -> Frame {
    Result<MeasureResult> result = answer_run(runner, request);
    if (!result.ok()) result = failed_result(MeasureError::kUnknown, result.error().message());
    return {{{"result", to_json(*result)}}, ""};
  });
}

int run_runner() {
  return serve_runs(
      [](const Artifact& artifact) { return load_kernel(artifact.object, artifact.symbol); });
}

}  // namespace pruner
