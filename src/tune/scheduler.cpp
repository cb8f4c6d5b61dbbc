#include "tune/scheduler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pruner {

namespace {

constexpr double kAlpha = 0.2;
constexpr double kBeta = 2;
constexpr int kBackwardWindow = 3;

bool same_group(const ScheduledTask& a, const ScheduledTask& b) {
  return !a.tag.empty() && a.tag == b.tag;
}

/// The mean gain of the last kBackwardWindow rounds.
double backward_s(const ScheduledTask& task) {
  const size_t n = static_cast<size_t>(task.rounds);
  if (n <= kBackwardWindow || n > task.history.size()) return 0;
  return (task.history[n - 1] - task.history[n - 1 - kBackwardWindow]) / kBackwardWindow;
}

}  // namespace

double Scheduler::group_best_flops_per_s(size_t task) const {
  double best = 0;
  int members = 0;
  for (const ScheduledTask& other : tasks_) {
    if (!same_group(other, tasks_[task])) continue;
    ++members;
    best = std::max(best, other.flops / other.best_s);
  }
  return members > 1 ? best : 0;
}

double Scheduler::gradient(size_t task) const {
  const ScheduledTask& t = tasks_[task];
  if (t.dead) return 0;
  const double by_rounds_s = t.best_s - t.best_s / std::max(t.rounds, 1);
  const double group_rate = group_best_flops_per_s(task);
  const double by_group_s =
      group_rate > 0 ? kBeta * t.flops / group_rate : std::numeric_limits<double>::infinity();
  const double forward_s = std::min(by_rounds_s, by_group_s) - t.best_s;
  return std::min(0.0, t.weight * (kAlpha * backward_s(t) + (1 - kAlpha) * forward_s));
}

std::optional<size_t> Scheduler::next(Rng& rng, std::span<const size_t> busy) const {
  std::vector<size_t> alive;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (!tasks_[i].dead && std::ranges::find(busy, i) == busy.end()) alive.push_back(i);
  }
  if (alive.empty()) return std::nullopt;
  const auto [least, most] =
      std::ranges::minmax_element(alive, {}, [&](size_t i) { return gradient(i); });
  if (gradient(*least) == gradient(*most)) {
    return alive[static_cast<size_t>(rng.below(static_cast<int64_t>(alive.size())))];
  }
  return *least;
}

void Scheduler::finish_round(size_t task, double best_s) {
  ScheduledTask& t = tasks_[task];
  ++t.rounds;
  t.best_s = best_s;
  t.history.push_back(best_s);
  leave_slow_group(task);
}

// A task that stays far behind its group although it had more rounds is not like the others.
void Scheduler::leave_slow_group(size_t task) {
  ScheduledTask& t = tasks_[task];
  int others_rounds = 0;
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (i != task && same_group(tasks_[i], t))
      others_rounds = std::max(others_rounds, tasks_[i].rounds);
  }
  const double rate = t.flops / t.best_s;
  if (rate < group_best_flops_per_s(task) / kBeta && t.rounds > 5 + others_rounds) t.tag.clear();
}

double Scheduler::objective_s() const {
  double sum = 0;
  for (const ScheduledTask& t : tasks_) sum += t.weight * t.best_s;
  return sum;
}

bool Scheduler::all_valid() const {
  return std::ranges::all_of(tasks_, [](const ScheduledTask& t) { return t.best_s < kWorstCost; });
}

std::string similarity_tag(const std::vector<std::string>& operator_tags, double flops) {
  if (operator_tags.empty()) return "";
  std::string tag;
  for (const std::string& t : operator_tags) tag += t + "_";
  return tag + std::to_string(static_cast<int>(std::log(flops + 1) / std::log(1.618)));
}

int64_t round_size(int64_t requested, int64_t trials, int64_t tasks) {
  return std::max<int64_t>(1, std::min(requested, trials / std::max<int64_t>(tasks, 1)));
}

int64_t trials_of_a_round_each(int64_t requested, int64_t trials, size_t tasks) {
  const auto count = static_cast<int64_t>(tasks);
  return count * round_size(requested, trials, count);
}

}  // namespace pruner
