#include "measure/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace pruner {

namespace {

constexpr int kMinRepeats = 5;
constexpr double kStable = 0.02;

// Repeats that agree: half of them lie within 2 % of the fastest.
bool is_stable(const std::vector<double>& costs_s) {
  const double fastest = *std::min_element(costs_s.begin(), costs_s.end());
  return static_cast<int>(costs_s.size()) >= kMinRepeats &&
         typical(costs_s) - fastest < kStable * fastest;
}

}  // namespace

double typical(std::vector<double> costs_s) {
  const auto middle = costs_s.begin() + static_cast<int64_t>(costs_s.size() / 2);
  std::nth_element(costs_s.begin(), middle, costs_s.end());
  if (costs_s.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(costs_s.begin(), middle)) / 2;
}

Timing time_repeats(const std::function<double(int64_t)>& average_s, const TimingRules& rules) {
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed_s = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  // The better of two: one alone may have been interrupted.
  const double first = average_s(1);
  const double estimate = elapsed_s() < rules.budget_s ? std::min(first, average_s(1)) : first;
  if (estimate > rules.cut_off_s) return {{estimate}, true};
  if (elapsed_s() > rules.budget_s) return {{estimate}, false};

  const double calls = std::ceil(rules.min_repeat_s / std::max(estimate, 1e-9));
  Timing timing;
  do {
    timing.costs_s.push_back(average_s(std::max<int64_t>(1, static_cast<int64_t>(calls))));
    const bool near = typical(timing.costs_s) < rules.near_s;
    if (!near && is_stable(timing.costs_s)) break;
  } while (static_cast<int>(timing.costs_s.size()) < rules.max_repeats &&
           elapsed_s() < rules.budget_s);
  return timing;
}

}  // namespace pruner
