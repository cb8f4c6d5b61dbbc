#include "fleet/fleet_measurer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "fleet/names.h"
#include "measure/wire.h"
#include "support/log.h"

namespace pruner {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeaseS = 60;      // until a result that was not recorded is delivered again
constexpr int kAnyDeliveries = -1;  // of a result, until it is recorded
constexpr double kTakeS = 0.25;
constexpr int kTakenAtOnce = 16;
constexpr auto kLook = std::chrono::seconds(5);  // at who is here
constexpr size_t kShare = 2;                     // messages that a worker has
constexpr size_t kMostCandidates = 16;           // of a message

// A batch whose results come in.
struct Open {
  std::span<const Candidate> batch;
  std::vector<std::optional<MeasureResult>> found;
  size_t messages = 0;  // that nothing has come of yet
};

// Candidates of a batch that one message has.
struct Part {
  Open* of;
  size_t first, count;
  uint64_t number;  // of the message in its stream
};

// Several threads measure a batch each; what comes in is dealt out by one more.
class NatsMeasurer : public FleetMeasurer {
 public:
  NatsMeasurer(std::unique_ptr<Broker> broker, FleetOptions options)
      : broker_(std::move(broker)),
        options_(std::move(options)),
        own_ids_(
            fmt::format("{}.{}.", options_.run, Clock::now().time_since_epoch().count())) {}

  Result<Unit> open() {
    TRY_ASSIGN(results_,
               broker_->open_queue(fleet::kResults,
                                   fleet::result_subject(options_.run),
                                   fleet::run_queue(options_.run),
                                   kLeaseS,
                                   kAnyDeliveries));
    // What an earlier process of the run has asked for and nobody has begun.
    TRY(broker_->purge(fleet::kTrials, fleet::trial_subject(options_.kind, options_.run)));
    look_for_workers();
    return broker_->watch_lost(
        fleet::kTrials, fleet::kind_queue(options_.kind), [this](uint64_t number) {
          const std::lock_guard lock(mutex_);
          give_up(number);
        });
  }

  Result<std::vector<MeasureResult>> measure(const Task& task,
                                             std::span<const Candidate> batch,
                                             double best_s) override {
    TRY_ASSIGN(const std::string hash, publish_task(task));
    Open open{.batch = batch, .found = std::vector<std::optional<MeasureResult>>(batch.size())};
    const Result<Unit> asked = ask(open, hash, best_s);
    std::unique_lock lock(mutex_);
    while (asked.ok() && open.messages > 0 && !stopped() && !broken_) came_.wait_for(lock, kLook);
    std::erase_if(parts_, [&](const auto& part) { return part.second.of == &open; });
    // What nobody has begun is not measured for a run that has ended.
    if (open.messages > 0)
      (void)broker_->purge(fleet::kTrials, fleet::trial_subject(options_.kind, options_.run));
    if (!asked.ok()) return asked.error();
    if (broken_) return *broken_;
    std::vector<MeasureResult> results;
    for (std::optional<MeasureResult>& each : open.found) {
      if (!each) break;
      times_.build_s += each->build_s;
      times_.run_s += each->run_s;
      times_.busy += each->busy;
      results.push_back(*std::move(each));
    }
    return results;
  }

  Result<Unit> recorded(std::span<const MeasureResult> results) override {
    for (const MeasureResult& result : results) {
      std::unique_lock lock(mutex_);
      const auto lease = unrecorded_.extract(result.delivery);
      lock.unlock();
      if (!lease.empty()) TRY(lease.mapped().done());
    }
    return Unit{};
  }

  // Each worker has work for two messages, and a batch is ready when one of them is done.
  int batches_at_once() const override {
    const std::lock_guard lock(mutex_);
    const size_t wanted = kShare * std::max<size_t>(1, workers_);
    return static_cast<int>(1 + (wanted + messages_a_batch_ - 1) / messages_a_batch_);
  }

  MeasureTimes times() const override {
    const std::lock_guard lock(mutex_);
    return times_;
  }

  Result<int64_t> recover(const std::function<Result<Unit>(const ResultMessage&)>& take) override {
    int64_t count = 0;
    while (true) {
      TRY_ASSIGN(const std::vector<Lease> leases, results_->take(kTakenAtOnce, kTakeS));
      if (leases.empty()) return count;
      for (const Lease& lease : leases) {
        const Result<ResultMessage> message = parse_result(lease.bytes());
        if (message.ok()) {
          TRY(take(*message));
          count += std::ssize(message->results);
        }
        TRY(lease.done());
      }
    }
  }

 private:
  bool stopped() const { return options_.measure.stop && options_.measure.stop(); }

  Result<std::string> publish_task(const Task& task) {
    const std::string printed = print_task(task);
    std::string hash = task_hash(printed);
    const std::lock_guard lock(tasks_mutex_);
    if (published_.insert(hash).second) TRY(broker_->put(fleet::kTasks, hash, printed));
    return hash;
  }

  // Each worker has a message or two of a batch.
  size_t message_size(size_t batch) {
    const std::lock_guard lock(mutex_);
    const size_t messages = std::max<size_t>(1, kShare * workers_);
    const size_t size = std::clamp<size_t>((batch + messages - 1) / messages, 1, kMostCandidates);
    messages_a_batch_ = std::max<size_t>(1, (batch + size - 1) / size);
    if (!receiver_.joinable())
      receiver_ = std::jthread([this](const std::stop_token& stop) { receive(stop); });
    return size;
  }

