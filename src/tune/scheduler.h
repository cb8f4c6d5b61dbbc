// Chooses the task to tune next: Ansor's gradient task scheduler (section 6, and its
// task_scheduler.py). The objective is the sum of weight x best time over the tasks.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "search/history.h"
#include "support/rng.h"

namespace pruner {

/// Holds the scheduler's view of a task.
struct ScheduledTask {
  double weight = 1;
  double flops = 0;
  std::string tag;  // tag of its similarity group; empty: it has none
  double best_s = kWorstCost;
  std::vector<double> history = {};  // best_s after each round
  int rounds = 0;
  bool dead = false;  // the task has nothing more to gain
};

class Scheduler {
 public:
  explicit Scheduler(std::vector<ScheduledTask> tasks) : tasks_(std::move(tasks)) {}

  const ScheduledTask& operator[](size_t task) const { return tasks_[task]; }
  size_t size() const { return tasks_.size(); }
  /// Returns the most promising task: argmin of gradient(), but for those in `busy`; nullopt if
  /// there is none.
  std::optional<size_t> next(Rng& rng, std::span<const size_t> busy = {}) const;
  /// Records a round of `task` that left its best time at best_s.
  void finish_round(size_t task, double best_s);
  /// Takes a better knowledge of a task's best time, outside of its rounds.
  void correct(size_t task, double best_s) { tasks_[task].best_s = best_s; }
  void mark_dead(size_t task) { tasks_[task].dead = true; }
  /// Returns the expected change of the objective (<= 0) for one more round of the task.
  double gradient(size_t task) const;
  /// Returns the sum of weight x best time.
  double objective_s() const;
  bool all_valid() const;

 private:
  void leave_slow_group(size_t task);
  double group_best_flops_per_s(size_t task) const;
  std::vector<ScheduledTask> tasks_;
};

/// Returns the tag of similar tasks: the operators' tags, and the order of magnitude (base
/// 1.618) of the work.
std::string similarity_tag(const std::vector<std::string>& operator_tags, double flops);

/// Returns the trials of a round: as requested, but such that every task can have a round.
int64_t round_size(int64_t requested, int64_t trials, int64_t tasks);
/// Returns the trials of one round of each task, which published boosted trees wait for.
int64_t trials_of_a_round_each(int64_t requested, int64_t trials, size_t tasks);

}  // namespace pruner
