#include "tune/tune.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pruner {

namespace {

// A task is given up after this many trials of which none was valid.
constexpr int64_t kHopelessTrials = 30;
// The share of a limit that warm-up may take.
constexpr double kWarmUpShare = 0.5;
// How often a new leader is looked at again; timings that are too fast are rare.
constexpr int kFinalPasses = 8;

ScheduledTask scheduled(const WeightedTask& weighted) {
  std::vector<std::string> operator_tags;
  for (const Stage& stage : weighted.task.dag.stages) {
    if (stage.is_reduction()) operator_tags.push_back(stage.tag);
  }
  return {.weight = static_cast<double>(weighted.weight),
          .flops = weighted.task.flops,
          .tag = similarity_tag(operator_tags, weighted.task.flops)};
}

/// The candidate's fastest time: noise only ever adds.
std::optional<double> fastest(std::span<const Sample> samples, const Candidate& candidate) {
  std::optional<double> cost_s;
  for (const Sample& sample : samples) {
    if (sample.candidate == candidate)
      cost_s = std::min(cost_s.value_or(kWorstCost), sample.cost_s);
  }
  return cost_s;
}

std::vector<ScheduledTask> scheduled(std::span<const WeightedTask> tasks) {
  std::vector<ScheduledTask> all;
  for (const WeightedTask& task : tasks) all.push_back(scheduled(task));
  return all;
}

}  // namespace

Tuner::Tuner(std::span<const WeightedTask> tasks,
             const TuneOptions& options,
             const TuneTools& tools)
    : options_(options), tools_(tools), rng_(options.seed), scheduler_(scheduled(tasks)) {
  for (const WeightedTask& task : tasks) {
    tasks_.push_back({.task = &task, .space = make_space(task.task, options.search.forms)});
    if (options.offers) tasks_.back().offered = options.offers(task.task, tasks_.back().space);
  }
}

int64_t Tuner::trials() const {
  int64_t sum = 0;
  for (const TunedTask& task : tasks_) sum += task.trials;
  return sum;
}

double Tuner::elapsed_s() const { return options_.earlier_s + own_time_.seconds(); }

double Tuner::seconds_per_trial() const {
  const int64_t done = trials() - restored_trials_;
  return done > 0 ? own_time_.seconds() / static_cast<double>(done) : 0;
}

std::optional<int64_t> Tuner::trials_left() const {
  std::optional<int64_t> left;
  if (options_.trials != kNoTrialLimit) left = options_.trials - trials();
  if (options_.task_trials == kNoTrialLimit) return left;
  int64_t of_tasks = 0;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (!scheduler_[i].dead) of_tasks += options_.task_trials - tasks_[i].trials;
  }
  return std::min(left.value_or(of_tasks), of_tasks);
}

std::optional<double> Tuner::eta_s() const {
  double eta = options_.budget_s - elapsed_s();
  if (const std::optional<int64_t> left = trials_left(); left && seconds_per_trial() > 0)
    eta = std::min(eta, static_cast<double>(*left) * seconds_per_trial());
  if (!std::isfinite(eta)) return std::nullopt;
  return std::max(0.0, eta);
}

std::optional<double> Tuner::total_latency_s() const {
  if (!scheduler_.all_valid()) return std::nullopt;
  return scheduler_.objective_s();
}

std::optional<TuneEnd> Tuner::limit_reached() const {
  if (tools_.stop) return TuneEnd::kInterrupted;
  if (trials() >= options_.trials) return TuneEnd::kTrials;
  // The end of the budget belongs to the last look at the best.
  const double last_look_s =
      options_.remeasure ? 4 * static_cast<double>(tasks_.size()) * seconds_per_trial() : 0;
  if (elapsed_s() + std::min(last_look_s, 0.2 * options_.budget_s) >= options_.budget_s)
    return TuneEnd::kBudget;
  if (options_.early_stopping > 0 && scheduler_.all_valid() &&
      trials() - last_gain_ >= options_.early_stopping) {
    return TuneEnd::kEarlyStopping;
  }
  return std::nullopt;
}

// Small budgets would be used up before the scheduler has a say; rounds shrink then.
int64_t Tuner::warm_up_size(size_t tasks_left) const {
  double size = static_cast<double>(options_.first_round_size > 0 ? options_.first_round_size
                                                                  : options_.round_size);
  if (options_.trials != kNoTrialLimit) {
    const double trials_left =
        kWarmUpShare * static_cast<double>(options_.trials) - static_cast<double>(trials());
    size = std::min(size, trials_left / static_cast<double>(tasks_left));
  }
  if (std::isfinite(options_.budget_s)) {
    const double seconds_left = kWarmUpShare * options_.budget_s - elapsed_s();
    size = std::min(
        size,
        seconds_left / (static_cast<double>(tasks_left) * std::max(seconds_per_trial(), 0.1)));
  }
  return std::max<int64_t>(1, static_cast<int64_t>(size));
}

// Those without a round yet; what costs most first, as not all of them may get one.
std::vector<size_t> Tuner::cold_tasks() const {
  std::vector<size_t> cold;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].trials == 0 && !scheduler_[i].dead) cold.push_back(i);
  }
  std::ranges::stable_sort(
      cold, std::greater(), [&](size_t i) { return scheduler_[i].weight * scheduler_[i].flops; });
  return cold;
}

Result<TuneEnd> Tuner::run() {
  std::optional<TuneEnd> end;
  while (!end) {
    TRY_ASSIGN(end, step());
  }
  return *end;
}

