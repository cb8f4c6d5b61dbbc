// Tasks -> records: the tuning loop. Pick a task (Scheduler), propose a batch (search), measure it,
// append the records, learn. At the end the best of each task is measured again, against its
// runner-up, before it is believed. If measuring leaves this CPU free, the next rounds are searched
// meanwhile.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "graph/partition.h"
#include "measure/measure.h"
#include "model/cost_model.h"
#include "model/metrics.h"
#include "record/reasons.h"
#include "record/record.h"
#include "search/search.h"
#include "tune/scheduler.h"
#include "tune/stopwatch.h"

namespace pruner {

inline constexpr int64_t kNoTrialLimit = std::numeric_limits<int64_t>::max();

struct TuneOptions {
  int64_t trials = kNoTrialLimit;  // both limits are totals over resumed runs
  double budget_s = std::numeric_limits<double>::infinity();
  int64_t task_trials = kNoTrialLimit;  // limit of each task
  int64_t first_round_size = 0;         // trials of a task's first round; 0: search.round_size
  int64_t early_stopping = 0;           // trials without gain that end the run; 0: none
  int64_t task_early_stopping = 0;      // trials without gain that end a task; 0: none
  int64_t measured_at_once = 2;         // trials that are recorded before others are measured
  uint64_t seed = 0;
  double earlier_s = 0;  // time of earlier runs
  bool remeasure = true;
  bool search_ahead = false;  // propose a round while others are measured
  SearchOptions search = {};
  const SearchPolicy* policy = &kPrunerPolicy;
  std::string mode = {};          // name of the search in the records
  const char* origin = "search";  // origin in the records
  /// Returns the schedules of other tasks that a task is offered (transfer/); null: none.
  std::function<std::vector<Candidate>(const Task& task, const Space& space)> offers = {};
  bool share_shapes = false;  // tasks that differ in numbers alone are offered each other's best
};

/// Holds a task while it is tuned.
struct TunedTask {
  const WeightedTask* task;
  Space space;
  std::vector<Candidate> offered = {};
  std::vector<size_t> other_shapes = {};  // tasks that differ in numbers alone
  History history = {};
  SearchMemory memory = {};
  int64_t trials = 0;  // trials of the search, failed ones included
  int64_t failed = 0;
  int64_t last_gain = 0;        // `trials` when its best time last improved
  int64_t believed_trials = 0;  // `trials` when its best was last measured again
};

/// Holds the times when a trial was built and run.
struct TrialTime {
  WorkSpan building, running;
};

/// Holds schedules of a task at one shape of a range, which is not tuned, or not with such tiles.
struct ShapeTrials {
  Task task;
  Space space;
  std::vector<Candidate> candidates;
};

/// Summarizes a round.
struct RoundSummary {
  size_t task = 0;
  int round = 0;       // over all tasks, from 1
  bool final = false;  // re-measuring
  int ok = 0, failed = 0;
  int later = 0;  // built, to be measured by others
  double explore_s = 0, train_s = 0, build_s = 0, measure_s = 0;
  std::vector<Sample> samples = {};        // measured samples, in order
  std::vector<std::string> failures = {};  // reasons of failed trials
  PairCount foretold = {};  // pairs of samples that the verifier ordered before it learned
  TimeSpan exploring = {}, measuring = {}, training = {};
  std::vector<TrialTime> trial_times = {};  // times of the samples
};

/// Counts how a record file's lines were taken up.
struct RestoreSummary {
  int64_t used = 0, other_device = 0, other_task = 0, unknown_sketch = 0;

  int64_t skipped() const { return other_device + other_task + unknown_sketch; }
};

enum class TuneEnd : uint8_t { kTrials, kBudget, kEarlyStopping, kNothingLeft, kInterrupted };

/// Holds the tools of a tuner; all tools outlive the tuner.
struct TuneTools {
  Measurer& measurer;
  SearchModels models;
  RecordWriter& writer;
  const std::atomic<bool>& stop;  // set by Ctrl-C: ends the run after the measurement in flight
  std::function<void(const RoundSummary&)> on_round;
};

class Tuner {
 public:
  Tuner(std::span<const WeightedTask> tasks, const TuneOptions& options, const TuneTools& tools);

  /// Takes up the records of these tasks on this device: measured candidates, counts, best times.
  Result<RestoreSummary> restore(std::span<const Record> records);

  /// Tunes until a limit is reached or it is stopped. Each record is appended before anything
  /// depends on it.
  Result<TuneEnd> run();
  /// Does one round of run(), for tuners that take turns. Once a limit is reached, it measures the
  /// best again and ends instead.
  Result<std::optional<TuneEnd>> step();

  /// Measures and records these trials, too, under kShapesOrigin; ends early if it is stopped or
  /// the budget is spent.
  Result<Unit> measure_shapes(std::span<const ShapeTrials> trials);

  const std::vector<TunedTask>& tasks() const { return tasks_; }
  int64_t trials() const;
  /// Returns the seconds of this run and the earlier ones, without the time between two steps.
  double elapsed_s() const;
  /// Returns the seconds until the limit that comes first; nullopt while nothing can be told.
  std::optional<double> eta_s() const;
  /// Returns the sum of weight x best time; nullopt until every task has a time.
  std::optional<double> total_latency_s() const;
  /// Returns an error if all measurements of this run failed: their number, the commonest reason.
  std::optional<Error> all_failed() const;

 private:
  std::optional<TuneEnd> limit_reached() const;
  std::vector<Candidate> offers_to(const TunedTask& task) const;
  /// Holds a round from its proposal to its end.
  struct Round {
    RoundSummary summary;
    std::vector<Candidate> batch = {};
    std::future<Result<std::vector<MeasureResult>>> results = {};  // set if measured meanwhile
  };

  /// Returns the trials until the limits on trials; nullopt without a limit.
  std::optional<int64_t> trials_left() const;
  int64_t warm_up_size(size_t tasks_left) const;
  double seconds_per_trial() const;
  std::vector<size_t> cold_tasks() const;
  /// Holds the task of the next round, preferably a task of which nothing is being measured, and
  /// its number of trials.
  struct Turn {
    size_t task;
    int64_t trials;
  };
  std::optional<Turn> next_turn();
  /// Proposes the next round's batch; nullopt if there is none now.
  std::optional<Round> propose();
  void measure_meanwhile(Round round);
  /// Waits for the oldest of the rounds that are measured.
  Result<Unit> conclude_meanwhile();
  /// Makes the search learn from the results of a round.
  Result<Unit> conclude(Round& round);
  Result<Unit> remeasure_best();
  Result<Unit> remeasure(size_t index);
  Result<Unit> measure(size_t index,
                       std::span<const Candidate> batch,
                       const char* origin,
                       RoundSummary& summary);
  Result<Unit> append_results(size_t index,
                              std::span<const Candidate> batch,
                              std::span<const MeasureResult> results,
                              const char* origin,
                              RoundSummary& summary);
  /// Return the number of trials that are measured now.
  int64_t trials_in_flight() const;
  int64_t trials_in_flight(size_t task) const;

  TuneOptions options_;
  TuneTools tools_;
  Rng rng_;
  std::vector<TunedTask> tasks_;
  Scheduler scheduler_;
  Stopwatch own_time_;
  int64_t restored_trials_ = 0;
  int64_t last_gain_ = 0;  // trials() when the objective last improved
  int rounds_ = 0;
  bool any_ok_ = false;          // whether any measurement of this run succeeded
  Reasons failures_;             // reasons of this run's failures
  std::deque<Round> in_flight_;  // oldest first
};

}  // namespace pruner
