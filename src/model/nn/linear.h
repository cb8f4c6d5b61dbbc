// Linear layers for scoring: y = x W^T + b in single precision, by a kernel for this machine's
// vectors (AVX-512, AVX2, or what the compiler's baseline has).
#pragma once

#include <vector>

#include "model/weights.h"

namespace pruner {

/// Dense, row-major.
struct Matrix {
  Matrix(int64_t rows, int64_t columns)
      : rows(rows), columns(columns), values(static_cast<size_t>(rows * columns)) {}
  float* row(int64_t i) { return values.data() + i * columns; }
  const float* row(int64_t i) const { return values.data() + i * columns; }

  int64_t rows, columns;
  std::vector<float> values;
};

enum class OutputFunction { kNone, kRelu };

class Linear {
 public:
  /// `weight`: (out, in); `bias`: (out). Fast where out is a multiple of 32.
  Linear(const WeightTensor& weight, const WeightTensor& bias);

  /// (rows, in) → (rows, out), through the activation.
  Matrix operator()(const Matrix& x, OutputFunction activation) const;

 private:
  int64_t in_, out_;
  std::vector<float> weight_;  // panels of a width: (out / width, in, width)
  std::vector<float> bias_;
};

}  // namespace pruner
