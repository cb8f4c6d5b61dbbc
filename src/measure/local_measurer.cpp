// One event loop over some compiler workers and a runner, of a CPU or a GPU. With cores to spare,
// candidates are run while others are built; otherwise the whole batch is built first and then run
// with nothing else going on.
#include "measure/local_measurer.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "measure/wire.h"
#include "measure/worker_process.h"
#include "support/cpu_budget.h"
#include "support/log.h"
#include "support/machine_fault.h"

namespace pruner {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kDeaths = 2;  // deaths of workers until the candidate is at fault
constexpr int kKills = 5;   // the same if another killed the workers, say for want of memory
constexpr int kWants = 7;   // lacks of the machine in a row until measuring is given up
constexpr auto kFirstPause = std::chrono::milliseconds(100);  // after one; each is twice as long
constexpr auto kLongestPause = std::chrono::seconds(2);
constexpr double kTaskSetupS = 10;  // on top of a run's limit, when the task comes with it
constexpr int kBuildsToKnow = 8;    // builds until it is known how long one takes
constexpr double kMostOfMean = 10, kLeastBuildLimitS = 4;

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
  bool builds;
  int job = -1;
  std::string task_key = "";
};

class WorkerMeasurer : public LocalMeasurer {
 public:
  WorkerMeasurer(MeasureOptions options, const std::string& program)
      : options_(std::move(options)), program_(program) {
    for (int i = 0; i < std::max(1, options_.build_jobs); ++i) {
      builders_.push_back({{program, {"worker", "build"}}, true});
    }
  }

  Result<Unit> start() {
    for (Station& builder : builders_) TRY(builder.process.start());
    return Unit{};
  }

  Result<std::vector<MeasureResult>> measure(const Task& task,
                                             std::span<const Candidate> batch,
                                             double best_s) override {
    const std::lock_guard turn(turn_);
    TRY(work(task, batch, std::vector<Job>(batch.size()), best_s, Step::kDone));
    return results();
  }

  Result<std::vector<Build>> build(const Task& task, std::span<const Candidate> batch) override {
    const std::lock_guard turn(turn_);
    TRY(work(task, batch, std::vector<Job>(batch.size()), kFailedCost, Step::kToRun));
    std::vector<Build> builds;
    for (Job& job : jobs_) {
      if (job.step < Step::kToRun) break;
      builds.push_back({job.result.error,
                        std::move(job.result.error_text),
                        job.result.build_s,
                        std::move(job.artifact)});
    }
    return builds;
  }

  Result<std::vector<MeasureResult>> run(const Task& task,
                                         std::span<const Build> builds,
                                         double best_s) override {
    const std::lock_guard turn(turn_);
    std::vector<Job> jobs(builds.size());
    for (size_t i = 0; i < builds.size(); ++i) {
      const Build& build = builds[i];
      Job& job = jobs[i];
      job.step = Step::kToRun;
      job.artifact = build.artifact;
      job.result.build_s = build.build_s;
      if (build.error == MeasureError::kNone) continue;
      job.result = failed_result(build.error, build.error_text);
      job.result.build_s = build.build_s;
      job.result.timestamp = std::time(nullptr);
      job.step = Step::kDone;
    }
    TRY(work(task, {}, std::move(jobs), best_s, Step::kDone));
    return results();
  }

  MeasureTimes times() const override {
    const std::lock_guard lock(times_mutex_);
    return times_;
  }

 private:
  // Until all jobs are at `goal` or further.
  Result<Unit> work(const Task& task,
                    std::span<const Candidate> batch,
                    std::vector<Job> jobs,
                    double best_s,
                    Step goal) {
    if (!runner_ || task_backend_ != task.target.backend) make_runner(task.target.backend);
    task_ = &task;
    batch_ = batch;
    given_best_s_ = best_s_ = best_s;
    jobs_ = std::move(jobs);
    goal_ = goal;
    const int cores = usable_cpus();
    const bool elsewhere = !row_of(task.target.backend).on_host;
    const int spare = elsewhere ? cores : cores - task.target.threads;
    overlap_ = spare > 0;
    const int wanted = std::min(static_cast<int>(builders_.size()), overlap_ ? spare : cores);
    active_builders_ = std::max(1, wanted);

    bool stopped = false;
    while (std::ranges::any_of(jobs_, [&](const Job& job) { return job.step < goal_; })) {
      stopped = stopped || (options_.stop && options_.stop());
      if (!stopped) hand_out();
      if (gone_) return *std::exchange(gone_, std::nullopt);
      if (wants_ >= kWants) return give_up();
      if (!busy()) {
        if (wants_ == 0 || stopped) break;
        continue;  // jobs that were put off are handed out again
      }
      wait_and_collect();
    }
    return Unit{};
  }

  std::vector<MeasureResult> results() {
    std::vector<MeasureResult> results;
    for (Job& job : jobs_) {
      if (job.step != Step::kDone) break;
      results.push_back(std::move(job.result));
    }
    return results;
  }

