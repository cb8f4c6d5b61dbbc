#include "tensor/winograd.h"

#include "support/check.h"
#include "tensor/pack.h"

namespace pruner {

const Winograd& winograd(int m) {
  // m, m + 2, B^T, G, A^T of Lavin and Gray, and the bound of the error.
  static const Winograd two = {2,
                               4,
                               {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
                               {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}},
                               {{1, 1, 1, 0}, {0, 1, -1, -1}},
                               5e-6};
  static const Winograd four = {
      4,
      6,
      {{4, 0, -5, 0, 1, 0},
       {0, -4, -4, 1, 1, 0},
       {0, 4, -4, -1, 1, 0},
       {0, -2, -1, 2, 1, 0},
       {0, 2, -1, -2, 1, 0},
       {0, 4, 0, -5, 0, 1}},
      {{1.0 / 4, 0, 0},
       {-1.0 / 6, -1.0 / 6, -1.0 / 6},
       {-1.0 / 6, 1.0 / 6, -1.0 / 6},
       {1.0 / 24, 1.0 / 12, 1.0 / 6},
       {1.0 / 24, -1.0 / 12, 1.0 / 6},
       {0, 0, 1}},
      {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}},
      1e-5};
  CHECK(m == 2 || m == 4) << "no Winograd tile of " << m;
  return m == 2 ? two : four;
}

std::vector<int64_t> winograd_shape(std::span<const int64_t> weight, int m) {
  const int64_t points = winograd(m).points;
  return {points * points, weight[2], weight[3]};
}

Tensor winograd_weight(const Tensor& weight, int m) {
  const Winograd& form = winograd(m);
  const std::vector<int64_t>& shape = weight.shape();
  CHECK(shape.size() == 4 && shape[0] == 3 && shape[1] == 3)
      << "a Winograd weight is [3, 3, ci, co]";
  const Tensor wide = rounded_to(DType::kFloat32, weight);
  const int64_t points = form.points, ci = shape[2], co = shape[3], plane = ci * co;
  Tensor out(DType::kFloat32, winograd_shape(shape, m));
  const auto* g = static_cast<const float*>(wide.data());
  auto* u = static_cast<float*>(out.data());
  // Row by row of the output channels, in double: the sums of 9 products are rounded once.
  std::vector<double> sum(static_cast<size_t>(co));
  for (int64_t e = 0; e < points * points; ++e) {
    const std::vector<double>& row = form.kernel[e / points];
    const std::vector<double>& column = form.kernel[e % points];
    for (int64_t c = 0; c < ci; ++c) {
      std::fill(sum.begin(), sum.end(), 0);
      for (int tap = 0; tap < 9; ++tap) {
        const double factor = row[tap / 3] * column[tap % 3];
        const float* from = g + tap * plane + c * co;
        if (factor == 0) continue;
        for (int64_t k = 0; k < co; ++k) sum[k] += factor * from[k];
      }
      float* to = u + e * plane + c * co;
      for (int64_t k = 0; k < co; ++k) to[k] = static_cast<float>(sum[k]);
    }
  }
  return out;
}

}  // namespace pruner
