#include "fleet/fleet_measurer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "fleet/names.h"
#include "measure/wire.h"
#include "support/ceil_div.h"
#include "support/log.h"

namespace pruner {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeaseS = 60;      // time until a result that was not recorded is delivered again
constexpr int kAnyDeliveries = -1;  // limit of a result's deliveries, until it is recorded
constexpr double kTakeS = 0.25;
constexpr int kTakenAtOnce = 16;
constexpr auto kLook = std::chrono::seconds(5);  // time between looks at who is here

struct Open;

// Candidates of a batch that one message has.
struct Part {
  Open* of;
  size_t first, count;
};

// A batch whose results come in.
struct Open {
  std::span<const Candidate> batch;
  std::vector<std::optional<MeasureResult>> found;
  std::deque<Part> unasked = {};
  size_t messages = 0;  // messages that nothing has come of yet
};

// Several threads measure a batch each; what comes in is dealt out by one more.
class QueueMeasurer : public FleetMeasurer {
 public:
  /// `compiled`: the workers take code.
  QueueMeasurer(std::unique_ptr<Broker> broker, FleetOptions options, bool compiled)
      : compiled_(compiled),
        broker_(std::move(broker)),
        options_(std::move(options)),
        own_ids_(fmt::format("{}.{}.", options_.run, Clock::now().time_since_epoch().count())) {}

  Result<Unit> open() {
    TRY_ASSIGN(results_,
               broker_->open_queue(fleet::kResults,
                                   fleet::result_subject(options_.run),
                                   fleet::run_queue(options_.run),
                                   kLeaseS,
                                   kAnyDeliveries));
    // Trials that an earlier process of the run has asked for and that nobody has begun are
    // dropped.
    TRY(broker_->purge(fleet::kTrials, fleet::trial_subject(options_.kind, options_.run)));
    look_for_workers();
    messages_a_batch_ = messages_of_all();
    const auto lost = [this](std::string_view bytes) { return give_up(trial_id(bytes)); };
    const std::string queue = fleet::kind_queue(options_.kind);
    TRY(broker_->watch_lost(fleet::kTrials, queue, lost));
    return compiled_ ? broker_->watch_lost(fleet::kObjects, queue, lost) : Unit{};
  }

  Result<std::vector<MeasureResult>> measure(const Task& task,
                                             std::span<const Candidate> batch,
                                             double best_s) override {
    TRY_ASSIGN(const std::string hash, publish_task(task));
    Open open{.batch = batch, .found = std::vector<std::optional<MeasureResult>>(batch.size())};
    share_out(open);
    const Result<Unit> asked = ask_and_wait(open, hash, best_s);
    const std::lock_guard lock(mutex_);
    std::erase_if(parts_, [&](const auto& part) { return part.second.of == &open; });
    // Trials that nobody has begun are not measured for a run that has ended.
    if (open.messages > 0)
      (void)broker_->purge(fleet::kTrials, fleet::trial_subject(options_.kind, options_.run));
    if (!asked.ok()) return asked.error();
    if (broken_ && !stopped()) return *broken_;
    std::vector<MeasureResult> results;
    for (std::optional<MeasureResult>& each : open.found) {
      if (!each) break;
      results.push_back(*std::move(each));
    }
    return results;
  }

  Result<Unit> recorded(std::span<const MeasureResult> results) override {
    for (const MeasureResult& result : results) {
      std::unique_lock lock(mutex_);
      const auto lease = unrecorded_.extract(result.delivery);
      lock.unlock();
      if (!lease.empty()) TRY(lease.mapped()->done());
    }
    return Unit{};
  }

  // Returns how many batches have all messages of all workers. If a message waits for each worker,
  // adds one: a batch is ready when some workers have nothing but that message.
  int batches_at_once() const override {
    const std::lock_guard lock(mutex_);
    const size_t waiting = options_.messages_a_worker > 1 ? 1 : 0;
    return static_cast<int>(waiting + ceil_div(messages_of_all(), messages_a_batch_));
  }

  MeasureTimes times() const override {
    const std::lock_guard lock(mutex_);
    return times_;
  }

  Result<int64_t> recover(const std::function<Result<Unit>(const ResultMessage&)>& take) override {
    int64_t count = 0;
    while (true) {
      TRY_ASSIGN(const Leases leases, results_->take(kTakenAtOnce, kTakeS));
      if (leases.empty()) return count;
      for (const std::unique_ptr<Lease>& lease : leases) {
        const Result<ResultMessage> message = parse_result(lease->bytes());
        if (message.ok()) {
          TRY(take(*message));
          count += std::ssize(message->results);
        }
        TRY(lease->done());
      }
    }
  }

 private:
  bool stopped() const { return options_.measure.stop && options_.measure.stop(); }

  Result<std::string> publish_task(const Task& task) {
    const std::lock_guard lock(tasks_mutex_);
    std::string& hash = published_[task.key];
    if (!hash.empty()) return hash;
    const std::string printed = print_task(task);
    const std::string of_it = task_hash(printed);
    TRY(broker_->put(fleet::kTasks, of_it, printed));
    return hash = of_it;
  }