  Result<Unit> ask(Open& open, const std::string& task, double best_s) {
    const size_t size = message_size(open.batch.size());
    for (size_t first = 0; first < open.batch.size() && !stopped(); first += size) {
      const std::span<const Candidate> part =
          open.batch.subspan(first, std::min(size, open.batch.size() - first));
      TrialMessage message{.id = own_ids_ + std::to_string(++count_),
                           .task = task,
                           .candidates = {part.begin(), part.end()},
                           .best_s = best_s,
                           .options = options_.measure};
      {
        const std::lock_guard lock(mutex_);
        parts_[message.id] = {&open, first, part.size(), 0};
        ++open.messages;
      }
      TRY_ASSIGN(const uint64_t number,
                 broker_->publish(fleet::trial_subject(options_.kind, options_.run),
                                  message.id,
                                  print(message),
                                  [this] { return stopped(); }));
      const std::lock_guard lock(mutex_);
      if (const auto it = parts_.find(message.id); it != parts_.end()) it->second.number = number;
    }
    return Unit{};
  }

  void receive(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      Result<std::vector<Lease>> leases = results_->take(kTakenAtOnce, kTakeS);
      look_for_workers();
      const std::lock_guard lock(mutex_);
      if (!leases.ok()) broken_ = leases.error();
      for (size_t i = 0; leases.ok() && i < leases->size(); ++i) take(std::move((*leases)[i]));
      came_.notify_all();
      if (broken_) return;
    }
  }

  // Results of a batch. What an earlier process of the run has asked for stays with the server
  // until the run goes on the next time; others are of nobody.
  void take(Lease lease) {
    Result<ResultMessage> message = parse_result(lease.bytes());
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
      (void)lease.done();
      return;
    }
    const Part part = it->second;
    parts_.erase(it);
    unrecorded_.emplace(++deliveries_, std::move(lease));
    for (size_t i = 0; i < part.count; ++i) {
      MeasureResult& result = part.of->found[part.first + i].emplace(std::move(message->results[i]));
      result.delivery = deliveries_;
    }
    --part.of->messages;
  }

  // A message with which two workers were lost.
  void give_up(uint64_t number) {
    const auto it =
        std::ranges::find_if(parts_, [&](const auto& part) { return part.second.number == number; });
    if (it == parts_.end()) return;
    const Part part = it->second;
    parts_.erase(it);
    for (size_t i = 0; i < part.count; ++i) {
      MeasureResult& result = part.of->found[part.first + i].emplace(
          failed_result(MeasureError::kUnknown, "the workers that measured it were lost"));
      result.timestamp = std::time(nullptr);
    }
    --part.of->messages;
    came_.notify_all();
  }

  void look_for_workers() {
    if (Clock::now() - looked_ < kLook) return;
    looked_ = Clock::now();
    const Result<std::vector<WorkerState>> all = list_workers(*broker_);
    if (!all.ok()) return;  // the server is away
    const std::lock_guard lock(mutex_);
    const size_t before = workers_;
    workers_ = static_cast<size_t>(std::ranges::count(*all, options_.kind, &WorkerState::kind));
    if (workers_ == 0 && before != 0)
      log_warning("no worker of kind {} is here any more: waiting for one", options_.kind);
  }

  // The broker calls with what is lost until it is gone itself, so these outlive it.
  mutable std::mutex mutex_;  // of all but what is const, atomic or said to have another
  std::condition_variable came_;
  std::map<std::string, Part> parts_;  // by the message's id
  const std::unique_ptr<Broker> broker_;
  const FleetOptions options_;
  const std::string own_ids_;  // of this process's messages: what they begin with
  std::unique_ptr<Queue> results_;
  std::atomic<int64_t> count_{0};  // of messages
  std::mutex tasks_mutex_;         // of published_
  std::set<std::string> published_;
  std::map<uint64_t, Lease> unrecorded_;  // by MeasureResult::delivery
  uint64_t deliveries_ = 0;
  size_t workers_ = 1, messages_a_batch_ = 1;
  Clock::time_point looked_ = {};  // the receiver's own
  MeasureTimes times_;
  std::optional<Error> broken_;
  std::jthread receiver_;
};

}  // namespace

Result<std::unique_ptr<FleetMeasurer>> FleetMeasurer::make(std::unique_ptr<Broker> broker,
                                                           const FleetOptions& options) {
  TRY_ASSIGN(const std::vector<WorkerState> workers, list_workers(*broker));
  std::set<std::string> kinds;
  for (const WorkerState& worker : workers) kinds.insert(worker.kind);
  if (!kinds.contains(options.kind)) {
    std::string others;
    for (const std::string& kind : kinds) others += (others.empty() ? "" : ", ") + kind;
    return Error(
        "no worker of kind ",
        options.kind,
        " is here",
        others.empty() ? "; start one: pruner worker --server URL" : "; there are " + others);
  }
  auto made = std::make_unique<NatsMeasurer>(std::move(broker), options);
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