Result<std::optional<TuneEnd>> Tuner::step() {
  const Stopwatch::Lap lap(own_time_);
  std::optional<TuneEnd> end = limit_reached();
  const std::vector<size_t> cold = cold_tasks();
  if (!end && !cold.empty()) {
    TRY(search_round(cold.front(), warm_up_size(cold.size())));
    return end;
  }
  const int next = end ? -1 : scheduler_.next(rng_);
  if (next >= 0) {
    const int64_t tasks = static_cast<int64_t>(tasks_.size());
    TRY(search_round(static_cast<size_t>(next),
                     round_size(options_.round_size, options_.trials, tasks)));
    return end;
  }
  if (options_.remeasure) TRY(remeasure_best());
  return std::optional(tools_.stop ? TuneEnd::kInterrupted : end.value_or(TuneEnd::kNothingLeft));
}

Result<Unit> Tuner::search_round(size_t index, int64_t count) {
  TunedTask& tuned = tasks_[index];
  const Task& task = tuned.task->task;
  RoundSummary summary{.task = index, .round = ++rounds_};
  count = std::min({count, options_.trials - trials(), options_.task_trials - tuned.trials});

  const auto start = std::chrono::steady_clock::now();
  const std::vector<Candidate> batch = options_.policy->next_batch({task,
                                                                    tuned.space,
                                                                    tuned.history,
                                                                    tuned.memory,
                                                                    static_cast<size_t>(count),
                                                                    tools_.models,
                                                                    options_.search,
                                                                    tuned.offered},
                                                                   rng_);
  summary.explore_s = seconds_since(start);
  if (batch.empty()) scheduler_.mark_dead(index);

  const double before_s = scheduler_.objective_s();
  TRY(measure(index, batch, options_.origin, summary));
  scheduler_.finish_round(index, tuned.history.best_cost_s());
  if (scheduler_.objective_s() < before_s) last_gain_ = trials();
  const bool hopeless = tuned.failed == tuned.trials && tuned.trials >= kHopelessTrials;
  const bool stale = options_.task_early_stopping > 0 &&
                     tuned.trials - tuned.last_gain >= options_.task_early_stopping;
  const bool done = tuned.trials >= options_.task_trials;
  if (hopeless || stale || done) scheduler_.mark_dead(index);

  const auto train_start = std::chrono::steady_clock::now();
  TRY(tools_.models.update(summary.samples));
  summary.train_s = seconds_since(train_start);
  tools_.on_round(summary);
  return Unit{};
}

Result<Unit> Tuner::measure(size_t index,
                            std::span<const Candidate> batch,
                            const char* origin,
                            RoundSummary& summary) {
  TunedTask& tuned = tasks_[index];
  const Task& task = tuned.task->task;
  const MeasureTimes before = tools_.measurer.times();
  std::vector<Sample>& samples = summary.samples;
  while (!batch.empty() && !tools_.stop) {
    const auto part =
        batch.first(std::min(batch.size(), static_cast<size_t>(options_.measured_at_once)));
    batch = batch.subspan(part.size());
    const double best_s = tuned.history.best_cost_s();
    const std::vector<MeasureResult> results = tools_.measurer.measure(task, part, best_s);
    for (size_t i = 0; i < results.size(); ++i) {  // fewer when stopped
      // Ctrl-C reaches the workers too: that is no fault of the candidate.
      if (tools_.stop && !results[i].ok()) continue;
      Record record = make_record(task, tuned.space, part[i], results[i]);
      record.origin = origin;
      TRY(tools_.writer.append(record));
      ++(results[i].ok() ? summary.ok : summary.failed);
      samples.push_back(
          {&task, &tuned.space, part[i], results[i].ok() ? results[i].cost_s() : kWorstCost});
      if (summary.final) continue;
      ++tuned.trials;
      tuned.failed += !results[i].ok();
      if (samples.back().cost_s < tuned.history.best_cost_s()) tuned.last_gain = tuned.trials;
      tuned.history.add(part[i], samples.back().cost_s);
    }
  }
  summary.build_s = tools_.measurer.times().build_s - before.build_s;
  summary.measure_s = tools_.measurer.times().run_s - before.run_s;
  return Unit{};
}

Result<Unit> Tuner::remeasure_best() {
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (elapsed_s() >= options_.budget_s) break;
    if (tasks_[i].trials > tasks_[i].believed_trials) TRY(remeasure(i));
  }
  return Unit{};
}

// The fastest of many noisy timings is too fast to be true. The two that lead are timed in turns
// until the leader is one that was.
Result<Unit> Tuner::remeasure(size_t index) {
  TunedTask& tuned = tasks_[index];
  RoundSummary summary{.task = index, .round = rounds_, .final = true};
  CandidateSet believed;
  for (int pass = 0; pass < kFinalPasses && !tools_.stop; ++pass) {
    if (pass > 0 && elapsed_s() >= options_.budget_s) break;
    const std::vector<Trial> leaders = tuned.history.best(2);
    if (leaders.empty() || believed.contains(leaders.front().candidate)) break;
    std::vector<Candidate> in_turns;
    for (size_t i = 0; i < 2 * leaders.size(); ++i)
      in_turns.push_back(leaders[i % leaders.size()].candidate);
    const size_t earlier = summary.samples.size();
    TRY(measure(index, in_turns, "final", summary));
    const std::span<const Sample> samples = std::span(summary.samples).subspan(earlier);
    for (const Trial& leader : leaders) {
      const std::optional<double> cost_s = fastest(samples, leader.candidate);
      if (!cost_s) continue;  // stopped before its turn
      tuned.history.add(leader.candidate, *cost_s);
      believed.insert(leader.candidate);
    }
  }
  if (summary.ok + summary.failed == 0) return Unit{};
  tuned.believed_trials = tuned.trials;
  scheduler_.correct(index, tuned.history.best_cost_s());
  tools_.on_round(summary);
  return Unit{};
}

}  // namespace pruner
