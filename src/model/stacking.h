// How much the draft and a learned model are each worth: the logarithm of the measured time is
// regressed on what both foretold of a batch, before either learned of it (stacked generalisation,
// Wolpert 1992), starting from the draft alone.
#pragma once

#include <span>
#include <vector>

namespace pruner {

class Stacking {
 public:
  /// `of_learned`: what the learned model's scores are worth beside the logarithm of the draft's,
  /// before anything was measured.
  explicit Stacking(double of_learned = 0) : prior_(of_learned), of_learned_(of_learned) {}

  /// Learns of programs of one task: the draft's scores (above 0), the learned model's, and the
  /// seconds that they took.
  void weigh(std::span<const float> drafted,
             std::span<const float> learned,
             std::span<const double> times_s);
  /// A score for both of a program's scores.
  float score(float drafted, float learned) const;

 private:
  double prior_;
  double of_draft_ = 1, of_learned_;
  double dd_ = 0, dm_ = 0, mm_ = 0, dy_ = 0, my_ = 0, n_ = 0;  // weighted sums
};

}  // namespace pruner
