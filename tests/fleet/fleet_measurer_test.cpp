// A tuner's side and its workers' over the queues of this process, with measurers that only count.
#include "fleet/fleet_measurer.h"

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "fleet/local_broker.h"
#include "fleet/names.h"
#include "fleet/worker.h"
#include "golden.h"
#include "space/some_candidates.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

constexpr const char* kRun = "run";

Task small_task() {
  const std::string op = "matmul 16 16 16";
  return make_task(*parse_operator(op), *parse_target("llvm", 1), op);
}

/// A candidate's time, by which its result is known.
double cost_of(const Candidate& candidate) {
  double sum = 1;
  for (const int32_t decision : candidate.decisions) sum = 1.1 * sum + decision;
  return 1e-6 * sum;
}

/// `Plan` says what a worker's measurer does, and counts what it has done.
struct Plan {
  int gone_after = -1;  // messages after which the device is gone
  int stop_after = -1;  // candidates after which the worker is stopped
  std::atomic<bool> stopped{false};
  std::atomic<int> messages{0}, candidates{0};
};

class CountingMeasurer : public LocalMeasurer {
 public:
  explicit CountingMeasurer(Plan& plan) : plan_(plan) {}

  Result<std::vector<MeasureResult>> measure(const Task&,
                                             std::span<const Candidate> batch,
                                             double) override {
    if (plan_.messages++ == plan_.gone_after) return Error("the device is gone");
    std::vector<MeasureResult> results;
    for (const Candidate& candidate : batch) {
      if (plan_.stopped) break;
      results.emplace_back().costs_s = {cost_of(candidate)};
      results.back().running = {{1, 2}, 0};
      ++plan_.candidates;
      if (plan_.candidates == plan_.stop_after) plan_.stopped = true;
    }
    times_.run_s += static_cast<double>(results.size());
    return results;
  }
  Result<std::vector<Build>> build(const Task&, std::span<const Candidate>) override {
    return std::vector<Build>();
  }
  Result<std::vector<MeasureResult>> run(const Task&, std::span<const Build>, double) override {
    return std::vector<MeasureResult>();
  }
  MeasureTimes times() const override { return times_; }

 private:
  Plan& plan_;
  MeasureTimes times_;
};

/// A run, and workers of these plans in threads.
class Workers {
 public:
  explicit Workers(const Task& task, FleetOptions options = {}) {
    std::unique_ptr<LocalBroker> broker = LocalBroker::make();
    broker_ = broker.get();
    for (size_t i = 0; i < plans.size(); ++i) {
      FleetWorkerOptions worker;
      worker.kind = kRun;
      worker.target = task.target;
      worker.name = std::to_string(i);
      worker.most_drift = 0;
      worker.stop = [this, i] { return ended_ || plans[i].stopped; };
      worker.make_measurer = [this, i](MeasureOptions) -> Result<std::unique_ptr<LocalMeasurer>> {
        return std::unique_ptr<LocalMeasurer>(std::make_unique<CountingMeasurer>(plans[i]));
      };
      workers_.push_back(*FleetWorker::join(*broker, worker));
    }
    options.kind = options.run = kRun;
    options.target = task.target;
    Result<std::unique_ptr<FleetMeasurer>> made = FleetMeasurer::make(std::move(broker), options);
    EXPECT_TRUE(made.ok());
    measurer = *std::move(made);
  }
  ~Workers() {
    ended_ = true;
    broker_->close(Error("the test has ended"));
  }

