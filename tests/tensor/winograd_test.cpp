#include "tensor/winograd.h"

#include "golden.h"
#include "naive.h"
#include "tensor/pack.h"

namespace pruner {
namespace {

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix out(a.size(), std::vector<double>(b[0].size(), 0));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b[0].size(); ++j)
      for (size_t k = 0; k < b.size(); ++k) out[i][j] += a[i][k] * b[k][j];
  return out;
}

Matrix transposed(const Matrix& a) {
  Matrix out(a[0].size(), std::vector<double>(a.size()));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a[0].size(); ++j) out[j][i] = a[i][j];
  return out;
}

// a x a^T
Matrix both_ways(const Matrix& a, const Matrix& x) { return product(product(a, x), transposed(a)); }

Matrix drawn(int rows, Rng& rng, bool integers) {
  Matrix out(static_cast<size_t>(rows), std::vector<double>(static_cast<size_t>(rows)));
  for (std::vector<double>& row : out) {
    for (double& x : row)
      x = integers ? static_cast<double>(rng.below(201) - 100) : 2 * rng.uniform() - 1;
  }
  return out;
}

// A^T [ (G g G^T) . (B^T d B) ] A
Matrix winograd_tile(const Winograd& form, const Matrix& d, const Matrix& g) {
  Matrix points = both_ways(form.kernel, g);
  const Matrix data = both_ways(form.data, d);
  for (size_t u = 0; u < points.size(); ++u)
    for (size_t v = 0; v < points.size(); ++v) points[u][v] *= data[u][v];
  return both_ways(form.output, points);
}

double direct(const Matrix& d, const Matrix& g, size_t y, size_t x) {
  double sum = 0;
  for (size_t r = 0; r < 3; ++r)
    for (size_t s = 0; s < 3; ++s) sum += d[y + r][x + s] * g[r][s];
  return sum;
}

TEST(Winograd, ComputesATileOfTheConvolution) {
  Rng rng(1);
  for (const int m : {2, 4}) {
    const Winograd& form = winograd(m);
    ASSERT_EQ(form.tile, m);
    ASSERT_EQ(form.points, m + 2);
    for (int i = 0; i < 50; ++i) {
      const Matrix d = drawn(m + 2, rng, false), g = drawn(3, rng, false);
      const Matrix y = winograd_tile(form, d, g);
      ASSERT_EQ(y.size(), static_cast<size_t>(m));
      for (size_t h = 0; h < y.size(); ++h)
        for (size_t w = 0; w < y.size(); ++w) EXPECT_NEAR(y[h][w], direct(d, g, h, w), 1e-12);
    }
  }
}

// The halves in G of F(2 x 2) are exact; the sixths of F(4 x 4) are not.
TEST(Winograd, OfTwoIsExactInIntegers) {
  Rng rng(2);
  for (int i = 0; i < 50; ++i) {
    const Matrix d = drawn(4, rng, true), g = drawn(3, rng, true);
    const Matrix y = winograd_tile(winograd(2), d, g);
    for (size_t h = 0; h < 2; ++h)
      for (size_t w = 0; w < 2; ++w) EXPECT_EQ(y[h][w], direct(d, g, h, w));
  }
}

Tensor drawn_weight(int64_t ci, int64_t co) {
  Tensor weight(DType::kFloat32, {3, 3, ci, co});
  Rng rng(3);
  for (int64_t i = 0; i < weight.num_elements(); ++i) weight.set(i, 2 * rng.uniform() - 1);
  return weight;
}

TEST(WinogradWeight, IsGgGOfEveryChannelPair) {
  const int64_t ci = 3, co = 5;
  const Tensor weight = drawn_weight(ci, co);
  for (const int m : {2, 4}) {
    const Tensor u = winograd_weight(weight, m);
    const int64_t points = m + 2;
    ASSERT_EQ(u.shape(), (std::vector<int64_t>{points * points, ci, co}));
    EXPECT_EQ(u.shape(), winograd_shape(weight.shape(), m));
    for (int64_t c = 0; c < ci; ++c) {
      for (int64_t k = 0; k < co; ++k) {
        Matrix g(3, std::vector<double>(3));
        for (int64_t tap = 0; tap < 9; ++tap)
          g[static_cast<size_t>(tap / 3)][static_cast<size_t>(tap % 3)] =
              weight.get((tap * ci + c) * co + k);
        const Matrix expected = both_ways(winograd(m).kernel, g);
        for (int64_t e = 0; e < points * points; ++e) {
          const double want =
              expected[static_cast<size_t>(e / points)][static_cast<size_t>(e % points)];
          EXPECT_NEAR(u.get((e * ci + c) * co + k), want, 6e-8 * std::abs(want) + 1e-15);
        }
      }
    }
  }
}

}  // namespace
}  // namespace pruner
