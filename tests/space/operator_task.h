// Tasks of operators for tests: a fixed target, so that spaces do not depend on the machine.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "tensor/operators.h"
#include "tensor/task.h"

namespace pruner {

inline Target test_target(int64_t vector_bytes = 64) {
  Target target;
  target.mcpu = vector_bytes == 64 ? "x86-64-v4" : "x86-64-v3";
  target.threads = 2;
  target.vector_bytes = vector_bytes;
  target.vector_registers = vector_bytes == 64 ? 32 : 16;
  target.masked_vectors = vector_bytes == 64;
  target.l2_bytes = 1 << 20;
  target.l3_bytes = 32 << 20;
  target.peak_flops = 100e9;
  target.l1_bandwidth = 200e9;
  target.l2_bandwidth = 100e9;
  target.l3_bandwidth = 50e9;
  target.dram_bandwidth = 20e9;
  return target;
}

inline Task operator_task(const std::string& op, const Target& target = test_target()) {
  Result<ComputeDag> dag = parse_operator(op);
  EXPECT_TRUE(dag.ok()) << op;
  return make_task(dag.ok() ? *dag : ComputeDag{}, target, op);
}

/// Candidates that a property test draws of each operator: what PRUNER_CANDIDATES says.
inline int candidates_each(int otherwise) {
  const char* text = std::getenv("PRUNER_CANDIDATES");
  return text == nullptr ? otherwise : std::atoi(text);
}

/// One of each kind of operator, with extents that are odd, prime or shorter than a vector.
inline const char* const kSmallOperators[] = {
    "matmul 7 13 11",
    "matmul 64 64 64",
    "matmul 33 49 100 +bias +relu",
    "dense 1 37 64 +bias",
    "dense 5 19 24",
    "batch_matmul 3 9 20 17",
    "conv2d 1 16 7 7 8 3 3 padding=1 +bias +relu",
    "conv2d 2 20 9 5 3 3 3 stride=2 padding=1 +bias",
    "conv2d 1 64 14 14 64 1 1 +bias +residual +relu",
    "conv2d 1 53 6 6 37 3 3 padding=1",
    "conv2d 1 64 8 8 16 1 1 +bias",
    "conv2d 1 8 5 5 8 3 3 padding=1 groups=2",
    "conv2d 1 24 7 6 24 3 3 padding=1 groups=3 +bias +relu",
    "conv2d 1 40 5 5 20 3 3 stride=2 groups=10",
    "conv2d_transpose 1 8 6 6 4 4 4 stride=2 padding=1",
    "conv2d_transpose 1 20 6 9 7 5 4 stride=2,3 padding=1 phases=1 +bias +relu",
    "conv3d 1 20 3 5 6 7 3 3 3 padding=1 +bias +relu",
    "conv3d 1 16 4 4 5 3 3 7 7 stride=1,2,2 padding=1,3,3 +bias +residual",
    "conv3d 2 9 2 3 4 16 1 1 1 stride=2",
    "depthwise_conv2d 1 24 9 9 3 3 padding=1 +bias +relu",
    "depthwise_conv2d 1 16 7 7 5 5 stride=2 padding=2",
    "max_pool2d 1 19 7 7 3 3 stride=2 padding=1",
    "avg_pool2d 1 32 4 4 2 2 stride=2",
    "sum 5 37",
    "sum 3 512",
    "softmax 4 19",
    "softmax 6 64",
    "layernorm 5 48",
    "layernorm 3 771",
    "add 6 35",
    "relu 1000",
    "gelu 7 37",
    "add 513 528",
    "conv2d 1 48 80 81 8 1 1 +bias",
    "dense 1 24 2048 +bias +relu",
    "matmul 3 20 1026",
    "max_pool2d 2 16 9 9 3 3 stride=2 padding=1",
    "avg_pool2d 1 24 6 6 3 3 padding=1",
    "conv2d 1 24 9 11 16 3 3 padding=1 +bias +relu",
    "conv2d 2 16 8 8 16 3 3 +residual",
    "conv2d 1 9 6 5 17 3 3 padding=1 +bias +silu",
    "matmul 64 1024 9 +relu",
    "matmul 12 20 24 bits=16",
    "conv2d_nchw 1 13 9 7 10 3 3 stride=2 padding=1 +bias +relu",
    "conv2d 1 16 6 6 8 3 3 padding=1 bits=16 +bias",
    "conv2d 1 8 8 12 40 3 3 padding=1 +bias +relu +max_pool2d=2",
    "conv2d 1 20 7 9 33 3 3 +relu +max_pool2d=3,2,1",
    "conv2d 1 24 6 6 48 1 1 +avg_pool2d=2",
    "conv2d 1 16 5 5 72 1 1 +bias +residual +relu +avg_pool2d=5",
    "conv2d 1 12 9 11 40 1 1 +bias +relu6 +depthwise_conv2d=3,1,1 +bias +relu6",
    "conv2d 1 9 8 10 24 3 3 padding=1 +bias +silu +depthwise_conv2d=5,2,2 +bias",
    "matmul 19 24 35 +rotary_embedding=8",
    "dense 17 96 20 +bias +rotary_embedding=32",
    "coded_matmul 1 37 96 block=32 +bias",
    "coded_matmul 3 50 64 bits=4 block=16 +relu",
    "coded_matmul 5 33 40 bits=4 block=40",
    "attention 2 3 7 19 16",
    "attention 1 4 9 21 20 sharing=2 causal=1",
    "attention 1 2 33 40 8 causal=1",
    "attention 1 2 9 192 8 sharing=2 causal=1",
    "depthwise_conv2d_nchw 1 6 9 21 3 3 padding=1 +bias +relu",
    "depthwise_conv2d_nchw 1 3 7 19 5 5 stride=2 padding=2 multiplier=2",
    "max_pool2d_nchw 2 5 9 18 3 3 stride=2 padding=1",
    "avg_pool2d_nchw 1 7 6 37 3 2 stride=2 padding=1,0",
};

/// Relative and absolute, of a result: of float16, where the order of a sum may round it otherwise,
/// one step.
inline double tolerance_of(DType dtype) {
  if (dtype == DType::kBFloat16) return 1e-2;
  return dtype == DType::kFloat16 ? 1e-3 : 1e-4;
}

}  // namespace pruner
