#include "search/doubt.h"

#include <algorithm>
#include <cmath>

namespace pruner {

namespace {

// Deviations of ln(speed) of a sketch as a whole, of a candidate in a sketch, and of a measured
// time. The values follow the residuals of the draft on operators that the draft was not fitted on
// (bench/draft_transfer.py).
constexpr double kOfSketch = 0.1, kOfCandidate = 0.2, kOfTime = 0.05;
// The correlation of two candidates' errors falls to 1/e when so many of their decisions differ.
constexpr double kDecisions = 2;
// The fastest trials that count; candidates next to slow trials are not chosen anyway.
constexpr size_t kMostTrials = 192;

double covariance(const Candidate& a, const Candidate& b) {
  if (a.sketch != b.sketch) return 0;
  const double near = std::exp(-differing_decisions(a.decisions, b.decisions) / kDecisions);
  return kOfSketch * kOfSketch + kOfCandidate * kOfCandidate * near;
}

/// Draws a nearly normal number of mean 0 and deviation 1, the same on every machine.
double draw_normal(Rng& rng) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += rng.uniform();
  return sum;
}

}  // namespace

// A Gaussian process: with the trials in front of the candidates, the last rows of the covariance's
// Cholesky factor are what is left of the candidates' deviations when the trials are known.
Doubt::Doubt(std::span<const Candidate> candidates, const History& history)
    : count_(candidates.size()) {
  std::vector<const Candidate*> all;
  const std::vector<Trial> trials = history.best(kMostTrials);
  for (const Trial& trial : trials) all.push_back(&trial.candidate);
  for (const Candidate& candidate : candidates) all.push_back(&candidate);
  const size_t n = all.size(), known = trials.size();
  std::vector<double> lower(n * n);
  for (size_t i = 0; i < n; ++i) {
    double* const row = &lower[i * n];
    for (size_t j = 0; j <= i; ++j) {
      const double* const other = &lower[j * n];
      double left = covariance(*all[i], *all[j]);
      if (i == j && i < known) left += kOfTime * kOfTime;
      for (size_t k = 0; k < j; ++k) left -= row[k] * other[k];
      constexpr double kLeast = 1e-9;  // variance left between equal candidates
      row[j] = i == j ? std::sqrt(std::max(left, kLeast)) : left / other[j];
    }
  }
  factor_.resize(count_ * count_);
  for (size_t i = 0; i < count_; ++i)
    for (size_t j = 0; j <= i; ++j) factor_[i * count_ + j] = lower[(known + i) * n + known + j];
}

std::vector<double> Doubt::draw(Rng& rng) const {
  std::vector<double> normals(count_), deviations(count_);
  for (double& normal : normals) normal = draw_normal(rng);
  for (size_t i = 0; i < count_; ++i)
    for (size_t j = 0; j <= i; ++j) deviations[i] += factor_[i * count_ + j] * normals[j];
  return deviations;
}

}  // namespace pruner