  /// Messages that all workers together have, or wait for them.
  size_t messages_of_all() const {
    return static_cast<size_t>(options_.messages_a_worker) * std::max<size_t>(1, workers_);
  }

  // Each worker has its messages of a batch; code travels alone.
  void share_out(Open& open) {
    const std::lock_guard lock(mutex_);
    const size_t batch = open.batch.size();
    const size_t most = compiled_ ? 1 : options_.candidates_at_most;
    const size_t size = std::clamp<size_t>(ceil_div(batch, messages_of_all()), 1, most);
    for (size_t first = 0; first < batch; first += size)
      open.unasked.push_back({&open, first, std::min(size, batch - first)});
    messages_a_batch_ = std::max<size_t>(1, open.unasked.size());
    if (!receiver_.joinable())
      receiver_ = std::jthread([this](const std::stop_token& stop) { receive(stop); });
  }

  // Until all results are there, or nothing more is to come.
  Result<Unit> ask_and_wait(Open& open, const std::string& task, double best_s) {
    std::unique_lock lock(mutex_);
    while (true) {
      if (!open.unasked.empty() && !stopped() && !broken_) {
        const Part part = open.unasked.front();
        open.unasked.pop_front();
        ++open.messages;
        const std::string id = own_ids_ + std::to_string(++count_);
        parts_[id] = part;
        lock.unlock();
        TRY(ask(id, part, task, best_s));
        lock.lock();
      } else if (open.messages == 0 || broken_ || (stopped() && !options_.stops_workers)) {
        return Unit{};
      } else {
        came_.wait_for(lock, kLook);
      }
    }
  }

  Result<Unit> ask(const std::string& id,
                   const Part& part,
                   const std::string& task,
                   double best_s) {
    const std::span<const Candidate> candidates = part.of->batch.subspan(part.first, part.count);
    const TrialMessage message{.id = id,
                               .task = task,
                               .candidates = {candidates.begin(), candidates.end()},
                               .best_s = best_s,
                               .options = options_.measure};
    return broker_->publish(
        fleet::trial_subject(options_.kind, options_.run), id, print(message), [this] {
          return stopped();
        });
  }

  void receive(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      Result<Leases> leases = results_->take(kTakenAtOnce, kTakeS);
      look_for_workers();
      const std::lock_guard lock(mutex_);
      if (!leases.ok()) broken_ = leases.error();
      for (size_t i = 0; leases.ok() && i < leases->size(); ++i) take(std::move((*leases)[i]));
      if (broken_ || !leases->empty() || stopped()) came_.notify_all();
      if (broken_) return;
    }
  }

  // Results of a batch. What an earlier process of the run has asked for stays with the server
  // until the run goes on the next time; others are of nobody.
  void take(std::unique_ptr<Lease> lease) {
    Result<ResultMessage> message = parse_result(lease->bytes());
    const std::string id = message.ok() ? message->trial.id : "";
    const auto it = parts_.find(id);
    if (it == parts_.end() && id.starts_with(options_.run + ".") && !id.starts_with(own_ids_))
      return;
    if (it == parts_.end() ||
        !std::ranges::equal(message->trial.candidates,
                            it->second.of->batch.subspan(it->second.first, it->second.count))) {
      if (!message.ok() || it != parts_.end())
        log_warning("a result that is of no trial of this run is left out: {}",
                    message.ok() ? id : message.error().message());
      (void)lease->done();
      return;
    }
    const Part part = it->second;
    parts_.erase(it);
    unrecorded_.emplace(++deliveries_, std::move(lease));
    times_.build_s += message->build_s;
    times_.run_s += message->run_s;
    const size_t count = message->results.size();
    for (size_t i = 0; i < count; ++i) {
      MeasureResult& result =
          part.of->found[part.first + i].emplace(std::move(message->results[i]));
      result.delivery = deliveries_;
      for (WorkSpan* span : {&result.building, &result.running})
        if (span->worker >= 0) span->worker = number_of(message->worker, span->worker);
      times_.busy += result.busy;
    }
    // The worker was stopped: the others are for another.
    if (count < part.count)
      part.of->unasked.push_back({part.of, part.first + count, part.count - count});
    --part.of->messages;
  }

  // Builders and runners of all workers have numbers of one row.
  int number_of(const std::string& worker, int station) {
    return stations_.try_emplace({worker, station}, static_cast<int>(stations_.size()))
        .first->second;
  }

  // A message with which two workers were lost; false: it is another run's.
  bool give_up(const std::string& id) {
    const std::lock_guard lock(mutex_);
    const auto it = parts_.find(id);
    if (it == parts_.end()) return false;
    const Part part = it->second;
    parts_.erase(it);
    for (size_t i = 0; i < part.count; ++i) {
      MeasureResult& result = part.of->found[part.first + i].emplace(
          failed_result(MeasureError::kUnknown, "the workers that measured it were lost"));
      result.timestamp = std::time(nullptr);
    }
    --part.of->messages;
    came_.notify_all();
    return true;
  }

