#include "fleet/own_workers.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "fleet/fleet_measurer.h"
#include "fleet/local_broker.h"
#include "fleet/worker.h"
#include "support/log.h"

namespace pruner {

namespace {

constexpr const char* kHere = "here";  // the kind and the run

class OwnWorkers : public Measurer {
 public:
  OwnWorkers(const Target& target, MeasureOptions options, std::string program)
      : target_(target), options_(std::move(options)), program_(std::move(program)) {}

  ~OwnWorkers() override {
    ended_ = true;
    if (broker_ != nullptr) broker_->close(Error("the run has ended"));
  }

  Result<Unit> start(std::span<const int> devices) {
    std::unique_ptr<LocalBroker> broker = LocalBroker::make();
    LocalBroker* const here = broker.get();
    options_.build_jobs = std::max(1, options_.build_jobs / static_cast<int>(devices.size()));
    std::vector<std::unique_ptr<FleetWorker>> workers;
    for (const int device : devices) {
      TRY_ASSIGN(std::unique_ptr<FleetWorker> worker,
                 FleetWorker::join(*here, worker_options(device)));
      workers.push_back(std::move(worker));
    }
    // A message is here at once, so none waits for who measures another; and it is not too long.
    TRY_ASSIGN(measurer_,
               FleetMeasurer::make(std::move(broker),
                                   {.kind = kHere,
                                    .target = target_,
                                    .run = kHere,
                                    .measure = options_,
                                    .messages_a_worker = 1,
                                    .candidates_at_most = std::numeric_limits<size_t>::max(),
                                    .stops_workers = true}));
    broker_ = here;
    serving_ = devices.size();
    for (size_t i = 0; i < devices.size(); ++i)
      threads_.emplace_back(
          [this, worker = std::move(workers[i]), device = devices[i]] { serve(*worker, device); });
    return Unit{};
  }

  Result<std::vector<MeasureResult>> measure(const Task& task,
                                             std::span<const Candidate> batch,
                                             double best_s) override {
    return measurer_->measure(task, batch, best_s);
  }
  Result<Unit> recorded(std::span<const MeasureResult> results) override {
    return measurer_->recorded(results);
  }
  int batches_at_once() const override { return measurer_->batches_at_once(); }
  MeasureTimes times() const override { return measurer_->times(); }

 private:
  FleetWorkerOptions worker_options(int device) {
    FleetWorkerOptions worker;
    worker.kind = kHere;
    worker.target = target_;
    worker.name = std::to_string(device);
    worker.most_drift = 0;
    worker.stop = [this] { return ended_ || (options_.stop && options_.stop()); };
    worker.make_measurer = [this, device](MeasureOptions) {
      MeasureOptions own = options_;
      own.device = device;
      return LocalMeasurer::make(own, program_);
    };
    return worker;
  }

  void serve(FleetWorker& worker, int device) {
    const Result<int64_t> served = worker.serve();
    const std::lock_guard lock(mutex_);
    if (--serving_ == 0) return broker_->close(served.ok() ? Error("stopped") : served.error());
    if (!served.ok())
      log_warning("device {} is not used any more: {}", device, served.error().message());
  }

  const Target target_;
  MeasureOptions options_;
  const std::string program_;
  std::atomic<bool> ended_{false};
  LocalBroker* broker_ = nullptr;  // the measurer's
  std::unique_ptr<FleetMeasurer> measurer_;
  std::mutex mutex_;
  size_t serving_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace

Result<std::unique_ptr<Measurer>> measure_here(const Target& target,
                                               std::span<const int> devices,
                                               const MeasureOptions& options,
                                               const std::string& program) {
  auto made = std::make_unique<OwnWorkers>(target, options, program);
  TRY(made->start(devices));
  return std::unique_ptr<Measurer>(std::move(made));
}

}  // namespace pruner