  void start(size_t number) {
    threads_.emplace_back([this, number] { (void)workers_[number]->serve(); });
  }
  /// A batch's results, of which the first worker has what it takes before `until`, if not all.
  Result<std::vector<MeasureResult>> measure(const Task& task,
                                             const std::vector<Candidate>& batch,
                                             const std::function<bool()>& until) {
    auto results =
        std::async(std::launch::async, [&] { return measurer->measure(task, batch, kFailedCost); });
    start(0);
    while (!until()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    start(1);
    return results.get();
  }
  Broker::Backlog results() const {
    return *broker_->backlog(fleet::kResults, fleet::run_queue(kRun));
  }
  std::unique_ptr<Queue> trials() const {
    return *broker_->open_queue(
        fleet::kTrials, fleet::trials_of_kind(kRun), fleet::kind_queue(kRun), 1, 2);
  }

  std::array<Plan, 2> plans;
  std::unique_ptr<FleetMeasurer> measurer;

 private:
  std::atomic<bool> ended_{false};
  LocalBroker* broker_;
  std::vector<std::unique_ptr<FleetWorker>> workers_;
  std::vector<std::jthread> threads_;
};

void expect_results(const std::vector<MeasureResult>& results,
                    std::span<const Candidate> candidates) {
  ASSERT_EQ(results.size(), candidates.size());
  for (size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(results[i].costs_s, std::vector<double>{cost_of(candidates[i])}) << i;
}

TEST(FleetMeasurer, WorkersShareABatchWhoseResultsKeepTheirOrder) {
  const Task task = small_task();
  Workers fleet(task);
  const std::vector<Candidate> batch = some_candidates(task, 40);
  const auto results = fleet.measure(task, batch, [&] { return fleet.plans[0].messages > 0; });
  ASSERT_TRUE(results.ok()) << results.error().message();
  expect_results(*results, batch);
  EXPECT_EQ(fleet.plans[0].candidates + fleet.plans[1].candidates, 40);
  EXPECT_EQ(fleet.measurer->times().run_s, 40);
  EXPECT_EQ(fleet.results().taken, 4) << "two messages for each worker";
  ASSERT_TRUE(fleet.measurer->recorded(*results).ok());
  EXPECT_EQ(fleet.results().taken + fleet.results().waiting, 0);
}

TEST(FleetMeasurer, AWorkerThatLeavesLosesAndDoublesNothing) {
  const Task task = small_task();
  for (const int after : {0, 1, 3}) {
    Workers fleet(task, {.messages_a_worker = 4});
    Plan& gone = fleet.plans[0];
    gone.gone_after = after;
    const std::vector<Candidate> batch = some_candidates(task, 16);
    const auto results = fleet.measure(task, batch, [&] { return gone.messages > after; });
    ASSERT_TRUE(results.ok()) << results.error().message();
    expect_results(*results, batch);
    EXPECT_EQ(gone.candidates, 2 * after);
    EXPECT_EQ(fleet.plans[1].candidates, 16 - 2 * after);
    EXPECT_EQ(fleet.results().taken + fleet.results().waiting, 8);
    for (const MeasureResult& result : *results)
      EXPECT_EQ(result.running.worker, (&result - results->data()) / 2 < after ? 0 : after > 0);
  }
}

TEST(FleetMeasurer, WithWhichTwoWorkersWereLostHasFailed) {
  const Task task = small_task();
  Workers fleet(task, {.messages_a_worker = 1});
  for (Plan& plan : fleet.plans) plan.gone_after = 0;
  const std::vector<Candidate> batch = some_candidates(task, 1);
  const std::unique_ptr<Queue> trials = fleet.trials();
  std::jthread asks([&](const std::stop_token& stop) {
    while (fleet.plans[0].messages + fleet.plans[1].messages < 2)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    while (!stop.stop_requested()) EXPECT_TRUE(trials->take(1, 0.01)->empty());
  });
  const auto results = fleet.measure(task, batch, [&] { return fleet.plans[0].messages > 0; });
  ASSERT_TRUE(results.ok()) << results.error().message();
  ASSERT_EQ(results->size(), 1u);
  EXPECT_EQ(results->front().error_text, "the workers that measured it were lost");
}

TEST(FleetMeasurer, WhatAStoppedWorkerLeavesIsAskedForAgain) {
  const Task task = small_task();
  Workers fleet(task, {.messages_a_worker = 1});
  fleet.plans[0].stop_after = 3;
  const std::vector<Candidate> batch = some_candidates(task, 16);
  const auto results = fleet.measure(task, batch, [&] { return fleet.plans[0].stopped.load(); });
  ASSERT_TRUE(results.ok()) << results.error().message();
  expect_results(*results, batch);
  EXPECT_EQ(fleet.plans[0].candidates, 3);
  EXPECT_EQ(fleet.plans[1].candidates, 13);
}

TEST(FleetMeasurer, ARunThatStopsItsWorkersHasTheirLastResults) {
  const Task task = small_task();
  const std::atomic<bool>* stopped = nullptr;
  FleetOptions options{.messages_a_worker = 1, .stops_workers = true};
  options.measure.stop = [&] { return stopped != nullptr && *stopped; };
  Workers fleet(task, options);
  stopped = &fleet.plans[0].stopped;
  fleet.plans[0].stop_after = 3;
  const std::vector<Candidate> batch = some_candidates(task, 16);
  const auto results = fleet.measure(task, batch, [&] { return stopped->load(); });
  ASSERT_TRUE(results.ok()) << results.error().message();
  expect_results(*results, std::span(batch).first(3));
}

}  // namespace
}  // namespace pruner