  std::optional<int> first(Step step) const {
    for (size_t i = 0; i < jobs_.size(); ++i) {
      if (jobs_[i].step == step) return static_cast<int>(i);
    }
    return std::nullopt;
  }
  bool building() const {
    return std::ranges::any_of(builders_, [](const Station& s) { return s.job >= 0; });
  }
  bool running() const { return runner_->job >= 0; }
  bool busy() const { return building() || running(); }

  void make_runner(Backend backend) {
    task_backend_ = backend;
    const char* command = row_of(backend).is_gpu ? "device" : "run";
    runner_.emplace(Station{{program_, {"worker", command}}, false});
  }

  void hand_out() {
    for (int i = 0; i < active_builders_; ++i) {
      Station& builder = builders_[i];
      const std::optional<int> job = first(Step::kToBuild);
      if (builder.job < 0 && job) begin_build(builder, *job);
    }
    if (goal_ == Step::kToRun || (!overlap_ && (building() || first(Step::kToBuild)))) return;
    const std::optional<int> job = first(Step::kToRun);
    if (!running() && job) begin_run(*job);
  }

  void begin_build(Station& builder, int job) {
    jobs_[job].step = Step::kBuilding;
    const auto number = static_cast<int>(&builder - builders_.data());
    jobs_[job].result.building = {{steady_s(), 0}, number};
    const Json request = {{"candidate", to_json(batch_[job])}};
    send(builder, job, {request, ""}, build_limit_s());
  }

  // A candidate that compiles many times as long as others has long code, which is seldom fast. On
  // an H100, 6 of 509 programs took more than ten times the mean. These 6 were 13 to 370 times as
  // slow as their task's best, and all others waited for them.
  double build_limit_s() const {
    if (builds_ < kBuildsToKnow) return options_.build_timeout_s;
    const double most = kMostOfMean * built_s_ / builds_;
    return std::min(std::max(most, kLeastBuildLimitS), options_.build_timeout_s);
  }

  // A runner of CPUs stops a candidate that runs too long; a GPU's is stopped by this.
  double run_limit_s() const {
    return options_.run_timeout_s + row_of(task_backend_).run_overhead_s;
  }

  void begin_run(int job) {
    jobs_[job].step = Step::kRunning;
    jobs_[job].result.running = {{steady_s(), 0}, 0};
    const Artifact& artifact = jobs_[job].artifact;
    const Json request = {{"artifact", to_json(artifact)}, {"best_s", best_s_}};
    send(*runner_, job, {request, artifact.object}, run_limit_s());
  }

  // Sends to a worker that knows the task, or learns it by this request.
  void send(Station& station, int job, Frame request, double timeout_s) {
    station.job = job;
    if (!station.process.alive()) {
      station.task_key.clear();
      const Result<Unit> started = station.process.start();
      if (!started.ok())
        return finish(station, failed_result(MeasureError::kUnknown, started.error().message()));
    }
    if (station.task_key != task_->key) {
      request.header["task"] = to_json(*task_);
      request.header["options"] = to_json(options_);
      station.task_key = task_->key;
      if (!station.builds) timeout_s += kTaskSetupS;
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
    add(*runner_);
    const bool runs = running();
    const auto start = Clock::now();
    const int ready = poll(entries.data(), entries.size(), milliseconds_until(deadline));
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    {
      const std::lock_guard lock(times_mutex_);
      (runs ? times_.run_s : times_.build_s) += elapsed.count();
    }
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
    if (!station.builds) return collect_run(answer.frame.header);
    Result<Build> build = build_from_frame(std::move(answer.frame));
    if (!build.ok())
      return finish(station, failed_result(MeasureError::kUnknown, build.error().message()));
    Job& job = jobs_[station.job];
    job.result.build_s = build->build_s;
    built_s_ += build->build_s;
    ++builds_;
    job.result.building.time.to_s = steady_s();
    if (build->error != MeasureError::kNone) {
      return finish(station, failed_result(build->error, std::move(build->error_text)));
    }
    job.artifact = std::move(build->artifact);
    job.step = Step::kToRun;
    station.job = -1;
  }

  void collect_run(const Json& answer) {
    if (answer.contains("no_device")) return lose_device(answer["no_device"]);
    const Result<Json> json = json_get<Json>(answer, "result");
    Result<MeasureResult> result =
        json.ok() ? result_from_json(*json) : Result<MeasureResult>(json.error());
    const bool lost = answer.value("lost", false);
    finish(*runner_,
           result.ok() ? *std::move(result)
                       : failed_result(MeasureError::kUnknown, result.error().message()));
    if (!lost) return;
    // The driver's context, as the candidate has left it, can serve no other candidate.
    log_detail("the device's worker is started again");
    runner_->process.end();
  }

  // The device is not there any more, which is no fault of the candidate.
  void lose_device(const std::string& reason) {
    end_job(*runner_);
    gone_ = Error(reason);
  }

  static void end_job(Station& station) {
    if (station.job < 0) return;
    station.process.end();
    station.job = -1;
  }

  // The worker hangs or is gone; the next job gets a new one. A worker can die without being to
  // blame for it, so the job is tried again, once.
  void lose(Station& station, FrameStatus status) {
    const std::string end = station.process.end();
    const bool runs = !station.builds;
    Job& job = jobs_[station.job];
    if (status == FrameStatus::kTimeout) {
      finish(station,
             runs ? failed_result(MeasureError::kRunTimeout,
                                  fmt::format("still running after {} s", run_limit_s()))
                  : failed_result(MeasureError::kBuildTimeout,
                                  fmt::format("still compiling after {:.3g} s",
                                              steady_s() - job.result.building.time.from_s)));
    } else if (++job.deaths < (end == "SIGKILL" ? kKills : kDeaths)) {
      log_detail("a worker ended ({}) and is started again", end);
      job.step = runs ? Step::kToRun : Step::kToBuild;
      station.job = -1;
    } else if (runs) {
      finish(station, failed_result(death_of_runner(), "its runner ended: " + end));
    } else {
      finish(station, failed_result(MeasureError::kCompileHost, "the compiler ended: " + end));
    }
  }

  // The machine lacks something, which is no fault of the candidate: it is tried again later.
  void wait_for_machine(std::string want) {
    log_detail("{}; tried again", want);
    want_ = std::move(want);
    const auto pause = kFirstPause * (1 << wants_++);
    std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(pause, kLongestPause));
  }

