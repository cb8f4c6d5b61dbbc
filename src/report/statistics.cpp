#include "report/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/rng.h"

namespace pruner {

namespace {

constexpr double kTail = 0.025;      // probability beyond each end of an interval
constexpr int kResamples = 4000;     // resamples of a two-level bootstrap
constexpr double kRounding = 1e-12;  // error of summed probabilities

/// A value of a resample's median, with its probability or its count.
struct Weighted {
  double value, weight;
};

/// Returns the 2.5 % and the 97.5 % quantile around a median.
Estimate interval(double median, std::vector<Weighted> medians) {
  std::ranges::sort(medians, {}, &Weighted::value);
  double all = 0;
  for (const Weighted& m : medians) all += m.weight;
  const auto quantile = [&](double share) {
    double sum = 0;
    for (const Weighted& m : medians) {
      sum += m.weight;
      if (sum >= (share - kRounding) * all) return m.value;
    }
    return medians.back().value;
  };
  return {median, quantile(kTail), quantile(1 - kTail)};
}

double binomial(int n, int k) {
  double product = 1;
  for (int i = 1; i <= k; ++i) product *= static_cast<double>(n - k + i) / i;
  return product;
}

/// The order statistics of a resample of n values with replacement, as ranks from 1 to n.
struct Resample {
  int n;

  double share(int ranks) const { return static_cast<double>(ranks) / n; }
  /// Returns the probability that the m-th smallest has at most the rank.
  double at_most(int m, int rank) const {
    double sum = 0;
    for (int k = m; k <= n; ++k)
      sum += binomial(n, k) * std::pow(share(rank), k) * std::pow(1 - share(rank), n - k);
    return sum;
  }
  /// Returns the probability that the m-th smallest has the rank.
  double exactly(int m, int rank) const { return at_most(m, rank) - at_most(m, rank - 1); }
  /// Returns the probability that the m-th smallest and the next have two ranks, the first lower.
  double both(int m, int first, int second) const {
    const double lower = std::pow(share(first), m) - std::pow(share(first - 1), m);
    const double upper =
        std::pow(share(n + 1 - second), n - m) - std::pow(share(n - second), n - m);
    return binomial(n, m) * lower * upper;
  }
};

}  // namespace

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

std::optional<Estimate> estimate_median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const Resample resample{static_cast<int>(values.size())};
  const int n = resample.n, middle = (n + 1) / 2;
  std::vector<Weighted> medians;
  for (int i = 1; i <= n; ++i) {
    const double value = values[static_cast<size_t>(i - 1)];
    double left = resample.exactly(middle, i);
    for (int j = i + 1; n % 2 == 0 && j <= n; ++j) {
      const double of_both = resample.both(middle, i, j);
      medians.push_back({(value + values[static_cast<size_t>(j - 1)]) / 2, of_both});
      left -= of_both;
    }
    medians.push_back({value, left});
  }
  return interval(median(values), std::move(medians));
}

std::optional<Estimate> estimate_median(const std::vector<std::vector<double>>& groups) {
  std::vector<std::vector<double>> filled;
  std::vector<double> all;
  for (const std::vector<double>& group : groups) {
    if (!group.empty()) filled.push_back(group);
    all.insert(all.end(), group.begin(), group.end());
  }
  if (filled.size() < 2) return estimate_median(std::move(all));
  Rng rng(0);
  const auto draw = [&rng](const auto& from) -> const auto& {
    return from[static_cast<size_t>(rng.below(std::ssize(from)))];
  };
  std::vector<Weighted> medians;
  for (int i = 0; i < kResamples; ++i) {
    std::vector<double> resample;
    for (size_t g = 0; g < filled.size(); ++g) {
      const std::vector<double>& group = draw(filled);
      for (size_t v = 0; v < group.size(); ++v) resample.push_back(draw(group));
    }
    medians.push_back({median(std::move(resample)), 1});
  }
  return interval(median(std::move(all)), std::move(medians));
}

double signed_rank_p(std::span<const double> ratios) {
  struct Difference {
    double size;
    bool positive;
  };
  std::vector<Difference> differences;
  for (const double ratio : ratios)
    if (ratio != 1) differences.push_back({std::abs(std::log(ratio)), ratio > 1});
  std::ranges::sort(differences, {}, &Difference::size);
  const size_t n = differences.size();
  // Ranks are doubled, so that the mean of equal ranks is an integer.
  std::vector<size_t> ranks(n);
  for (size_t first = 0, end = 0; first < n; first = end) {
    while (end < n && differences[end].size == differences[first].size) ++end;
    for (size_t i = first; i < end; ++i) ranks[i] = first + end + 1;
  }
  size_t most = 0, positive = 0;
  for (size_t i = 0; i < n; ++i) {
    most += ranks[i];
    if (differences[i].positive) positive += ranks[i];
  }
  // The probability of each sum of ranks, if every sign is a toss of a coin.
  std::vector<double> probability(most + 1);
  probability[0] = 1;
  for (const size_t rank : ranks) {
    for (size_t sum = most + 1; sum-- > 0;)
      probability[sum] = (probability[sum] + (sum >= rank ? probability[sum - rank] : 0)) / 2;
  }
  const size_t tail = std::min(positive, most - positive);
  double p = 0;
  for (size_t sum = 0; sum <= tail; ++sum) p += 2 * probability[sum];
  return std::min(1.0, p);
}

double paired_ratio(double a, double b) { return std::isinf(a) && std::isinf(b) ? 1 : a / b; }

std::string print(const Estimate& estimate, int digits, double unit) {
  const auto number = [&](double value) {
    return std::isinf(value) ? "never" : fmt::format("{:.{}f}", value / unit, digits);
  };
  if (estimate.low == estimate.high) return number(estimate.median);
  return fmt::format(
      "{} ({} to {})", number(estimate.median), number(estimate.low), number(estimate.high));
}

Json to_json(const std::optional<Estimate>& estimate) {
  if (!estimate) return {};
  const auto number = [](double value) { return std::isinf(value) ? Json() : Json(value); };
  return {{"median", number(estimate->median)},
          {"low", number(estimate->low)},
          {"high", number(estimate->high)}};
}

}  // namespace pruner
