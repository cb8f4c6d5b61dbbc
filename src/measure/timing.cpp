#include "measure/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace pruner {

namespace {

constexpr int kFirstCalls = 4;
constexpr size_t kFewRepeats = 3;   // enough to be content with at a noisy moment
constexpr size_t kSomeRepeats = 5;  // enough if they agree
constexpr double kAgree = 0.02;

bool agree(const std::vector<double>& costs_s) {
  const double fastest = *std::min_element(costs_s.begin(), costs_s.end());
  return typical(costs_s) - fastest < kAgree * fastest;
}

}  // namespace

double typical(std::vector<double> costs_s) {
  const auto quartile = costs_s.begin() + static_cast<int64_t>(costs_s.size() / 4);
  std::nth_element(costs_s.begin(), quartile, costs_s.end());
  return *quartile;
}

Timing time_repeats(const std::function<Repeat(int64_t)>& repeat, const TimingRules& rules) {
  const auto start = std::chrono::steady_clock::now();
  const auto in_budget = [&] {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return elapsed.count() < rules.budget_s;
  };
  // The better of two, as one may have been disturbed; of a few if both are known to have been.
  double estimate = repeat(1).cost_s;
  bool disturbed = true;
  for (int i = 1; i < kFirstCalls && disturbed && in_budget(); ++i) {
    const Repeat r = repeat(1);
    estimate = std::min(estimate, r.cost_s);
    disturbed = r.disturbed;
  }
  if (estimate > rules.cut_off_s) return {{estimate}, true, disturbed};

  const double calls = std::ceil(rules.min_repeat_s / std::max(estimate, 1e-9));
  const size_t max_repeats = static_cast<size_t>(std::max(1, rules.max_repeats));
  std::vector<double> quiet, all = {estimate};
  while (quiet.size() < max_repeats && all.size() < 3 * max_repeats && in_budget()) {
    const Repeat r = repeat(static_cast<int64_t>(calls));
    all.push_back(r.cost_s);
    if (r.disturbed) continue;
    quiet.push_back(r.cost_s);
    const bool near = typical(quiet) < rules.near_s;
    if (!near && quiet.size() >= kSomeRepeats && agree(quiet)) break;
  }
  if (quiet.size() >= kFewRepeats) return {std::move(quiet)};
  std::sort(all.begin(), all.end());
  all.resize((all.size() + 3) / 4);
  return {std::move(all), false, true};
}

}  // namespace pruner