  // Nothing is recorded of what was put off; the workers begin anew with the next batch.
  Error give_up() {
    for (Station& builder : builders_) end_job(builder);
    end_job(*runner_);
    wants_ = 0;
    return Error("nothing can be measured, after ", kWants, " attempts: ", want_);
  }

  // The runner of CPUs has a child for what a kernel does; a GPU's driver runs in the worker.
  MeasureError death_of_runner() const {
    return row_of(task_backend_).is_gpu ? MeasureError::kRuntimeDevice : MeasureError::kUnknown;
  }

  void finish(Station& station, MeasureResult result) {
    Job& job = jobs_[std::exchange(station.job, -1)];
    if (result.error == MeasureError::kUnknown && is_machine_fault(result.error_text)) {
      station.task_key.clear();
      job.step = station.builds ? Step::kToBuild : Step::kToRun;
      return wait_for_machine(std::move(result.error_text));
    }
    wants_ = 0;
    result.build_s = job.result.build_s;
    result.building = job.result.building;
    result.running = job.result.running;
    (station.builds ? result.building : result.running).time.to_s = steady_s();
    result.timestamp = std::time(nullptr);
    if (result.refuted) measure_again();
    {
      const std::lock_guard lock(times_mutex_);
      times_.busy += result.busy;
    }
    best_s_ = std::min(best_s_, result.cost_s());
    // The task itself may have gone wrong: the worker is told the task again, and says so again.
    if (result.error == MeasureError::kUnknown) station.task_key.clear();
    job.result = std::move(result);
    if (!batch_.empty()) job.artifact = {};  // else it could not be made again
    job.step = Step::kDone;
  }

  // Measures the candidates again that agreed with a kernel that has turned out to be wrong.
  void measure_again() {
    log_detail("a kernel that others were compared with is wrong: they are measured again");
    for (Job& job : jobs_) {
      if (job.step != Step::kDone || !job.result.ok()) continue;
      if (batch_.empty()) {
        job.step = Step::kToRun;
      } else {
        job = Job{};
      }
    }
    best_s_ = given_best_s_;
  }

  MeasureOptions options_;
  std::string program_;
  std::mutex turn_;  // turn of the thread that measures
  std::vector<Station> builders_;
  std::optional<Station> runner_;
  Backend task_backend_ = {};
  std::optional<Error> gone_;  // why there is no device any more
  int builds_ = 0;
  double built_s_ = 0;  // all of them
  mutable std::mutex times_mutex_;
  MeasureTimes times_;
  // State of the batch at hand:
  const Task* task_ = nullptr;
  std::span<const Candidate> batch_;
  double given_best_s_ = kFailedCost;
  double best_s_ = kFailedCost;
  std::vector<Job> jobs_;
  Step goal_ = Step::kDone;
  bool overlap_ = false;
  int active_builders_ = 1;
  // How often in a row the machine lacked something, and what.
  int wants_ = 0;
  std::string want_;
};

}  // namespace

Result<std::unique_ptr<LocalMeasurer>> LocalMeasurer::make(const MeasureOptions& options,
                                                           const std::string& program) {
  auto measurer = std::make_unique<WorkerMeasurer>(options, program);
  TRY(measurer->start());
  return std::unique_ptr<LocalMeasurer>(std::move(measurer));
}

}  // namespace pruner
