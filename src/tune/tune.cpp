#include "tune/tune.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "space/carry_over.h"
#include "tensor/generalize.h"
#include "tune/recorded.h"

namespace pruner {

namespace {

// A task is given up after this many trials of which none was valid.
constexpr int64_t kHopelessTrials = 30;
// The share of a limit that warm-up may take.
constexpr double kWarmUpShare = 0.5;
// A new leader is measured again so many times; timings that are too fast are rare.
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

/// How the model orders what ran of a round; none where it has nothing to say.
PairCount foretold(CostModel& model, std::span<const Sample> samples) {
  std::vector<Candidate> ran;
  std::vector<double> times_s;
  for (const Sample& sample : samples) {
    if (sample.cost_s >= kWorstCost) continue;
    ran.push_back(sample.candidate);
    times_s.push_back(sample.cost_s);
  }
  if (ran.size() < 2) return {};
  const std::vector<float> scores =
      model.predict(*samples.front().task, *samples.front().space, ran);
  return scores.empty() ? PairCount{} : count_pairs(scores, times_s);
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
  for (size_t a = 0; options.share_shapes && a < tasks.size(); ++a) {
    for (size_t b = 0; b < tasks.size(); ++b)
      if (a != b && DagRange::check_alike(tasks[a].task.dag, tasks[b].task.dag).ok())
        tasks_[a].other_shapes.push_back(b);
  }
}

// Returns the candidates offered to a task: those of other tasks, and the best of its other shapes.
std::vector<Candidate> Tuner::offers_to(const TunedTask& task) const {
  std::vector<Candidate> offers = task.offered;
  for (const size_t other : task.other_shapes) {
    for (const Trial& best : tasks_[other].history.best(1))
      if (std::optional<Candidate> near =
              nearest_like(tasks_[other].space, best.candidate, task.space))
        offers.push_back(*std::move(near));
  }
  return offers;
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

std::optional<Error> Tuner::all_failed() const {
  if (any_ok_ || failures_.empty()) return std::nullopt;
  const auto commonest = std::ranges::max_element(
      failures_, {}, [](const auto& reason) { return reason.second.count; });
  return Error("all ",
               total(failures_),
               " trials of this run failed, ",
               commonest->second.count,
               " of them so: ",
               commonest->first);
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
                                                                  : options_.search.round_size);
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

// Returns the tasks without a round yet, the costliest first, since not all may get a round.
std::vector<size_t> Tuner::cold_tasks() const {
  std::vector<size_t> cold;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].trials == 0 && !scheduler_[i].dead && trials_in_flight(i) == 0) cold.push_back(i);
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
  const std::optional<TuneEnd> end = limit_reached();
  std::optional<Round> round;
  if (!end) round = propose();
  if (round && !options_.search_ahead) {
    TRY(measure(round->summary.task, round->batch, options_.origin, round->summary));
    TRY(conclude(*round));
    return std::optional<TuneEnd>();
  }
  const bool another = round.has_value();
  if (another) measure_meanwhile(*std::move(round));
  if (!in_flight_.empty()) {
    // One round more than can be measured waits, so that measuring goes on while the search learns.
    // After learning, another round may be possible.
    if (std::ssize(in_flight_) > (another ? tools_.measurer.batches_at_once() : 0))
      TRY(conclude_meanwhile());
    return std::optional<TuneEnd>();
  }
  if (options_.remeasure) TRY(remeasure_best());
  return std::optional(tools_.stop ? TuneEnd::kInterrupted : end.value_or(TuneEnd::kNothingLeft));
}

int64_t Tuner::trials_in_flight() const {
  int64_t sum = 0;
  for (const Round& round : in_flight_) sum += std::ssize(round.batch);
  return sum;
}

int64_t Tuner::trials_in_flight(size_t task) const {
  int64_t sum = 0;
  for (const Round& round : in_flight_)
    if (round.summary.task == task) sum += std::ssize(round.batch);
  return sum;
}

std::optional<Tuner::Turn> Tuner::next_turn() {
  const int64_t left = options_.trials - trials() - trials_in_flight();
  if (left <= 0) return std::nullopt;
  const auto allowed = [&](size_t task, int64_t count) -> std::optional<Turn> {
    count = std::min(
        {count, left, options_.task_trials - tasks_[task].trials - trials_in_flight(task)});
    return count > 0 ? std::optional(Turn{task, count}) : std::nullopt;
  };
  if (const std::vector<size_t> cold = cold_tasks(); !cold.empty())
    return allowed(cold.front(), warm_up_size(cold.size()));
  std::vector<size_t> busy;
  for (const Round& round : in_flight_) busy.push_back(round.summary.task);
  std::optional<size_t> task = scheduler_.next(rng_, busy);
  if (!task && tools_.measurer.batches_at_once() > 1) task = scheduler_.next(rng_);
  if (!task) return std::nullopt;
  const auto tasks = static_cast<int64_t>(tasks_.size());
  return allowed(*task, round_size(options_.search.round_size, options_.trials, tasks));
}

std::optional<Tuner::Round> Tuner::propose() {
  const std::optional<Turn> turn = next_turn();
  if (!turn) return std::nullopt;
  TunedTask& tuned = tasks_[turn->task];
  Round round{.summary = {.task = turn->task, .round = ++rounds_}};
  round.summary.exploring.from_s = steady_s();
  const std::vector<Candidate> offers = offers_to(tuned);
  round.batch = options_.policy->next_batch({tuned.task->task,
                                             tuned.space,
                                             tuned.history,
                                             tuned.memory,
                                             static_cast<size_t>(turn->trials),
                                             tools_.models,
                                             options_.search,
                                             offers},
                                            rng_);
  round.summary.exploring.to_s = steady_s();
  round.summary.explore_s = round.summary.exploring.seconds();
  if (round.batch.empty()) scheduler_.mark_dead(round.summary.task);
  return round;
}

void Tuner::measure_meanwhile(Round round) {
  TunedTask& tuned = tasks_[round.summary.task];
  const Task& task = tuned.task->task;
  const std::span<const Candidate> batch = round.batch;  // stays where it is when the round moves
  const double best_s = tuned.history.best_cost_s();
  for (const Candidate& candidate : batch) tuned.history.expect(candidate);
  round.summary.measuring.from_s = steady_s();
  round.results = std::async(std::launch::async, [this, &task, batch, best_s] {
    return tools_.measurer.measure(task, batch, best_s);
  });
  in_flight_.push_back(std::move(round));
}

Result<Unit> Tuner::conclude_meanwhile() {
  Round round = std::move(in_flight_.front());
  in_flight_.pop_front();
  TRY_ASSIGN(const std::vector<MeasureResult> results, round.results.get());
  round.summary.measuring.to_s = steady_s();
  TRY(append_results(round.summary.task, round.batch, results, options_.origin, round.summary));
  for (const MeasureResult& result : results) {
    round.summary.build_s += result.build_s;
    round.summary.measure_s += result.run_s;
  }
  return conclude(round);
}

Result<Unit> Tuner::conclude(Round& round) {
  RoundSummary& summary = round.summary;
  const size_t index = summary.task;
  const TunedTask& tuned = tasks_[index];
  const double before_s = scheduler_.objective_s();
  scheduler_.finish_round(index, tuned.history.best_cost_s());
  if (scheduler_.objective_s() < before_s) last_gain_ = trials();
  const bool hopeless = tuned.failed == tuned.trials && tuned.trials >= kHopelessTrials;
  const bool stale = options_.task_early_stopping > 0 &&
                     tuned.trials - tuned.last_gain >= options_.task_early_stopping;
  const bool done = tuned.trials >= options_.task_trials;
  if (hopeless || stale || done) scheduler_.mark_dead(index);

  if (tools_.models.verify != nullptr)
    summary.foretold = foretold(*tools_.models.verify, summary.samples);
  summary.training.from_s = steady_s();
  TRY(tools_.models.update(summary.samples));
  summary.training.to_s = steady_s();
  summary.train_s = summary.training.seconds();
  tools_.on_round(summary);
  return Unit{};
}

Result<Unit> Tuner::measure(size_t index,
                            std::span<const Candidate> batch,
                            const char* origin,
                            RoundSummary& summary) {
  const TunedTask& tuned = tasks_[index];
  const MeasureTimes before = tools_.measurer.times();
  if (summary.measuring.from_s == 0) summary.measuring.from_s = steady_s();
  while (!batch.empty() && !tools_.stop) {
    const auto part =
        batch.first(std::min(batch.size(), static_cast<size_t>(options_.measured_at_once)));
    batch = batch.subspan(part.size());
    TRY_ASSIGN(const std::vector<MeasureResult> results,
               tools_.measurer.measure(tuned.task->task, part, tuned.history.best_cost_s()));
    TRY(append_results(index, part, results, origin, summary));
  }
  summary.measuring.to_s = steady_s();
  summary.build_s = tools_.measurer.times().build_s - before.build_s;
  summary.measure_s = tools_.measurer.times().run_s - before.run_s;
  return Unit{};
}

Result<Unit> Tuner::append_results(size_t index,
                                   std::span<const Candidate> batch,
                                   std::span<const MeasureResult> results,
                                   const char* origin,
                                   RoundSummary& summary) {
  TunedTask& tuned = tasks_[index];
  const Task& task = tuned.task->task;
  std::vector<Sample>& samples = summary.samples;
  for (size_t i = 0; i < results.size(); ++i) {  // fewer when stopped
    // Ctrl-C reaches the workers too: that is no fault of the candidate.
    if (tools_.stop && !results[i].ok()) continue;
    if (results[i].later) {
      ++summary.later;
      ++tuned.trials;
      tuned.history.expect(batch[i]);
      any_ok_ = any_ok_ || results[i].ok();
      if (results[i].ok()) continue;
      summary.failures.push_back(general_reason(results[i].error_text));
      note(failures_, summary.failures.back(), task.key);
      continue;
    }
    Record record = make_record(task, tuned.space, batch[i], results[i]);
    record.origin = origin;
    record.mode = options_.mode;
    TRY(tools_.writer.append(record));
    ++(results[i].ok() ? summary.ok : summary.failed);
    any_ok_ = any_ok_ || results[i].ok();
    if (!results[i].ok()) {
      summary.failures.push_back(general_reason(results[i].error_text));
      note(failures_, summary.failures.back(), task.key);
    }
    samples.push_back(
        {&task, &tuned.space, batch[i], results[i].ok() ? results[i].cost_s() : kWorstCost});
    summary.trial_times.push_back({results[i].building, results[i].running});
    if (summary.final) continue;
    ++tuned.trials;
    tuned.failed += !results[i].ok();
    if (samples.back().cost_s < tuned.history.best_cost_s()) tuned.last_gain = tuned.trials;
    tuned.history.add(batch[i], samples.back().cost_s);
  }
  return tools_.measurer.recorded(results);
}

Result<Unit> Tuner::remeasure_best() {
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (elapsed_s() >= options_.budget_s) break;
    if (tasks_[i].trials > tasks_[i].believed_trials) TRY(remeasure(i));
  }
  return Unit{};
}

Result<Unit> Tuner::measure_shapes(std::span<const ShapeTrials> trials) {
  const Stopwatch::Lap lap(own_time_);
  for (const auto& [task, space, candidates] : trials) {
    std::span<const Candidate> left = candidates;
    double best_s = kWorstCost;
    while (!left.empty() && !tools_.stop && elapsed_s() < options_.budget_s) {
      const auto batch =
          left.first(std::min(left.size(), static_cast<size_t>(options_.measured_at_once)));
      left = left.subspan(batch.size());
      TRY_ASSIGN(const std::vector<MeasureResult> results,
                 tools_.measurer.measure(task, batch, best_s));
      for (size_t i = 0; i < results.size(); ++i) {
        if (tools_.stop && !results[i].ok()) continue;
        Record record = make_record(task, space, batch[i], results[i]);
        record.origin = kShapesOrigin;
        record.mode = options_.mode;
        TRY(tools_.writer.append(record));
        best_s = std::min(best_s, recorded_cost_s(record));
      }
      TRY(tools_.measurer.recorded(results));
    }
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
