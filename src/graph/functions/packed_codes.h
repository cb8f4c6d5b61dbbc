// Whole numbers of 2, 4 or 8 bits that are packed in bytes, as ONNX Runtime's operators take them.
// A byte holds the first number in its lowest bits, and each row begins with a byte of its own.
#pragma once

#include "graph/functions/body.h"

namespace pruner {

/// The unsigned type of 2, 4 or 8 bits.
DType type_of_bits(int64_t bits);

/// Returns the bytes that `count` numbers take.
int64_t packed_bytes(int64_t count, int64_t bits);

/// Returns the numbers of a tensor of uint8 as [rows, count].
Tensor unpacked(const Tensor& bytes, int64_t bits, int64_t rows, int64_t count);

/// Returns `element` in every place of a tensor of `dtype`: the zero point of numbers without one.
Tensor filled(DType dtype, std::vector<int64_t> shape, int64_t element);

}  // namespace pruner
