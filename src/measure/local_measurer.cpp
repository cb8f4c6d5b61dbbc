// The measurer of this machine: one event loop over some compiler workers and one runner. With
// cores to spare, candidates are run while others are built; otherwise the whole batch is built
// first and then run with nothing else going on.
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <optional>
#include <utility>

#include "measure/build_worker.h"
#include "measure/runner.h"
#include "measure/wire.h"
#include "measure/worker_process.h"
#include "support/log.h"

namespace pruner {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kDeaths = 2;          // of workers, until it is the candidate's fault
constexpr double kTaskSetupS = 10;  // on top of a time limit, when the task comes with it

enum class Step { kToBuild, kBuilding, kToRun, kRunning, kDone };

// One candidate on its way.
struct Job {
  Step step = Step::kToBuild;
  Artifact artifact;
  MeasureResult result;
  int deaths = 0;
};

// A worker, the job it is at (-1: none) and the task it knows.
struct Station {
  WorkerProcess process;
  int job = -1;
  std::string task_key;
};

int available_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return CPU_COUNT(&cores);
}

class LocalMeasurer : public Measurer {
 public:
  LocalMeasurer(MeasureOptions options, const std::string& program)
      : options_(std::move(options)), runner_{{program, {"worker", "run"}}, -1, ""} {
    for (int i = 0; i < std::max(1, options_.build_jobs); ++i) {
      builders_.push_back({{program, {"worker", "build"}}, -1, ""});
    }
  }

  Result<Unit> start() {
    for (Station& builder : builders_) TRY(builder.process.start());
    return runner_.process.start();
  }

  std::vector<MeasureResult> measure(const Task& task,
                                     std::span<const Candidate> batch,
                                     double best_s) override {
    task_ = &task;
    batch_ = batch;
    best_s_ = best_s;
    jobs_.assign(batch.size(), Job{});
    const int cores = available_cores();
    const int spare = cores - task.target.threads;
    overlap_ = spare > 0;
    const int wanted = std::min(static_cast<int>(builders_.size()), overlap_ ? spare : cores);
    active_builders_ = std::max(1, wanted);

    bool stopped = false;
    while (count(Step::kDone) < static_cast<int>(jobs_.size())) {
      stopped = stopped || (options_.stop && options_.stop());
      if (!stopped) hand_out();
      if (!busy()) break;
      wait_and_collect();
    }
    std::vector<MeasureResult> results;
    for (Job& job : jobs_) {
      if (job.step != Step::kDone) break;
      results.push_back(std::move(job.result));
    }
    return results;
  }

  MeasureTimes times() const override { return times_; }

 private:
  int count(Step step) const {
    return static_cast<int>(
        std::count_if(jobs_.begin(), jobs_.end(), [&](const Job& j) { return j.step == step; }));
  }
  std::optional<int> first(Step step) const {
    for (size_t i = 0; i < jobs_.size(); ++i) {
      if (jobs_[i].step == step) return static_cast<int>(i);
    }
    return std::nullopt;
  }
  bool building() const {
    return std::any_of(
        builders_.begin(), builders_.end(), [](const Station& s) { return s.job >= 0; });
  }
  bool busy() const { return building() || runner_.job >= 0; }

  void hand_out() {
    for (int i = 0; i < active_builders_; ++i) {
      Station& builder = builders_[static_cast<size_t>(i)];
      const std::optional<int> job = first(Step::kToBuild);
      if (builder.job < 0 && job) begin_build(builder, *job);
    }
    if (runner_.job >= 0) return;
    if (!overlap_ && (building() || first(Step::kToBuild))) return;
    if (const std::optional<int> job = first(Step::kToRun)) begin_run(*job);
  }

  void begin_build(Station& builder, int job) {
    jobs_[job].step = Step::kBuilding;
    const Json request = {{"candidate", to_json(batch_[job])}};
    send(builder, job, {request, ""}, options_.build_timeout_s);
  }

  void begin_run(int job) {
    jobs_[job].step = Step::kRunning;
    const Artifact& artifact = jobs_[job].artifact;
    const Json request = {{"artifact", to_json(artifact)}, {"best_s", best_s_}};
    // The runner itself stops a candidate that runs too long; this is for a runner that hangs.
    const double compile_s = artifact.backend == Backend::kLlvm ? 0 : kDriverCompileS;
    send(runner_, job, {request, artifact.object}, options_.run_timeout_s + compile_s + 10);
  }

  // Sends to a worker that knows the task, or learns it by this request.
  void send(Station& station, int job, Frame request, double timeout_s) {
    station.job = job;
    if (!station.process.alive()) {
      station.task_key.clear();
      const Result<Unit> started = station.process.start();
      if (!started.ok())
        return finish(station, failed(MeasureError::kUnknown, started.error().message()));
    }
    if (station.task_key != task_->key) {
      request.header["task"] = to_json(*task_);
      request.header["options"] = to_json(options_);
      station.task_key = task_->key;
      timeout_s += kTaskSetupS;
    }
    const FrameStatus status = station.process.send(request, timeout_s);
    if (status != FrameStatus::kOk) lose(station, status);
  }

