// The statistics of a comparison: medians with bootstrap intervals, and a paired test. Infinity is
// a value: the effort of a run that never reached its goal. Nothing here draws without a seed of
// its own, so equal values give equal results.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/json.h"

namespace pruner {

/// A median with its 95 % interval.
struct Estimate {
  double median = 0, low = 0, high = 0;

  bool holds(double value) const { return low <= value && value <= high; }
};

/// Returns the median: the mean of the middle two if the number of values is even. There is at
/// least one value.
double median(std::vector<double> values);

/// Returns the median with its percentile-bootstrap interval; nullopt if there is no value. The
/// bootstrap is exact: it weighs every resample, so nothing is drawn.
std::optional<Estimate> estimate_median(std::vector<double> values);

/// Returns the median of all values of all groups; nullopt if there is none. The interval is that
/// of a two-level bootstrap: each resample draws groups, and then values within each drawn group.
std::optional<Estimate> estimate_median(const std::vector<std::vector<double>>& groups);

/// Returns the two-sided p of the Wilcoxon signed-rank test that the logarithms of ratios are
/// symmetric around 0. The p is exact; ratios of 1 do not count, and equal ranks share their mean.
double signed_rank_p(std::span<const double> ratios);

/// Returns a / b for the efforts of one pair of runs. Two runs that never reached their goal are
/// equal.
double paired_ratio(double a, double b);

/// Prints "12", "12 (10 to never)" or "never": values over `unit`, the interval if it is wider than
/// its median.
std::string print(const Estimate& estimate, int digits, double unit = 1);
/// {"median","low","high"}, or null; null stands for infinity, too.
Json to_json(const std::optional<Estimate>& estimate);

}  // namespace pruner
