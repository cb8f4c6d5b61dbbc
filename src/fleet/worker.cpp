#include "fleet/worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "fleet/messages.h"
#include "fleet/names.h"
#include "measure/wire.h"
#include "space/space.h"
#include "support/log.h"

namespace pruner {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeaseS = 10;  // time until a silent worker's trials go to another
constexpr int kDeliveries = 2;  // deliveries of a trial: one more after a worker was lost
constexpr double kTakeS = 1;
constexpr double kOtherHostS = 2;  // wait for another worker of a trial that this one was lost with
constexpr auto kBeat = std::chrono::seconds(3);
constexpr auto kProbeEach = std::chrono::seconds(60);
constexpr double kProbeS = 0.05;
constexpr int kProbes = 3;  // probes, of which the best counts
constexpr size_t kTasksKept = 64;

double speed(const Target& target) {
  double best = 0;
  for (int i = 0; i < kProbes; ++i)
    best = std::max(best, probe_fma_gflops(target, target.threads, kProbeS));
  return best;
}

/// A task, with its space.
struct KnownTask {
  Task task;
  Space space;
};

// A message may say anything; only a legal schedule is compiled.
Result<Unit> check_candidate(const Space& space, const Candidate& candidate) {
  const int32_t number = candidate.sketch.value;
  if (number < 0 || number >= std::ssize(space.sketches))
    return Error("there is no sketch ", number);
  const std::vector<Decision>& decisions = space.sketches[static_cast<size_t>(number)].decisions;
  if (candidate.decisions.size() != decisions.size())
    return Error(candidate.decisions.size(), " decisions, expected ", decisions.size());
  for (size_t i = 0; i < decisions.size(); ++i) {
    if (!std::ranges::binary_search(decisions[i].choices, candidate.decisions[i]))
      return Error(decisions[i].name, " cannot be ", candidate.decisions[i]);
  }
  std::string why;
  if (!is_legal(space, candidate, &why)) return Error(why);
  return Unit{};
}

class QueueWorker : public FleetWorker {
 public:
  QueueWorker(Broker& broker, FleetWorkerOptions options)
      : broker_(broker), options_(std::move(options)) {
    state_.name = options_.name;
    state_.kind = options_.kind;
    state_.role = options_.role;
    state_.program = options_.program;
    if (options_.role != WorkerRole::kBuild) state_.target = print(options_.target);
    state_.threads = options_.target.threads;
    state_.started = std::time(nullptr);
    state_.state = "waits";
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    state_.host = host;
  }

  Result<Unit> join() {
    const bool runs = options_.role == WorkerRole::kRun;
    TRY_ASSIGN(queue_,
               broker_.open_queue(
                   runs ? fleet::kObjects : fleet::kTrials,
                   runs ? fleet::objects_of_kind(state_.kind) : fleet::trials_of_kind(state_.kind),
                   fleet::kind_queue(state_.kind),
                   kLeaseS,
                   kDeliveries));
    if (options_.most_drift > 0) fastest_ = speed(options_.target);
    return broker_.put(fleet::kWorkers, options_.name, print(state_));
  }

  Result<int64_t> serve() override {
    Clock::time_point probed = Clock::now();
    std::jthread beats([this](const std::stop_token& stop) { beat(stop); });
    Result<Unit> served = Unit{};
    while (served.ok() && !options_.stop() && !told_to_end()) {
      if (options_.most_drift > 0 && Clock::now() - probed > kProbeEach) {
        probed = Clock::now();
        served = check_speed();
        if (!served.ok()) break;
      }
      Result<Leases> taken = queue_->take(1, kTakeS);
      if (!taken.ok() && !options_.stop()) served = taken.error();
      for (size_t i = 0; taken.ok() && i < taken->size() && served.ok(); ++i)
        served = serve(*(*taken)[i]);
    }
    beats.request_stop();
    wake_.notify_all();
    beats.join();
    (void)broker_.remove(fleet::kWorkers, options_.name);
    if (!served.ok()) return served.error();
    return state_.trials;
  }

