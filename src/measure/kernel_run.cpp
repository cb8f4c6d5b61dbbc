#include "measure/kernel_run.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "measure/cache_state.h"
#include "measure/fma_probe.h"
#include "measure/kernel_check.h"
#include "runtime/flush_denormals.h"
#include "runtime/module/thread_pool.h"
#include "runtime/thread_pool.h"

namespace pruner {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAttempts = 5;     // to find a quiet moment, after waits of 5, 10, 20, 40 ms
constexpr double kQuiet = 0.95;  // a probe below this part of the best is not one
// Nor is a moment at which restoring the caches takes so many times as long.
constexpr double kQuietRestore = 1.4;
constexpr size_t kFewRestores = 5;
constexpr double kProbeS = 0.0005;
constexpr double kNear = 1.05;  // times the best time: worth all repeats
constexpr int64_t kMostCalls = 4;

// A crash leaves the address that it was at; the parent names the signal. The handler takes no
// argument, so what it needs lies here, in a child that runs one kernel.
struct {
  RunReport* report = nullptr;
  const KernelArguments* arguments = nullptr;
} crash_site;

void note_fault(int, siginfo_t* signal, void*) {
  const auto& arguments = crash_site.arguments->arguments;
  const auto note = [&](const GuardedBuffer& buffer, int i) {
    if (!buffer.holds(signal->si_addr)) return;
    crash_site.report->fault_argument = i;
    crash_site.report->fault_offset = static_cast<std::byte*>(signal->si_addr) - buffer.data();
  };
  int i = 0;
  for (const GuardedBuffer* buffer : arguments) note(*buffer, i++);
  note(crash_site.arguments->workspace(), i);
  // Returning runs the instruction again, which now kills the process: the handler is gone.
}

void watch_for_faults(RunReport& report, const KernelArguments& arguments) {
  crash_site.report = &report;
  crash_site.arguments = &arguments;
  struct sigaction action = {};
  action.sa_sigaction = note_fault;
  action.sa_flags = SA_SIGINFO | static_cast<int>(SA_RESETHAND);
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

// How often threads of this process had to leave their cores.
int64_t preemptions() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

void run(PrunerKernel kernel, const KernelArguments& arguments, PrunerPool& pool) {
  const FlushDenormals flush;
  kernel(arguments.pointers.data(), arguments.workspace().data(), &pool);
}

// A loaded kernel with its arguments, called and timed.
class KernelCall {
 public:
  KernelCall(PrunerKernel kernel,
             const KernelArguments& arguments,
             const CacheState& cache,
             KernelCheck& check,
             PrunerPool& pool)
      : kernel_(kernel), arguments_(arguments), cache_(cache), check_(check), pool_(pool) {}

  /// Returns the time of restoring the caches before the calls since the last question; 0: there
  /// were too few calls. The time is the lower quartile, because restoring takes longer before a
  /// process' first calls.
  double take_restore_s() {
    const double seconds = restores_s_.size() < kFewRestores ? 0 : typical(restores_s_);
    restores_s_.clear();
    return seconds;
  }
  /// The first thing that was wrong after a timed call.
  const std::optional<std::string>& wrong() const { return wrong_; }

  /// Each call is timed alone, with the caches as they are in a network, which for a short one
  /// takes a hundred times as long as itself: few are enough.
  Repeat time(int64_t calls) {
    if (wrong_) return {kFailedCost};
    calls = std::min(calls, kMostCalls);
    Repeat sum{0};
    for (int64_t i = 0; i < calls && !wrong_; ++i) {
      const Repeat one = time_one();
      sum.cost_s += one.cost_s / static_cast<double>(calls);
      sum.disturbed |= one.disturbed;
    }
    return sum;
  }

 private:
  Repeat time_one() {
    check_.refill();
    const auto before = Clock::now();
    cache_.restore(pool_);
    restores_s_.push_back(std::chrono::duration<double>(Clock::now() - before).count());
    const int64_t taken_over = pruner_pool_taken_over(&pool_);
    const int64_t preempted = preemptions();
    const auto start = Clock::now();
    run(kernel_, arguments_, pool_);
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    const bool disturbed =
        preemptions() != preempted || pruner_pool_taken_over(&pool_) != taken_over;
    wrong_ = check_.find_wrong_again();
    return {elapsed.count(), disturbed};
  }

  PrunerKernel kernel_;
  const KernelArguments& arguments_;
  const CacheState& cache_;
  KernelCheck& check_;
  PrunerPool& pool_;
  std::vector<double> restores_s_;
  std::optional<std::string> wrong_;
};

// Times at a moment when the machine gives what it can, as far as one comes in a few attempts;
// keeps the fastest attempt. The clock of the cores is probed by multiplications. Their caches and
// memory, which other machines on the same processor may share, are probed by the time that
// restoring the caches takes before each call, which reads and writes the same bytes each time.
Timing time_when_quiet(KernelCall& call,
                       TimingRules rules,
                       PrunerPool& pool,
                       BestMoment& best_moment) {
  double& peak = best_moment.peak_gflops;
  const auto probe = [&] {
    const double gflops = fma_gflops(pool, kProbeS);
    peak = std::max(peak, gflops);
    return gflops;
  };
  if (peak == 0) {
    for (int i = 0; i < 10; ++i) probe();
  }
  Timing best;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5 << (attempt - 1)));
    if (attempt == 1) rules.budget_s /= 2;  // there may be no quiet moment for hours
    const double before = probe();
    Timing timing = time_repeats([&](int64_t calls) { return call.time(calls); }, rules);
    const double restore_s = call.take_restore_s();
    double& least_s = best_moment.restore_s;
    if (restore_s > 0) least_s = least_s > 0 ? std::min(least_s, restore_s) : restore_s;
    const double slower = restore_s > kQuietRestore * least_s ? restore_s / least_s : 1;
    // Another moment may make it that much faster.
    const bool near = rules.near_s == 0 || typical(timing.costs_s) < slower * rules.near_s;
    const bool quiet =
        !timing.disturbed && std::min(before, probe()) >= kQuiet * peak && (slower == 1 || !near);
    if (attempt == 0 || typical(timing.costs_s) < typical(best.costs_s)) best = std::move(timing);
    // A candidate that is far off the best needs no better moment.
    if (call.wrong() || quiet || (best.cut_off && best.costs_s[0] > 2 * rules.cut_off_s)) break;
  }
  return best;
}

}  // namespace

