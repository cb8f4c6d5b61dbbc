#include "dataset/draft_fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/draft.h"
#include "support/parallel_for.h"

namespace pruner {

namespace {

constexpr double kSoftness = 0.05;    // of ln drafted: programs so close are chosen alike
constexpr double kErrorShare = 0.25;  // of the error in the loss, beside the time lost
constexpr double kMostMoved = 8;      // the factor that a number is moved by, at most
constexpr int kLeastRounds = 4, kMostRounds = 12;  // over all numbers

std::vector<double> drafted(const DraftedTask& task, const Target& target) {
  std::vector<double> seconds;
  seconds.reserve(task.nests.size());
  for (const LoopNest& nest : task.nests) seconds.push_back(draft_latency_s(nest, target));
  return seconds;
}

double best_of(const DraftedTask& task) { return *std::ranges::min_element(task.seconds); }

/// The loss of one task (draft_fit.h).
double task_loss(const DraftedTask& task, const Target& target) {
  const std::vector<double> drafts = drafted(task, target);
  const double best = best_of(task), first = *std::ranges::min_element(drafts);
  double chosen = 0, lost = 0;
  double weights = 0, mean = 0, square = 0;
  for (size_t i = 0; i < drafts.size(); ++i) {
    const double likely = std::pow(first / drafts[i], 1 / kSoftness);
    chosen += likely;
    lost += likely * std::log(task.seconds[i] / best);
    const double error = std::log(drafts[i] / task.seconds[i]);
    const double weight = (best / task.seconds[i]) * (best / task.seconds[i]);
    weights += weight;
    mean += weight * error;
    square += weight * error * error;
  }
  mean /= weights;
  const double deviation = std::sqrt(std::max(0.0, square / weights - mean * mean));
  return lost / chosen + kErrorShare * deviation;
}

/// Of all tasks on average, and what moving the numbers costs.
class Loss {
 public:
  Loss(std::span<const DraftedTask> tasks, double stiffness, int jobs)
      : tasks_(tasks), stiffness_(stiffness), jobs_(jobs), of_(tasks.size()) {}

  double operator()(const DraftFactors& factors) {
    parallel_for(static_cast<int64_t>(tasks_.size()), jobs_, [&](int64_t i) {
      of_[i] = task_loss(tasks_[i], scaled(tasks_[i].target, factors));
    });
    double sum = 0, moved = 0;
    for (const double loss : of_) sum += loss;
    for (const double factor : factors) moved += std::log(factor) * std::log(factor);
    return sum / static_cast<double>(tasks_.size()) + stiffness_ * moved;
  }

 private:
  std::span<const DraftedTask> tasks_;
  double stiffness_;
  int jobs_;
  std::vector<double> of_;
};

constexpr DraftNumber kRates[] = {
    {"loads_per_cycle", &Target::loads_per_cycle, nullptr, 16},
    {"peak_flops", &Target::peak_flops, nullptr, 1e18},
    {"l2_bandwidth", &Target::l2_bandwidth, nullptr, 1e18},
    {"l3_bandwidth", &Target::l3_bandwidth, nullptr, 1e18},
    {"dram_bandwidth", &Target::dram_bandwidth, nullptr, 1e18},
    {"launch_s", &Target::launch_s, nullptr, 1},
};

}  // namespace

std::span<const DraftNumber> draft_numbers() {
  static const std::vector<DraftNumber> numbers = [] {
    std::vector<DraftNumber> made(std::begin(kRates), std::end(kRates));
    for (const CpuModelRow& row : kCpuModelRows) {
      if (row.fitted) made.push_back({row.name, nullptr, row.field, row.most});
    }
    return made;
  }();
  return numbers;
}

Target scaled(Target target, const DraftFactors& factors) {
  const std::span<const DraftNumber> numbers = draft_numbers();
  for (size_t i = 0; i < numbers.size(); ++i) {
    double& number = numbers[i].of(target);
    number = std::min(number * factors[i], numbers[i].most);
  }
  return target;
}

/// draft_quality() with the numbers of `target`.
static DraftQuality quality_with(const DraftedTask& task, const Target& target) {
  const std::vector<double> drafts = drafted(task, target);
  const size_t n = drafts.size();
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return drafts[i]; });
  const double best = best_of(task);
  DraftQuality quality;
  const size_t ten = std::min<size_t>(n, 10);
  double least = task.seconds[order[0]];
  quality.best_1 = best / least;
  for (size_t k = 0; k < ten; ++k) least = std::min(least, task.seconds[order[k]]);
  quality.best_10 = best / least;
  // The least of ten draws without replacement is the i-th fastest with the chance that it is drawn
  // and none of the i faster ones.
  std::vector<double> times = task.seconds;
  std::ranges::sort(times);
  quality.random_10 = 0;
  double none_before = 1;  // that none of the first i is drawn
  for (size_t i = 0; i + ten <= n; ++i) {
    const double drawn = static_cast<double>(ten) / static_cast<double>(n - i);
    quality.random_10 += none_before * drawn * best / times[i];
    none_before *= 1 - drawn;
  }
  int64_t right = 0, all = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      if (task.seconds[i] == task.seconds[j]) continue;
      ++all;
      right += (task.seconds[i] < task.seconds[j]) == (drafts[i] < drafts[j]);
    }
  }
  quality.pairwise = all > 0 ? static_cast<double>(right) / static_cast<double>(all) : 1;
  return quality;
}

DraftQuality draft_quality(const DraftedTask& task) { return quality_with(task, task.target); }

WrongNumber wrong_number(const DraftedTask& task) {
  constexpr double kAlike = 0.005;  // choices whose best of 1 differs by less
  WrongNumber wrong{"", 1, draft_quality(task).best_1};
  double least = task_loss(task, task.target);
  const std::span<const DraftNumber> numbers = draft_numbers();
  for (size_t i = 0; i < numbers.size(); ++i) {
    for (const double factor : {0.25, 0.5, 0.7, 1.4, 2.0, 4.0}) {
      DraftFactors factors(numbers.size(), 1);
      factors[i] = factor;
      const Target changed = scaled(task.target, factors);
      const double best_1 = quality_with(task, changed).best_1;
      const double loss = task_loss(task, changed);
      const bool alike = !wrong.name.empty() && best_1 > wrong.best_1 - kAlike && loss < least;
      if (best_1 < wrong.best_1 + kAlike && !alike) continue;
      least = loss;
      wrong = {numbers[i].name, factor, best_1};
    }
  }
  return wrong;
}

DraftFit fit_draft(std::span<const DraftedTask> tasks, double stiffness, int jobs) {
  const size_t n = draft_numbers().size();
  Loss loss(tasks, stiffness, jobs);
  DraftFit fit{DraftFactors(n, 1)};
  fit.loss = fit.loss_before = loss(fit.factors);
  std::vector<double> steps(n, 2.0);  // the factor tried for each
  for (int round = 0; round < kMostRounds; ++round) {
    const double before = fit.loss;
    for (size_t i = 0; i < n; ++i) {
      bool moved = false;
      for (const double step : {steps[i], 1 / steps[i]}) {
        DraftFactors changed = fit.factors;
        changed[i] = std::clamp(changed[i] * step, 1 / kMostMoved, kMostMoved);
        const double now = loss(changed);
        if (now >= fit.loss) continue;
        fit.loss = now;
        fit.factors = std::move(changed);
        moved = true;
        break;
      }
      if (!moved) steps[i] = std::sqrt(steps[i]);
    }
    if (round > kLeastRounds && before - fit.loss < 1e-4 * before) break;
  }
  return fit;
}

}  // namespace pruner
