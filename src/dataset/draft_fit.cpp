#include "dataset/draft_fit.h"

#include <algorithm>
#include <cmath>

#include "analysis/draft.h"
#include "model/metrics.h"
#include "support/parallel_for.h"

namespace pruner {

namespace {

constexpr double kSoftness = 0.05;    // programs whose ln drafted are so close are chosen alike
constexpr double kErrorShare = 0.25;  // weight of the error in the loss, beside the lost time
constexpr double kMostMoved = 8;      // the factor that a number is moved by, at most
constexpr int kLeastRounds = 4, kMostRounds = 12;  // rounds over all numbers

std::vector<double> drafted(const DraftedTask& task, const Target& target) {
  std::vector<double> seconds;
  seconds.reserve(task.nests.size());
  for (const LoopNest& nest : task.nests) seconds.push_back(draft_latency_s(nest, target));
  return seconds;
}

double best_of(const DraftedTask& task) { return *std::ranges::min_element(task.seconds); }

/// Returns the best time over the time of the program that is drafted fastest.
double first_choice(const DraftedTask& task, const std::vector<double>& drafts) {
  return best_of(task) / task.seconds[std::ranges::min_element(drafts) - drafts.begin()];
}

/// Returns the loss of one task (draft_fit.h).
double task_loss(const DraftedTask& task, const std::vector<double>& drafts) {
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

/// `Loss` is the mean loss of all tasks, plus the cost of moving the numbers.
class Loss {
 public:
  Loss(std::span<const DraftedTask> tasks, double stiffness, int jobs)
      : tasks_(tasks), stiffness_(stiffness), jobs_(jobs), of_(tasks.size()) {}

  double operator()(const DraftFactors& factors) {
    parallel_for(static_cast<int64_t>(tasks_.size()), jobs_, [&](int64_t i) {
      const Target target = scaled(tasks_[i].target, factors);
      of_[i] = task_loss(tasks_[i], drafted(tasks_[i], target));
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

DraftQuality draft_quality(const DraftedTask& task) {
  const std::vector<double> drafts = drafted(task, task.target);
  const size_t n = drafts.size();
  const double best = best_of(task);
  std::vector<float> scores, labels;
  for (size_t i = 0; i < n; ++i) {
    scores.push_back(static_cast<float>(1 / drafts[i]));
    labels.push_back(static_cast<float>(best / task.seconds[i]));
  }
  constexpr int64_t kKept = 10;
  const TaskMetrics metrics = task_metrics(scores, labels, task.seconds, kKept);
  DraftQuality quality{.best_1 = best / metrics.top_s[0],
                       .best_10 = best / metrics.best_k_s[0],
                       .random_10 = metrics.random_best_k[0]};
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

WrongNumber wrong_number(const DraftedTask& task) {
  constexpr double kAlike = 0.005;  // choices whose best of 1 differs by less
  const std::vector<double> usual = drafted(task, task.target);
  WrongNumber wrong{"", 1, first_choice(task, usual)};
  double least = task_loss(task, usual);
  const std::span<const DraftNumber> numbers = draft_numbers();
  for (size_t i = 0; i < numbers.size(); ++i) {
    for (const double factor : {0.25, 0.5, 0.7, 1.4, 2.0, 4.0}) {
      DraftFactors factors(numbers.size(), 1);
      factors[i] = factor;
      const std::vector<double> drafts = drafted(task, scaled(task.target, factors));
      const double best_1 = first_choice(task, drafts), loss = task_loss(task, drafts);
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
