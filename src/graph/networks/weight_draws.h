// The draws of a built-in network's weights, kept from one import to the next: the network at
// another shape draws equal weights, and takes the tensors that are there. What is drawn is the
// same, bit for bit, with and without the draws that are kept.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "support/rng.h"
#include "tensor/tensor.h"

namespace pruner {

/// A uniform distribution.
struct Uniform {
  double mean = 0;
  double spread = 0;  // the greatest distance from the mean
  friend auto operator<=>(const Uniform&, const Uniform&) = default;
};

/// Returns a tensor of float32 that `rng` draws.
Tensor draw(Rng& rng, std::vector<int64_t> shape, const Uniform& from);

/// Draws that are kept. Several threads may draw at once.
class WeightDraws {
 public:
  /// Returns what pruner::draw() would and leaves `rng` as that does. The tensor is a view: its
  /// elements belong to all who drew them.
  Tensor draw(Rng& rng, std::vector<int64_t> shape, const Uniform& from);

 private:
  struct Key {
    Rng rng;  // before the draw
    int64_t elements;
    Uniform from;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Drawn {
    Tensor tensor;
    Rng rng;  // after the draw
  };

  std::mutex mutex_;
  std::map<Key, Drawn> drawn_;
  int64_t bytes_ = 0;
};

}  // namespace pruner
