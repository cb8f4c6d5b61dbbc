// Tasks -> records: the tuning loop. Pick a task (Scheduler), propose a batch (search), measure it,
// append the records, learn; at the end the best of each task is measured again, against its
// runner-up, before it is believed. Where what measures leaves this CPU free, the next rounds are
// searched meanwhile.
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
  int64_t task_trials = kNoTrialLimit;  // ... for each task
  int64_t first_round_size = 0;         // of each task; 0: as the others (search.round_size)
  int64_t early_stopping = 0;           // trials without gain that end the run; 0: none
  int64_t task_early_stopping = 0;      // ... that end a task
  int64_t measured_at_once = 2;         // recorded before the next ones are measured
  uint64_t seed = 0;
  double earlier_s = 0;  // time that earlier runs took
  bool remeasure = true;
  bool search_ahead = false;  // propose a round while others are measured
  SearchOptions search = {};
  const SearchPolicy* policy = &kPrunerPolicy;
  std::string mode = {};          // what the search is called in the records
  const char* origin = "search";  // of the records
  /// Schedules of other tasks that a task is offered (transfer/); none where it is null.
  std::function<std::vector<Candidate>(const Task& task, const Space& space)> offers = {};
  bool share_shapes = false;  // tasks that differ in numbers alone are offered each other's best
};

/// A task while it is tuned.
struct TunedTask {
  const WeightedTask* task;
  Space space;
  std::vector<Candidate> offered = {};
  std::vector<size_t> other_shapes = {};  // tasks that are this one but for numbers
  History history = {};
  SearchMemory memory = {};
  int64_t trials = 0;  // of the search, failed ones included
  int64_t failed = 0;
  int64_t last_gain = 0;        // `trials` when its best time last improved
  int64_t believed_trials = 0;  // `trials` when its best was last measured again
};

/// When a trial was built and run.
struct TrialTime {
  WorkSpan building, running;
};

/// Schedules of a task that is not tuned, or not with such tiles: one shape of a range.
struct ShapeTrials {
  Task task;
  Space space;
  std::vector<Candidate> candidates;
};

/// What a round did.
struct RoundSummary {
  size_t task = 0;
  int round = 0;       // over all tasks, from 1
  bool final = false;  // re-measuring
  int ok = 0, failed = 0;
  int later = 0;  // built, to be measured by others
  double explore_s = 0, train_s = 0, build_s = 0, measure_s = 0;
  std::vector<Sample> samples = {};        // what was measured, in its order
  std::vector<std::string> failures = {};  // why the failed ones of these did
  PairCount foretold = {};  // of these, by the model that verifies, before it learned of them
  TimeSpan exploring = {}, measuring = {}, training = {};
  std::vector<TrialTime> trial_times = {};  // of the samples
};

/// How a record file's lines were taken up.
struct RestoreSummary {
  int64_t used = 0, other_device = 0, other_task = 0, unknown_sketch = 0;

  int64_t skipped() const { return other_device + other_task + unknown_sketch; }
};

enum class TuneEnd : uint8_t { kTrials, kBudget, kEarlyStopping, kNothingLeft, kInterrupted };

/// What a tuner works with; all of it outlives the tuner.
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
  /// One round of run(), for those who take turns. Once a limit is reached, the last look at the
  /// best and the end instead.
  Result<std::optional<TuneEnd>> step();

  /// Measures and records these too, under kShapesOrigin; ends early when it is stopped or the
  /// budget is spent.
  Result<Unit> measure_shapes(std::span<const ShapeTrials> trials);

  const std::vector<TunedTask>& tasks() const { return tasks_; }
  int64_t trials() const;
  /// Seconds of this run and the earlier ones; what passes between two steps is nobody's.
  double elapsed_s() const;
  /// Seconds until the limit that comes first; nullopt while nothing can be told.
  std::optional<double> eta_s() const;
  /// Sum of weight x best time; nullopt until every task has one.
  std::optional<double> total_latency_s() const;
  /// Where all measurements of this run have failed: how many, and the commonest reason.
  std::optional<Error> all_failed() const;

 private:
  std::optional<TuneEnd> limit_reached() const;
  std::vector<Candidate> offers_to(const TunedTask& task) const;
  /// A round from its proposal to its end.
  struct Round {
    RoundSummary summary;
    std::vector<Candidate> batch = {};
    std::future<Result<std::vector<MeasureResult>>> results = {};  // of those measured meanwhile
  };

  /// Trials until the limits on them; nullopt without one.
  std::optional<int64_t> trials_left() const;
  int64_t warm_up_size(size_t tasks_left) const;
  double seconds_per_trial() const;
  std::vector<size_t> cold_tasks() const;
  /// The task of the next round, one that none is measured of where there is such a one, and how
  /// many trials it gets.
  struct Turn {
    size_t task;
    int64_t trials;
  };
  std::optional<Turn> next_turn();
  /// The next round's batch; nullopt: there is none now.
  std::optional<Round> propose();
  void measure_meanwhile(Round round);
  /// Waits for the oldest of the rounds that are measured.
  Result<Unit> conclude_meanwhile();
  /// The search learns from what a round has measured.
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
  /// Trials that are measured now.
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
  bool any_ok_ = false;          // of this run's measurements
  Reasons failures_;             // of this run's
  std::deque<Round> in_flight_;  // oldest first
};

}  // namespace pruner