void fail(RunReport& report, MeasureError error, const std::string& text) {
  report.error = error;
  fmt::format_to_n(report.error_text, sizeof report.error_text - 1, "{}", text);
}

// One run on whole numbers, which must give every bit: it finds what is in the wrong place.
static void run_exactly(const Workload& exact,
                        const Artifact& artifact,
                        PrunerKernel entry,
                        PrunerPool& pool,
                        Rng fresh,
                        RunReport& report) {
  const auto arguments = make_arguments(exact, artifact);
  if (!arguments.ok())
    return fail(report, MeasureError::kRuntimeDevice, arguments.error().message());
  watch_for_faults(report, *arguments);
  run(entry, *arguments, pool);
  KernelCheck check(exact, artifact, *arguments, fresh);
  if (const auto wrong = check.find_wrong())
    fail(report, MeasureError::kWrongAnswer, *wrong + " exactly, of whole numbers");
}

TimingRules timing_rules(const MeasureOptions& options, double best_s) {
  TimingRules rules;
  rules.min_repeat_s = options.min_repeat_s;
  rules.max_repeats = std::min(options.max_repeats, RunReport::kMaxRepeats);
  rules.budget_s = options.time_budget_s;
  rules.cut_off_s = options.cut_off_ratio * best_s;
  rules.near_s = best_s < kFailedCost ? kNear * best_s : 0;
  return rules;
}

void take(const Timing& timing, RunReport& report) {
  std::copy(timing.costs_s.begin(), timing.costs_s.end(), report.costs_s);
  report.repeats = static_cast<int>(timing.costs_s.size());
  report.cut_off = timing.cut_off;
}

void run_kernel(const Workload& workload,
                const Artifact& artifact,
                const KernelLoader& loader,
                const MeasureOptions& options,
                double best_s,
                BestMoment best_moment,
                RunReport& report) {
  const auto kernel = loader(artifact);
  if (!kernel.ok()) return fail(report, MeasureError::kCompileDevice, kernel.error().message());
  const int threads = workload.task.target.threads;
  const CoreWatch watch(threads);
  const ThreadPool pool = make_thread_pool(threads, true);
  if (pool == nullptr) {
    return fail(report, MeasureError::kRuntimeDevice, fmt::format("no {} threads", threads));
  }
  const PrunerKernel entry = (*kernel)->entry();
  const auto arguments = make_arguments(workload, artifact);
  if (!arguments.ok()) {
    return fail(report, MeasureError::kRuntimeDevice, arguments.error().message());
  }
  watch_for_faults(report, *arguments);
  report.stage = RunStage::kFirstRun;
  run(entry, *arguments, *pool);
  KernelCheck check(workload, artifact, *arguments, workload.fresh);
  const auto wrong = check.find_wrong();
  report.refuted = check.refuted();
  if (wrong) return fail(report, MeasureError::kWrongAnswer, *wrong);

  report.stage = RunStage::kTiming;
  const CacheState cache(workload, *arguments, options.weights_from);
  KernelCall call(entry, *arguments, cache, check, *pool);
  const Timing timing = time_when_quiet(call, timing_rules(options, best_s), *pool, best_moment);
  if (call.wrong())
    return fail(report, MeasureError::kWrongAnswer, *call.wrong() + " when run again");
  // Packing other weights takes a while, so only what may be chosen is asked for every bit.
  if (workload.exact != nullptr && form_error(artifact) == 0 && typical(timing.costs_s) < best_s) {
    run_exactly(*workload.exact, artifact, entry, *pool, workload.fresh, report);
    if (report.error != MeasureError::kNone) return;
  }
  take(timing, report);
  report.busy = watch.time();
  report.best_moment = best_moment;
  report.stage = RunStage::kDone;
}

}  // namespace pruner
