// Kernels written by hand as Programs, as lowering makes them: for the tests and micro-benchmarks
// of code generation.
#pragma once

#include "lower/program_builder.h"
#include "pruner/kernel.h"

namespace pruner {

/// C[m, n] += A[m, k] * B, B packed as [n / (vectors*lanes)][k][vectors*lanes]; register tiles of
/// rows x (vectors*lanes), k unrolled by `unroll`. k is cut in blocks of `k_block`.
struct MatmulShape {
  int64_t m, n, k, k_block;
  int rows, vectors, lanes, unroll;
  bool packed_a = false;  // A as [m / rows][k][rows]
};
Program matmul_program(const MatmulShape& shape);

/// A 3x3 convolution, stride 1, NCHWc, input padded ahead; tiles of `width` columns x `vectors`
/// blocks of output channels, input channels unrolled by `unroll`.
struct ConvShape {
  int64_t channels, height, width_total, out_channels;
  int width, vectors, lanes, unroll;
};
Program conv_program(const ConvShape& shape);

/// Runs everything on the caller's thread.
PrunerPool* serial_pool();
/// The target "this machine" (empty mcpu) or another CPU.
Target cpu_target(std::string mcpu);
/// Calls a kernel on tensors in the program's order of arguments.
void call_kernel(PrunerKernel kernel, std::span<Tensor> args, int64_t workspace_bytes);

}  // namespace pruner