  void wait_and_collect() {
    std::vector<Station*> waiting;
    std::vector<pollfd> entries;
    Deadline deadline = kNoDeadline;
    const auto add = [&](Station& station) {
      if (station.job < 0) return;
      waiting.push_back(&station);
      entries.push_back({station.process.fd(), POLLIN, 0});
      deadline = std::min(deadline, station.process.deadline());
    };
    for (Station& builder : builders_) add(builder);
    add(runner_);
    const bool running = runner_.job >= 0;
    const auto start = Clock::now();
    const int ready = poll(entries.data(), entries.size(), milliseconds_until(deadline));
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    (running ? times_.run_s : times_.build_s) += elapsed.count();
    if (ready < 0) return;  // interrupted: measure() asks whether to stop
    for (size_t i = 0; i < waiting.size(); ++i) {
      const bool late = Clock::now() >= waiting[i]->process.deadline();
      if (entries[i].revents != 0) {
        collect(*waiting[i]);
      } else if (late) {
        lose(*waiting[i], FrameStatus::kTimeout);
      }
    }
  }

  void collect(Station& station) {
    ReadFrame answer = station.process.receive();
    if (answer.status != FrameStatus::kOk) return lose(station, answer.status);
    if (&station == &runner_) {
      const Result<Json> json = json_get<Json>(answer.frame.header, "result");
      Result<MeasureResult> result =
          json.ok() ? result_from_json(*json) : Result<MeasureResult>(json.error());
      if (!result.ok())
        return finish(station, failed(MeasureError::kUnknown, result.error().message()));
      return finish(station, *std::move(result));
    }
    Result<Build> build = build_from_frame(std::move(answer.frame));
    if (!build.ok())
      return finish(station, failed(MeasureError::kUnknown, build.error().message()));
    Job& job = jobs_[station.job];
    job.result.build_s = build->build_s;
    if (build->error != MeasureError::kNone) {
      return finish(station, failed(build->error, std::move(build->error_text)));
    }
    job.artifact = std::move(build->artifact);
    job.step = Step::kToRun;
    station.job = -1;
  }

  // The worker hangs or is gone; the next job gets a new one. A worker can die without being to
  // blame for it, so the job is tried again, once.
  void lose(Station& station, FrameStatus status) {
    const std::string end = station.process.end();
    const bool runs = &station == &runner_;
    Job& job = jobs_[station.job];
    if (status == FrameStatus::kTimeout) {
      const std::string text =
          runs ? "the runner did not answer"
               : fmt::format("still compiling after {} s", options_.build_timeout_s);
      finish(station, failed(runs ? MeasureError::kRunTimeout : MeasureError::kBuildTimeout, text));
    } else if (++job.deaths < kDeaths) {
      log_detail("worker {} ended ({}) and is started again", runs ? "run" : "build", end);
      job.step = runs ? Step::kToRun : Step::kToBuild;
      station.job = -1;
    } else {
      finish(station,
             runs ? failed(MeasureError::kUnknown, "the runner ended: " + end)
                  : failed(MeasureError::kCompileHost, "the compiler ended: " + end));
    }
  }

  static MeasureResult failed(MeasureError error, std::string text) {
    MeasureResult result;
    result.error = error;
    result.error_text = std::move(text);
    return result;
  }

  void finish(Station& station, MeasureResult result) {
    Job& job = jobs_[std::exchange(station.job, -1)];
    result.build_s = job.result.build_s;
    result.timestamp = std::time(nullptr);
    best_s_ = std::min(best_s_, result.cost_s());
    // What went wrong may be the task itself: the worker is told it again, and says so again.
    if (result.error == MeasureError::kUnknown) station.task_key.clear();
    job.result = std::move(result);
    job.artifact = {};
    job.step = Step::kDone;
  }

  MeasureOptions options_;
  std::vector<Station> builders_;
  Station runner_;
  MeasureTimes times_;
  // Of the batch at hand:
  const Task* task_ = nullptr;
  std::span<const Candidate> batch_;
  double best_s_ = kFailedCost;
  std::vector<Job> jobs_;
  bool overlap_ = false;
  int active_builders_ = 1;
};

}  // namespace

Result<std::unique_ptr<Measurer>> make_local_measurer(const MeasureOptions& options,
                                                      const std::string& program) {
  auto measurer = std::make_unique<LocalMeasurer>(options, program);
  TRY(measurer->start());
  return std::unique_ptr<Measurer>(std::move(measurer));
}

}  // namespace pruner