 private:
  // Says that it is here, and keeps what it measures.
  void beat(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      const std::string said = print(state_);
      if (lease_ != nullptr) lease_->keep();
      lock.unlock();
      (void)broker_.put(fleet::kWorkers, options_.name, said);
      lock.lock();
      wake_.wait_for(lock, kBeat, [&] { return stop.stop_requested(); });
    }
  }

  void enter(const char* state, const Lease* lease) {
    const std::lock_guard lock(mutex_);
    state_.state = state;
    lease_ = lease;
  }

  bool told_to_end() {
    const Result<std::optional<std::string>> told =
        broker_.get(fleet::kControl, "drain." + options_.name);
    return told.ok() && told->has_value();
  }

  Result<Unit> check_speed() const {
    const double now = speed(options_.target);
    if (now >= (1 - options_.most_drift) * fastest_) return Unit{};
    return Error(
        fmt::format("this machine computes at {:.0f} % of its speed at the start: something else "
                    "runs, or it is hot; "
                    "times would not be comparable (--most-drift)",
                    100 * now / fastest_));
  }

  Result<const KnownTask*> task_of(const std::string& hash) {
    if (const auto it = tasks_.find(hash); it != tasks_.end()) return &it->second;
    TRY_ASSIGN(const std::optional<std::string> printed, broker_.get(fleet::kTasks, hash));
    if (!printed || task_hash(*printed) != hash)
      return Error("its task ", hash, " is not in the table");
    TRY_ASSIGN(Task task, parse_task(*printed));
    const Target& ours = options_.target;
    const bool builds = options_.role == WorkerRole::kBuild;  // a builder serves any target
    if (!builds && (print(task.target) != print(ours) || task.target.threads != ours.threads))
      return Error("its task is for ", print(task.target), ", this worker for ", print(ours));
    if (!builds) task.target = ours;  // our target knows more than the printed one
    if (tasks_.size() >= kTasksKept) tasks_.clear();
    Space space = make_space(task);
    return &tasks_.emplace(hash, KnownTask{std::move(task), std::move(space)}).first->second;
  }

  Result<Unit> use_options(const MeasureOptions& options) {
    const std::string printed = to_json(options).dump();
    if (measurer_ != nullptr && printed == measured_with_) return Unit{};
    TRY_ASSIGN(measurer_, options_.make_measurer(options));
    measured_with_ = printed;
    return Unit{};
  }

  // A trial, and its code where another has made it.
  struct Work {
    TrialMessage trial;
    std::optional<Build> build = {};
  };
  Result<Work> read(std::string_view bytes) const {
    if (options_.role == WorkerRole::kRun) {
      TRY_ASSIGN(ObjectMessage message, parse_object(bytes, options_.trusted));
      return Work{std::move(message.trial), std::move(message.build)};
    }
    TRY_ASSIGN(TrialMessage trial, parse_trial(bytes));
    return Work{std::move(trial)};
  }

  // The task of a trial whose candidates are legal schedules of it.
  Result<const KnownTask*> check_trial(const TrialMessage& trial) {
    TRY_ASSIGN(const KnownTask* known, task_of(trial.task));
    for (const Candidate& candidate : trial.candidates)
      TRY(check_candidate(known->space, candidate));
    return known;
  }

  ResultMessage all_failed(const TrialMessage& trial, const std::string& why) const {
    const MeasureResult failed = failed_result(MeasureError::kInstantiation, why);
    return {trial, std::vector<MeasureResult>(trial.candidates.size(), failed), options_.name};
  }

  // A trial that cannot be measured as it was sent has a result, too: the trial would not be better
  // elsewhere. A signed object is of a legal schedule: its builder has looked.
  Result<ResultMessage> answer_to(const Work& work) {
    const TrialMessage& trial = work.trial;
    const Result<const KnownTask*> known = work.build ? task_of(trial.task) : check_trial(trial);
    if (!known.ok()) return all_failed(trial, known.error().message());
    TRY(use_options(trial.options));
    ResultMessage answer{trial, {}, options_.name};
    const MeasureTimes before = measurer_->times();
    TRY_ASSIGN(answer.results,
               work.build ? measurer_->run((*known)->task, {&*work.build, 1}, trial.best_s)
                          : measurer_->measure((*known)->task, trial.candidates, trial.best_s));
    answer.build_s = measurer_->times().build_s - before.build_s;
    answer.run_s = measurer_->times().run_s - before.run_s;
    return answer;
  }

