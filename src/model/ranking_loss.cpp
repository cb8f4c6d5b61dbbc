#include "model/ranking_loss.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

namespace pruner {
namespace {

constexpr double kLeast = 1e-10;  // least ideal DCG, probability, and weighted probability

/// Adds the loss of the programs `order` to `sum`.
void add_group(std::span<const float> scores,
               std::span<const float> labels,
               std::vector<size_t> order,
               RankingLoss& sum) {
  const size_t n = order.size();
  const auto gain = [](float label) { return std::exp2(std::max(double{label}, 0.0)) - 1; };
  std::vector<double> discount(n), gains(n);
  for (size_t p = 0; p < n; ++p) discount[p] = 1 / std::log2(static_cast<double>(p) + 2);

  std::stable_sort(
      order.begin(), order.end(), [&](size_t a, size_t b) { return labels[a] > labels[b]; });
  double ideal = 0;
  for (size_t p = 0; p < n; ++p) ideal += gain(labels[order[p]]) * discount[p];
  ideal = std::max(ideal, kLeast);

  std::stable_sort(
      order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  for (size_t p = 0; p < n; ++p) gains[p] = gain(labels[order[p]]) / ideal;

  const double most = -std::log2(kLeast);
  for (size_t p = 0; p < n; ++p) {
    for (size_t q = 0; q < n; ++q) {
      const size_t better = order[p], worse = order[q];
      if (!(labels[better] > labels[worse])) continue;
      const double weight = std::abs(discount[p] - discount[q]) * std::abs(gains[p] - gains[q]);
      double difference = double{scores[better]} - scores[worse];
      if (std::isnan(difference)) difference = 0;
      const double probability = 1 / (1 + std::exp(-std::clamp(difference, -1e8, 1e8)));
      const double loss = -weight * std::log2(std::max(probability, kLeast));
      sum.loss += std::min(loss, most);
      if (probability < kLeast || loss > most) continue;  // clamped: constant
      const double slope = weight * (1 - probability) / std::numbers::ln2;
      sum.gradient[better] -= static_cast<float>(slope);
      sum.gradient[worse] += static_cast<float>(slope);
    }
  }
}

constexpr double kSteepness = 4;  // how much more pairs of fast programs count; the scores' range
constexpr double kSquares = 0.2;  // weight of the squared differences

/// Adds the loss of every pair of the programs `ids`.
void add_pairs(std::span<const float> scores,
               std::span<const float> labels,
               std::span<const size_t> ids,
               RankingLoss& sum) {
  const double share = 1 / (kSteepness * static_cast<double>(ids.size()));
  for (const size_t a : ids) {
    for (const size_t b : ids) {
      if (!(labels[a] > labels[b])) continue;
      const double weight =
          share * (std::exp2(kSteepness * labels[a]) - std::exp2(kSteepness * labels[b]));
      const double difference = std::clamp(double{scores[a]} - scores[b], -50.0, 50.0);
      const double probability = 1 / (1 + std::exp(-difference));
      sum.loss -= weight * std::log(probability);
      const double slope = weight * (1 - probability);
      sum.gradient[a] -= static_cast<float>(slope);
      sum.gradient[b] += static_cast<float>(slope);
    }
  }
}

/// Adds how far the scores are from a multiple of the labels, but for a constant.
void add_squares(std::span<const float> scores,
                 std::span<const float> labels,
                 std::span<const size_t> ids,
                 RankingLoss& sum) {
  const auto error = [&](size_t i) { return double{scores[i]} - kSteepness * labels[i]; };
  double mean = 0;
  for (const size_t i : ids) mean += error(i) / static_cast<double>(ids.size());
  for (const size_t i : ids) {
    const double rest = error(i) - mean;
    sum.loss += kSquares * rest * rest / 2;
    sum.gradient[i] += static_cast<float>(kSquares * rest);
  }
}

/// The sum over groups of what `add` adds for one.
template <typename Add>
RankingLoss sum_of_groups(std::span<const float> scores,
                          std::span<const int32_t> groups,
                          const Add& add) {
  std::map<int32_t, std::vector<size_t>> members;
  for (size_t i = 0; i < scores.size(); ++i) members[groups.empty() ? 0 : groups[i]].push_back(i);
  RankingLoss sum{.loss = 0, .gradient = std::vector<float>(scores.size())};
  for (auto& [group, order] : members) add(order, sum);
  return sum;
}

}  // namespace

RankingLoss lambda_rank(std::span<const float> scores,
                        std::span<const float> labels,
                        std::span<const int32_t> groups) {
  return sum_of_groups(scores, groups, [&](const std::vector<size_t>& ids, RankingLoss& sum) {
    add_group(scores, labels, ids, sum);
  });
}

RankingLoss pair_loss(std::span<const float> scores,
                      std::span<const float> labels,
                      std::span<const int32_t> groups) {
  return sum_of_groups(scores, groups, [&](const std::vector<size_t>& ids, RankingLoss& sum) {
    add_pairs(scores, labels, ids, sum);
    add_squares(scores, labels, ids, sum);
  });
}

RankingLoss ranking_loss(RankingLossKind kind,
                         std::span<const float> scores,
                         std::span<const float> labels,
                         std::span<const int32_t> groups) {
  return kind == RankingLossKind::kPairs ? pair_loss(scores, labels, groups)
                                         : lambda_rank(scores, labels, groups);
}

}  // namespace pruner
