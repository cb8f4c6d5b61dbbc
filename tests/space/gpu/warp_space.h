// Tasks whose contractions warps compute by instructions on matrices, and their part of the space.
#pragma once

#include "space/operator_task.h"
#include "space/space.h"
#include "space/structure.h"

namespace pruner {

/// An operator on a device of this arch, and the structure that its contraction has there.
struct WarpOperator {
  const char *arch, *op, *structure;
};

inline constexpr const char* kHalfConv = "implicit-gemm+m16n8k16-tile";
inline constexpr const char* kGroupConv = "implicit-gemm+m64n8k16-tile";

/// Every shape and type, with ends that no tile divides, and weights in either order.
inline constexpr WarpOperator kWarpOperators[] = {
    {"sm_80", "matmul 64 48 96 bits=16", "m16n8k16-tile"},
    {"sm_80", "matmul 61 45 90 bits=16 exponent=8", "m16n8k16-tile"},
    {"sm_80", "dense 61 45 90 bits=16 +bias +relu", "m16n8k16-tile"},
    {"sm_86", "batch_matmul 3 40 64 29 bits=16", "m16n8k16-tile"},
    {"sm_90", "matmul 200 136 160 bits=16", "m16n8k16-tile"},
    {"sm_80", "matmul 32 24 8 bits=16", "m16n8k8-tile"},
    {"sm_75", "matmul 61 48 40 bits=16", "m16n8k8-tile"},
    {"sm_80", "matmul 61 45 44 bits=19", "m16n8k8-tile"},
    {"sm_86", "dense 62 40 64 bits=19 +bias", "m16n8k8-tile"},
    {"sm_89", "dense 62 40 128 bits=8", "m16n8k32-tile"},
    {"sm_75", "dense 62 40 80 bits=8", "m8n8k16-tile"},
    {"sm_80", "dense 9 40 80 bits=16 +bias", "m16n8k16-tile"},
    {"sm_80", "conv2d 1 24 7 7 16 3 3 padding=1 bits=16 +bias +relu", kHalfConv},
    {"sm_80", "conv2d 2 16 5 6 24 3 3 stride=2 padding=1 bits=16 +bias +residual", kHalfConv},
    {"sm_86", "conv2d 1 40 14 14 64 1 1 bits=16 exponent=8 +bias", kHalfConv},
    {"sm_90", "conv2d 1 16 10 10 3 7 7 stride=2 padding=3 bits=16 +relu", kHalfConv},
    {"sm_80", "conv2d 1 16 10 10 1 7 28 stride=2,8 padding=3,12 bits=16 +bias", kHalfConv},
    {"sm_80", "conv3d 1 9 4 4 5 16 3 3 3 padding=1 bits=16", kHalfConv},
    {"sm_80", "conv2d_nchw 1 20 9 7 13 3 3 padding=1 bits=16 +bias", kHalfConv},
    {"sm_80", "conv2d 1 24 7 7 16 3 3 padding=1 bits=19 +bias", "implicit-gemm+m16n8k8-tile"},
    {"sm_80", "dense 24 40 2048 bits=16 +bias", "split-k+m16n8k16-tile"},
    {"sm_80", "conv2d 1 24 5 5 128 3 3 padding=1 bits=16", "implicit-gemm-split-k+m16n8k16-tile"},
    {"sm_75", "conv2d 1 16 8 8 16 3 3 padding=1 bits=16", "implicit-gemm+m16n8k8-tile"},
    {"sm_89", "conv2d 1 24 7 7 32 3 3 padding=1 bits=8", "implicit-gemm+m16n8k32-tile"},
    {"sm_75", "conv2d 1 24 8 8 20 3 3 stride=2 bits=8", "implicit-gemm+m8n8k16-tile"},
    {"sm_90", "matmul 200 136 160 bits=16", "m64n8k16-tile"},
    {"sm_90", "matmul 61 48 90 bits=16 exponent=8 +relu", "m64n8k16-tile"},
    {"sm_90", "dense 130 45 136 bits=16 +bias +relu", "m64n8k16-tile"},
    {"sm_90", "batch_matmul 3 70 64 40 bits=16", "m64n8k16-tile"},
    {"sm_90", "dense 100 40 64 bits=19 +bias", "m64n8k8-tile"},
    {"sm_90", "dense 130 56 160 bits=8", "m64n8k32-tile"},
    {"sm_90", "conv2d 1 24 9 9 40 3 3 padding=1 bits=16 +bias +relu", kGroupConv},
    {"sm_90", "conv2d 2 16 10 10 3 7 7 stride=2 padding=3 bits=16 +relu", kGroupConv},
    {"sm_90", "dense 40 40 2048 bits=16 +bias", "split-k+m64n8k16-tile"},
    {"sm_80", "attention 1 3 48 64 32 bits=16", "attention-tile"},
    {"sm_80", "attention 2 2 37 101 40 bits=16", "attention-tile"},
    {"sm_90", "attention 1 2 70 70 64 causal=1 bits=16 exponent=8", "attention-tile"},
    {"sm_90", "attention 1 3 64 64 32 bits=16", "group-attention-tile"},
    {"sm_90", "attention 2 2 37 101 40 bits=16", "group-attention-tile"},
    {"sm_90", "attention 1 2 130 130 96 causal=1 bits=16 exponent=8", "group-attention-tile"},
};

/// A structure on a device that has it, and the fewest rows that it takes.
struct WarpDevice {
  const char *arch, *structure;
  int64_t fewest;
};

inline Task warp_task(const WarpOperator& row) {
  const Result<Target> target = parse_target(std::string("cuda --arch=") + row.arch, 0);
  EXPECT_TRUE(target.ok()) << target.error().message();
  return operator_task(row.op, *target);
}

/// The same operator with a result of float16.
inline Task with_half_result(const Task& task) {
  ComputeDag dag = task.dag;
  Stage& out = dag[dag.outputs()[0]];
  out.dtype = DType::kFloat16;
  out.body = cast(DType::kFloat16, out.body);
  return make_task(std::move(dag), task.target, task.name + " in float16");
}

/// Only sketches of the structure are drawn; none is an error of the test.
inline Space warp_space(const Task& task, const std::string& structure) {
  Space space = make_space(task);
  std::erase_if(space.drawn, [&](SketchId id) { return space[id].name != structure; });
  EXPECT_FALSE(space.drawn.empty()) << structure;
  return space;
}

}  // namespace pruner
