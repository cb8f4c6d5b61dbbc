#include "fleet/fleet_measurer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "fleet/names.h"
#include "support/log.h"

namespace pruner {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeaseS = 60;      // until a result that was not recorded is delivered again
constexpr int kAnyDeliveries = -1;  // of a result, until it is recorded
constexpr double kTakeS = 0.25;
constexpr int kTakenAtOnce = 16;
constexpr auto kLook = std::chrono::seconds(5);  // at who is here
constexpr size_t kShare = 2;                     // messages for each worker of a batch
constexpr size_t kMostCandidates = 16;           // of a message

// Candidates that one message has, on their way.
struct Part {
  size_t first, count;
};

class NatsMeasurer : public FleetMeasurer {
 public:
  NatsMeasurer(std::unique_ptr<Broker> broker, FleetOptions options)
      : broker_(std::move(broker)),
        options_(std::move(options)),
        begun_(Clock::now().time_since_epoch().count()) {}

  Result<Unit> open() {
    TRY_ASSIGN(results_,
               broker_->open_queue(fleet::kResults,
                                   fleet::result_subject(options_.run),
                                   fleet::run_queue(options_.run),
                                   kLeaseS,
                                   kAnyDeliveries));
    // What an earlier process of the run has asked for and nobody has begun.
    TRY(broker_->purge(fleet::kTrials, fleet::trial_subject(options_.kind, options_.run)));
    return broker_->watch_lost(
        fleet::kTrials, fleet::kind_queue(options_.kind), [this](uint64_t number) {
          const std::lock_guard lock(mutex_);
          lost_.insert(number);
        });
  }

  Result<std::vector<MeasureResult>> measure(const Task& task,
                                             std::span<const Candidate> batch,
                                             double best_s) override {
    TRY_ASSIGN(const std::string hash, publish_task(task));
    std::map<std::string, Part> open;
    std::map<uint64_t, std::string> numbers;
    const size_t size = part_size(batch.size());
    for (size_t first = 0; first < batch.size(); first += size) {
      const size_t count = std::min(size, batch.size() - first);
      TrialMessage message{
          .id = own_ids() + std::to_string(++count_),
          .task = hash,
          .candidates = {batch.begin() + static_cast<std::ptrdiff_t>(first),
                         batch.begin() + static_cast<std::ptrdiff_t>(first + count)},
          .best_s = best_s,
          .options = options_.measure};
      TRY_ASSIGN(const uint64_t number,
                 broker_->publish(fleet::trial_subject(options_.kind, options_.run),
                                  message.id,
                                  print(message),
                                  [this] { return stopped(); }));
      numbers[number] = message.id;
      open[message.id] = {first, count};
    }
    std::vector<std::optional<MeasureResult>> found(batch.size());
    while (!open.empty() && !stopped()) {
      TRY_ASSIGN(std::vector<Lease> leases, results_->take(kTakenAtOnce, kTakeS));
      for (Lease& lease : leases) {
        if (take(lease, batch, open, found)) unrecorded_.push_back(std::move(lease));
      }
      give_up_lost(numbers, open, found);
      if (leases.empty()) TRY(look_for_workers());
    }
    // What nobody has begun is not measured for a run that has ended.
    if (!open.empty())
      (void)broker_->purge(fleet::kTrials, fleet::trial_subject(options_.kind, options_.run));
    std::vector<MeasureResult> results;
    for (std::optional<MeasureResult>& each : found) {
      if (!each) break;
      times_.build_s += each->build_s;
      times_.run_s += each->run_s;
      times_.busy.cores_s += each->busy.cores_s;
      times_.busy.others_s += each->busy.others_s;
      results.push_back(*std::move(each));
    }
    return results;
  }

  Result<Unit> recorded() override {
    for (const Lease& lease : unrecorded_) TRY(lease.done());
    unrecorded_.clear();
    return Unit{};
  }

  MeasureTimes times() const override { return times_; }

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
  std::string own_ids() const { return fmt::format("{}.{}.", options_.run, begun_); }

  bool stopped() const { return options_.measure.stop && options_.measure.stop(); }

  Result<std::string> publish_task(const Task& task) {
    const std::string printed = print_task(task);
    std::string hash = task_hash(printed);
    if (published_.insert(hash).second) TRY(broker_->put(fleet::kTasks, hash, printed));
    return hash;
  }

  // Each worker has a message or two of a batch.
  size_t part_size(size_t batch) {
    const size_t parts = std::max<size_t>(1, kShare * workers_);
    return std::clamp<size_t>((batch + parts - 1) / parts, 1, kMostCandidates);
  }

  // Whether the message has results of this batch. What an earlier process of the run has asked for
  // stays with the server until the run goes on the next time; others are of nobody.
  bool take(const Lease& lease,
            std::span<const Candidate> batch,
            std::map<std::string, Part>& open,
            std::vector<std::optional<MeasureResult>>& found) {
    const Result<ResultMessage> message = parse_result(lease.bytes());
    const std::string id = message.ok() ? message->trial.id : "";
    const auto it = open.find(id);
    if (it == open.end() && id.starts_with(options_.run + ".") && !id.starts_with(own_ids()))
      return false;
    const bool ours =
        it != open.end() && std::ranges::equal(message->trial.candidates,
                                               batch.subspan(it->second.first, it->second.count));
    if (!ours) {
      if (!message.ok() || it != open.end())
        log_warning("a result that is of no trial of this run is left out: {}",
                    message.ok() ? id : message.error().message());
      (void)lease.done();
      return false;
    }
    for (size_t i = 0; i < it->second.count; ++i) found[it->second.first + i] = message->results[i];
    open.erase(it);
    return true;
  }

  // Trials with which two workers were lost.
  void give_up_lost(const std::map<uint64_t, std::string>& numbers,
                    std::map<std::string, Part>& open,
                    std::vector<std::optional<MeasureResult>>& found) {
    const std::lock_guard lock(mutex_);
    for (const uint64_t number : lost_) {
      const auto id = numbers.find(number);
      const auto it = id == numbers.end() ? open.end() : open.find(id->second);
      if (it == open.end()) continue;
      for (size_t i = 0; i < it->second.count; ++i) {
        MeasureResult& result = found[it->second.first + i].emplace();
        result.error = MeasureError::kUnknown;
        result.error_text = "the workers that measured it were lost";
        result.timestamp = std::time(nullptr);
      }
      open.erase(it);
    }
    lost_.clear();
  }

  Result<Unit> look_for_workers() {
    if (Clock::now() - looked_ < kLook) return Unit{};
    looked_ = Clock::now();
    const Result<std::vector<WorkerState>> all = list_workers(*broker_);
    if (!all.ok()) return Unit{};  // the server is away
    const size_t before = workers_;
    workers_ = static_cast<size_t>(std::ranges::count(*all, options_.kind, &WorkerState::kind));
    if (workers_ == 0 && before != 0)
      log_warning("no worker of kind {} is here any more: waiting for one", options_.kind);
    return Unit{};
  }

  const std::unique_ptr<Broker> broker_;
  const FleetOptions options_;
  const int64_t begun_;
  int64_t count_ = 0;
  std::unique_ptr<Queue> results_;
  std::vector<Lease> unrecorded_;
  std::set<std::string> published_;
  size_t workers_ = 1;
  Clock::time_point looked_ = {};
  MeasureTimes times_;
  std::mutex mutex_;
  std::set<uint64_t> lost_;
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
