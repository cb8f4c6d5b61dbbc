// Takes up the records of earlier runs: what was tried is not tried again, and scheduler, best
// times and cost model stand as if the run had not ended.
#include <algorithm>
#include <unordered_map>

#include "tune/recorded.h"
#include "tune/tune.h"

namespace pruner {

namespace {

/// Holds one task's records while they are taken up.
struct Restored {
  RecordedTrials trials;
  std::vector<Sample> samples;
  std::vector<double> best_s;  // after each trial of the search
};

void take_up(const Record& record,
             const Candidate& candidate,
             TunedTask& tuned,
             Restored& restored) {
  const double before_s = restored.trials.history().best_cost_s();
  restored.trials.add(record, candidate);
  if (record.origin == "final") {
    tuned.believed_trials = tuned.trials;
    return;
  }
  const double cost_s = recorded_cost_s(record);
  ++tuned.trials;
  tuned.failed += !record.result.ok();
  if (cost_s < before_s) tuned.last_gain = tuned.trials;
  restored.samples.push_back({&tuned.task->task, &tuned.space, candidate, cost_s});
  restored.best_s.push_back(restored.trials.history().best_cost_s());
}

}  // namespace

Result<RestoreSummary> Tuner::restore(std::span<const Record> records) {
  RestoreSummary summary;
  std::unordered_map<std::string, size_t> by_key;
  for (size_t i = 0; i < tasks_.size(); ++i) by_key.emplace(tasks_[i].task->task.key, i);
  std::vector<Restored> restored(tasks_.size());
  for (const Record& record : records) {
    if (record.origin == kShapesOrigin) continue;
    const auto found = by_key.find(record.workload_key);
    if (found == by_key.end()) {
      ++summary.other_task;
      continue;
    }
    TunedTask& tuned = tasks_[found->second];
    if (record.device != device_fingerprint(tuned.task->task.target)) {
      ++summary.other_device;
    } else if (const std::optional<Candidate> candidate = resolve(tuned.space, record)) {
      ++summary.used;
      take_up(record, *candidate, tuned, restored[found->second]);
    } else {
      ++summary.unknown_sketch;
    }
  }

  const size_t round = static_cast<size_t>(
      round_size(options_.search.round_size, options_.trials, static_cast<int64_t>(tasks_.size())));
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const std::vector<double>& best_s = restored[i].best_s;
    tasks_[i].history = restored[i].trials.history();
    if (best_s.empty()) continue;
    const size_t rounds = std::max<size_t>(1, (best_s.size() + round / 2) / round);
    for (size_t r = 1; r <= rounds; ++r) {
      scheduler_.finish_round(i, best_s[std::min(r * round, best_s.size()) - 1]);
    }
    scheduler_.correct(i, tasks_[i].history.best_cost_s());
    if (tasks_[i].trials >= options_.task_trials) scheduler_.mark_dead(i);
    TRY(tools_.models.update(restored[i].samples));
  }
  restored_trials_ = last_gain_ = trials();
  rng_ = Rng(options_.seed + static_cast<uint64_t>(restored_trials_));
  return summary;
}

}  // namespace pruner