  // The code of a trial, signed, for those that run it; or why there is none. Nothing when stopped.
  Result<std::optional<std::string>> object_of(const TrialMessage& trial) {
    TRY_ASSIGN(const KnownTask* known, check_trial(trial));
    if (trial.candidates.size() != 1) return Error("code is made of one candidate at a time");
    TRY(use_options(trial.options));
    TRY_ASSIGN(std::vector<Build> builds, measurer_->build(known->task, trial.candidates));
    if (builds.empty()) return std::optional<std::string>();
    ObjectMessage message{trial, std::move(builds.front())};
    TRY(make_portable(message.build));
    TRY_ASSIGN(std::string printed, print(message, options_.key));
    if (std::ssize(printed) > broker_.most_bytes())
      return Error("its code takes ",
                   printed.size(),
                   " bytes, the server's messages have ",
                   broker_.most_bytes());
    return std::optional(std::move(printed));
  }

  Result<Unit> serve(const Lease& lease) {
    Result<Work> work = read(lease.bytes());
    if (!work.ok()) {
      log_warning("a trial that cannot be read is left out: {}", work.error().message());
      return lease.done();
    }
    const std::string& id = work->trial.id;
    if (lease.deliveries() > 1 && tried_.contains(id)) {
      lease.give_back(kOtherHostS);
      return Unit{};
    }
    tried_.insert(id);
    enter("measures", &lease);
    const Result<int64_t> served =
        options_.role == WorkerRole::kBuild ? build(work->trial) : measure(*work);
    enter("waits", nullptr);
    if (!served.ok() || *served == 0) {  // this one leaves, or is stopped
      lease.give_back(0);
      return served.ok() ? Result<Unit>(Unit{}) : served.error();
    }
    {
      const std::lock_guard lock(mutex_);
      state_.trials += *served;
    }
    if (const Result<Unit> done = lease.done(); !done.ok())
      log_warning("{}: {}", id, done.error().message());
    return Unit{};
  }

  // Stored before the trial is done with: a worker that ends in between has it measured once more,
  // and the second result has the id of the first.
  Result<Unit> publish(const ResultMessage& message) {
    const std::string subject = fleet::result_subject(run_of(message.trial));
    return broker_.publish(subject, message.trial.id, print(message), options_.stop);
  }
  static std::string run_of(const TrialMessage& trial) {
    return trial.id.substr(0, trial.id.find('.'));
  }

  // How many trials came to a result: fewer, or none, when it was stopped. The tuner asks for the
  // others again.
  Result<int64_t> measure(const Work& work) {
    TRY_ASSIGN(const ResultMessage answer, answer_to(work));
    if (!answer.results.empty()) TRY(publish(answer));
    return std::ssize(answer.results);
  }

  Result<int64_t> build(const TrialMessage& trial) {
    const Result<std::optional<std::string>> object = object_of(trial);
    if (!object.ok()) {
      TRY(publish(all_failed(trial, object.error().message())));
      return 1;
    }
    if (!*object) return 0;
    TRY(broker_.publish(
        fleet::object_subject(state_.kind, run_of(trial)), trial.id, **object, options_.stop));
    return 1;
  }

  Broker& broker_;
  const FleetWorkerOptions options_;
  std::unique_ptr<Queue> queue_;
  double fastest_ = 0;  // speed of this machine at the start
  std::mutex mutex_;    // guards state_ and lease_
  std::condition_variable wake_;
  WorkerState state_;
  const Lease* lease_ = nullptr;
  std::map<std::string, KnownTask> tasks_;
  std::set<std::string> tried_;  // ids of trials
  std::unique_ptr<LocalMeasurer> measurer_;
  std::string measured_with_;
};

}  // namespace

Result<std::unique_ptr<FleetWorker>> FleetWorker::join(Broker& broker, FleetWorkerOptions options) {
  auto worker = std::make_unique<QueueWorker>(broker, std::move(options));
  TRY(worker->join());
  return std::unique_ptr<FleetWorker>(std::move(worker));
}

}  // namespace pruner
