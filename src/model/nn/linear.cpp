#include "model/nn/linear.h"

#include <algorithm>

#include "support/check.h"

namespace pruner {
namespace {

template <int kLanes>
struct VectorOf {
  typedef float Type __attribute__((vector_size(kLanes * sizeof(float)), aligned(sizeof(float))));
};

/// A tile of kRows x (2 * kLanes) outputs, held in registers while `in` is walked. Inlined into a
/// function for one instruction set, which decides what its vectors become.
template <int kLanes, int kRows>
[[gnu::always_inline]] inline void tile(const float* x,
                                        int64_t in,
                                        const float* panel,
                                        const float* bias,
                                        bool relu,
                                        float* y,
                                        int64_t out) {
  using Vector = typename VectorOf<kLanes>::Type;
  Vector sum[kRows][2];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    sum[i][0] = reinterpret_cast<const Vector*>(bias)[0];
    sum[i][1] = reinterpret_cast<const Vector*>(bias)[1];
  }
  for (int64_t k = 0; k < in; ++k, panel += 2 * kLanes) {
    const Vector w0 = reinterpret_cast<const Vector*>(panel)[0];
    const Vector w1 = reinterpret_cast<const Vector*>(panel)[1];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const float xi = x[i * in + k];
      sum[i][0] += xi * w0;
      sum[i][1] += xi * w1;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    for (int half = 0; half < 2; ++half) {
      const Vector s = sum[i][half];
      *reinterpret_cast<Vector*>(y + i * out + half * kLanes) = relu ? (s > 0 ? s : s - s) : s;
    }
  }
}

using Kernel = void (*)(const float* x,
                        int64_t rows,
                        int64_t in,
                        const float* panels,
                        const float* bias,
                        bool relu,
                        float* y,
                        int64_t out);

template <int kLanes, int kRows>
[[gnu::always_inline]] inline void all_tiles(const float* x,
                                             int64_t rows,
                                             int64_t in,
                                             const float* panels,
                                             const float* bias,
                                             bool relu,
                                             float* y,
                                             int64_t out) {
  for (int64_t j = 0; j < out; j += 2 * kLanes) {
    const float* panel = panels + j * in;
    int64_t i = 0;
    for (; i + kRows <= rows; i += kRows)
      tile<kLanes, kRows>(x + i * in, in, panel, bias + j, relu, y + i * out + j, out);
    for (; i < rows; ++i)
      tile<kLanes, 1>(x + i * in, in, panel, bias + j, relu, y + i * out + j, out);
  }
}

struct KernelRow {
  Kernel kernel;
  int64_t width;  // of a panel
};

// Tiles as large as the vector registers: 24 sums of 32, 12 of 16.
#if defined(__x86_64__)
#define PRUNER_KERNEL(name, isa, lanes, tile_rows)                        \
  __attribute__((target(isa))) void name(const float* x,                  \
                                         int64_t rows,                    \
                                         int64_t in,                      \
                                         const float* panels,             \
                                         const float* bias,               \
                                         bool relu,                       \
                                         float* y,                        \
                                         int64_t out) {                   \
    all_tiles<lanes, tile_rows>(x, rows, in, panels, bias, relu, y, out); \
  }
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

const KernelRow kKernel = kernel_of_this_machine();

}  // namespace

Linear::Linear(const WeightTensor& weight, const WeightTensor& bias)
    : in_(weight.shape[1]), out_(weight.shape[0]), bias_(bias.values) {
  CHECK(out_ % 32 == 0) << out_ << " outputs";
  weight_.resize(weight.values.size());
  for (int64_t j = 0; j < out_; ++j) {
    const int64_t panel = j / kKernel.width * kKernel.width;
    for (int64_t k = 0; k < in_; ++k) {
      weight_[static_cast<size_t>(panel * in_ + k * kKernel.width + j - panel)] =
          weight.values[static_cast<size_t>(j * in_ + k)];
    }
  }
}

Matrix Linear::operator()(const Matrix& x, OutputFunction activation) const {
  CHECK(x.columns == in_) << x.columns << " columns, expected " << in_;
  Matrix y(x.rows, out_);
  kKernel.kernel(x.values.data(),
                 x.rows,
                 in_,
                 weight_.data(),
                 bias_.data(),
                 activation == OutputFunction::kRelu,
                 y.values.data(),
                 out_);
  return y;
}

}  // namespace pruner
