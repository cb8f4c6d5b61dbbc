// Winograd's minimal filtering F(m x m, 3 x 3): the matrices, and the transform of a weight.
//   Y = A^T [ (G g G^T) . (B^T d B) ] A
// for a tile of (m+2) x (m+2) data d, a 3 x 3 kernel g and m x m outputs Y (Lavin and Gray, "Fast
// Algorithms for Convolutional Neural Networks", 2015). It multiplies (m+2)^2 times where the
// direct form multiplies 9 m^2 times: 2.25 times less for m = 2, 4 times for m = 4.
#pragma once

#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace pruner {

/// Rows of numbers.
using Matrix = std::vector<std::vector<double>>;

struct Winograd {
  int tile;       // m: 2 or 4 outputs a dimension
  int points;     // m + 2
  Matrix data;    // B^T: points x points
  Matrix kernel;  // G: points x 3
  Matrix output;  // A^T: m x points
  /// Bound of an output's error in fp32, over the largest sum of |d| |g| of any output. Measured,
  /// with a margin: compiled kernels of 8 to 2048 input channels against double precision came
  /// to 2.7e-6 (m = 2) and 3.7e-6 (m = 4), the direct form to 8.6e-6. That is with positive
  /// numbers, where it grows with the root of the channels; with normal ones 9e-8, 2.1e-6
  /// and 2.2e-7, however many.
  double error;
};

/// The transforms for tiles of `m` = 2 or 4.
const Winograd& winograd(int m);

/// The shape of winograd_weight().
std::vector<int64_t> winograd_shape(std::span<const int64_t> weight, int m);

/// G g G^T of every channel pair: [3, 3, ci, co] -> [(m+2)^2, ci, co], float32 whatever the
/// weight is.
Tensor winograd_weight(const Tensor& weight, int m);

}  // namespace pruner
