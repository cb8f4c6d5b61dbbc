#include "model/nn/linear.h"

#include <algorithm>

#include "support/check.h"

namespace pruner {
namespace {

template <int kLanes>
struct VectorOf {
  typedef float Type __attribute__((vector_size(kLanes * sizeof(float)), aligned(sizeof(float))));
};

/// `Call` holds the arguments of a kernel, which computes x (rows, in) → y (rows, out).
struct Call {
  const float* x;
  int64_t rows, in;
  const float *panels, *bias;
  bool relu;
  float* y;
  int64_t out;
};

/// Computes a tile of kRows x (2 * kLanes) outputs from row i and column j on, which stays in
/// registers during the loop over `in`. The function is inlined into one for a single instruction
/// set, which decides the form of its vectors.
template <int kLanes, int kRows>
[[gnu::always_inline]] inline void tile(const Call& c, int64_t i, int64_t j) {
  using Vector = typename VectorOf<kLanes>::Type;
  const int64_t in = c.in, out = c.out;
  const float *x = c.x + i * in, *panel = c.panels + j * in;
  float* y = c.y + i * out + j;
  Vector sum[kRows][2];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    sum[r][0] = reinterpret_cast<const Vector*>(c.bias + j)[0];
    sum[r][1] = reinterpret_cast<const Vector*>(c.bias + j)[1];
  }
  for (int64_t k = 0; k < in; ++k, panel += 2 * kLanes) {
    const Vector w0 = reinterpret_cast<const Vector*>(panel)[0];
    const Vector w1 = reinterpret_cast<const Vector*>(panel)[1];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const float xr = x[r * in + k];
      sum[r][0] += xr * w0;
      sum[r][1] += xr * w1;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    for (int half = 0; half < 2; ++half) {
      const Vector s = sum[r][half];
      *reinterpret_cast<Vector*>(y + r * out + half * kLanes) = c.relu ? (s > 0 ? s : s - s) : s;
    }
  }
}

template <int kLanes, int kRows>
[[gnu::always_inline]] inline void all_tiles(const Call& c) {
  for (int64_t j = 0; j < c.out; j += 2 * kLanes) {
    int64_t i = 0;
    for (; i + kRows <= c.rows; i += kRows) tile<kLanes, kRows>(c, i, j);
    for (; i < c.rows; ++i) tile<kLanes, 1>(c, i, j);
  }
}

struct KernelRow {
  void (*kernel)(const Call& call);
  int64_t width;  // columns of a panel
};

// Tiles as large as the vector registers: 24 sums of 32, 12 of 16.
#if defined(__x86_64__)
#define PRUNER_KERNEL(name, isa, lanes, tile_rows) \
  __attribute__((target(isa))) void name(const Call& call) { all_tiles<lanes, tile_rows>(call); }
PRUNER_KERNEL(avx512_kernel, "avx512f", 16, 12)
PRUNER_KERNEL(avx2_kernel, "avx2,fma", 8, 6)
#undef PRUNER_KERNEL
#endif

KernelRow kernel_of_this_machine() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {avx512_kernel, 32};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {avx2_kernel, 16};
#endif
  return {all_tiles<4, 6>, 8};
}

/// Computes one output after another.
void narrow_kernel(const Call& c) {
  for (int64_t i = 0; i < c.rows; ++i) {
    for (int64_t j = 0; j < c.out; ++j) {
      float sum = c.bias[j];
      for (int64_t k = 0; k < c.in; ++k) sum += c.panels[j * c.in + k] * c.x[i * c.in + k];
      c.y[i * c.out + j] = c.relu && sum < 0 ? 0 : sum;
    }
  }
}

const KernelRow& kernel_for(int64_t out) {
  static const KernelRow wide = kernel_of_this_machine(), narrow = {narrow_kernel, 1};
  return out % wide.width == 0 ? wide : narrow;
}

}  // namespace

Linear::Linear(const WeightTensor& weight, const WeightTensor& bias)
    : in_(weight.shape[1]), out_(weight.shape[0]), bias_(bias.values) {
  const int64_t width = kernel_for(out_).width;
  weight_.resize(weight.values.size());
  for (int64_t j = 0; j < out_; ++j) {
    const int64_t panel = j / width * width;
    for (int64_t k = 0; k < in_; ++k) {
      weight_[panel * in_ + k * width + j - panel] = weight.values[j * in_ + k];
    }
  }
}

Matrix Linear::operator()(const Matrix& x, OutputFunction activation) const {
  CHECK(x.columns == in_) << x.columns << " columns, expected " << in_;
  Matrix y(x.rows, out_);
  const bool relu = activation == OutputFunction::kRelu;
  kernel_for(out_).kernel(
      {x.row(0), x.rows, in_, weight_.data(), bias_.data(), relu, y.row(0), out_});
  return y;
}

}  // namespace pruner