  void look_for_workers() {
    if (Clock::now() - looked_ < kLook) return;
    looked_ = Clock::now();
    const Result<std::vector<WorkerState>> all = list_workers(*broker_);
    if (!all.ok()) return;  // the server is away
    const std::lock_guard lock(mutex_);
    const size_t before = workers_;
    workers_ = static_cast<size_t>(std::ranges::count_if(*all, [this](const WorkerState& worker) {
      return worker.kind == options_.kind && worker.role != WorkerRole::kBuild;
    }));
    if (workers_ == 0 && before != 0)
      log_warning("no worker of kind {} is here any more: waiting for one", options_.kind);
  }

  // The broker calls with what is lost until it is gone itself, so these outlive it.
  mutable std::mutex mutex_;  // guards all but what is const, atomic or said to have another
  std::condition_variable came_;
  std::map<std::string, Part> parts_;  // keyed by the message's id
  const bool compiled_;
  const std::unique_ptr<Broker> broker_;
  const FleetOptions options_;
  const std::string own_ids_;  // first part of the ids of this process's messages
  std::unique_ptr<Queue> results_;
  int64_t count_ = 0;                                      // number of messages
  std::mutex tasks_mutex_;                                 // guards published_
  std::map<std::string, std::string> published_;           // hashes of tasks, by their keys
  std::map<uint64_t, std::unique_ptr<Lease>> unrecorded_;  // keyed by MeasureResult::delivery
  uint64_t deliveries_ = 0;
  std::map<std::pair<std::string, int>, int> stations_;  // keyed by worker and its own number
  size_t workers_ = 1, messages_a_batch_ = 1;
  Clock::time_point looked_ = {};  // the receiver's own
  MeasureTimes times_;
  std::optional<Error> broken_;
  std::jthread receiver_;
};

Error no_worker(const std::string& kind, std::span<const WorkerState> workers) {
  std::set<std::string> kinds;
  for (const WorkerState& worker : workers) kinds.insert(worker.kind);
  if (kinds.empty())
    return Error("no worker of kind ", kind, " is here; start one: pruner worker --server URL");
  return Error(
      fmt::format("no worker of kind {} is here; there are {}", kind, fmt::join(kinds, ", ")));
}

// Checks what all workers of the kind have in common.
Result<Unit> check_worker(const WorkerState& worker, const FleetOptions& options) {
  const Target& ours = options.target;
  if (worker.role != WorkerRole::kBuild &&
      (worker.target != print(ours) || worker.threads != ours.threads)) {
    return Error(fmt::format("kind {} is \"{}\" with --threads {}, this run is for \"{}\" with {}",
                             worker.kind,
                             worker.target,
                             worker.threads,
                             print(ours),
                             ours.threads));
  }
  if (worker.role == WorkerRole::kRun || worker.program == options.program) return Unit{};
  return Error(fmt::format(
      "worker {} of kind {} is another build of pruner than this one: give both sides the same",
      worker.name,
      worker.kind));
}

}  // namespace

Result<std::unique_ptr<FleetMeasurer>> FleetMeasurer::make(std::unique_ptr<Broker> broker,
                                                           const FleetOptions& options) {
  TRY_ASSIGN(std::vector<WorkerState> workers, list_workers(*broker));
  const std::vector<WorkerState> all = workers;
  std::erase_if(workers, [&](const WorkerState& w) { return w.kind != options.kind; });
  std::set<WorkerRole> roles;
  for (const WorkerState& worker : workers) {
    TRY(check_worker(worker, options));
    roles.insert(worker.role);
  }
  const bool compiled = roles.contains(WorkerRole::kRun);
  if (!compiled && !roles.contains(WorkerRole::kMeasure)) return no_worker(options.kind, all);
  if (compiled && !roles.contains(WorkerRole::kBuild)) {
    return Error("the workers of kind ",
                 options.kind,
                 " take code, and none makes it; start one that does: pruner worker --role build "
                 "--kind ",
                 options.kind);
  }
  auto made = std::make_unique<QueueMeasurer>(std::move(broker), options, compiled);
  TRY(made->open());
  return std::unique_ptr<FleetMeasurer>(std::move(made));
}

Result<std::vector<WorkerState>> list_workers(Broker& broker) {
  TRY_ASSIGN(std::vector<std::string> names, broker.keys(fleet::kWorkers));
  std::ranges::sort(names);
  std::vector<WorkerState> workers;
  for (const std::string& name : names) {
    TRY_ASSIGN(const std::optional<std::string> said, broker.get(fleet::kWorkers, name));
    if (!said) continue;  // gone meanwhile
    if (Result<WorkerState> worker = parse_worker(*said); worker.ok())
      workers.push_back(*std::move(worker));
  }
  return workers;
}

}  // namespace pruner
