#include "model/stacking.h"

#include <algorithm>
#include <cmath>

namespace pruner {

namespace {

// `kPrior` is the trust that the draft alone is right, in measured programs.
constexpr double kPrior = 4;
// `kKept` is the share of the earlier sums that a round keeps, as the learned model changes.
constexpr double kKept = 0.95;

void centre(std::vector<double>& values) {
  double mean = 0;
  for (const double x : values) mean += x / static_cast<double>(values.size());
  for (double& x : values) x -= mean;
}

}  // namespace

// Adds the round to the sums, each quantity less its mean, and solves for the weights.
void Stacking::weigh(std::span<const float> drafted,
                     std::span<const float> learned,
                     std::span<const double> times_s) {
  if (times_s.size() < 2) return;
  std::vector<double> d, m, y;
  for (size_t i = 0; i < times_s.size(); ++i) {
    d.push_back(std::log(static_cast<double>(drafted[i])));
    m.push_back(static_cast<double>(learned[i]));
    y.push_back(-std::log(times_s[i]));
  }
  for (std::vector<double>* values : {&d, &m, &y}) centre(*values);
  for (double* sum : {&dd_, &dm_, &mm_, &dy_, &my_, &n_}) *sum *= kKept;
  for (size_t i = 0; i < d.size(); ++i) {
    dd_ += d[i] * d[i];
    dm_ += d[i] * m[i];
    mm_ += m[i] * m[i];
    dy_ += d[i] * y[i];
    my_ += m[i] * y[i];
    n_ += 1;
  }
  // Ridge towards (1, prior), in units of each quantity's variance.
  const double dd = dd_ + kPrior * dd_ / n_ + 1e-9, mm = mm_ + kPrior * mm_ / n_ + 1e-9;
  const double dy = dy_ + kPrior * dd_ / n_ + 1e-9;
  const double my = my_ + prior_ * (kPrior * mm_ / n_ + 1e-9);
  const double determinant = dd * mm - dm_ * dm_;
  if (determinant <= 1e-12 * dd * mm) return;
  of_draft_ = std::max(0.0, (dy * mm - dm_ * my) / determinant);
  of_learned_ = std::max(0.0, (dd * my - dm_ * dy) / determinant);
  if (of_draft_ == 0 && of_learned_ == 0) of_draft_ = 1;
}

float Stacking::score(float drafted, float learned) const {
  return static_cast<float>(of_draft_ * std::log(static_cast<double>(drafted)) +
                            of_learned_ * static_cast<double>(learned));
}

}  // namespace pruner
