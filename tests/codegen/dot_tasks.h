// Contractions of narrow numbers for tests of the instructions that add several products at once.
#pragma once

#include <algorithm>

#include "codegen/codegen.h"
#include "lower/lower.h"
#include "space/operator_task.h"
#include "tensor/interpreter.h"
#include "tensor/operator_dags.h"

namespace pruner {

inline constexpr const char* kDotOperators[] = {
    "dense 5 19 24 +bias",
    "dense 33 100 68",
    "dense 17 48 4104 +relu",
    "conv2d 1 16 7 7 8 3 3 padding=1 +bias +relu",
    "conv2d 2 20 9 5 4 3 3 stride=2 padding=1",
    "conv2d 1 53 6 6 36 1 1 +bias +residual +relu",
    "conv2d 1 8 6 6 12 3 3 padding=2 dilation=2",
};
// Rows that are whole tiles, overlap, are few; steps of less than a tile; ragged vectors; strides.
inline constexpr const char* kTileOperators[] = {
    "dense 5 19 48 +bias",
    "dense 37 100 80",
    "dense 16 48 4128 +relu",
    "conv2d 1 16 7 7 16 3 3 padding=1 +bias +relu",
    "conv2d 2 20 9 5 32 3 3 stride=2 padding=1",
    "conv2d 1 53 6 18 96 1 1 +bias +residual +relu",
    "conv2d 1 8 6 6 48 3 3 padding=2 dilation=2",
    "conv2d 1 40 8 8 32 3 3 padding=1 +relu +max_pool2d=2",
};
inline constexpr const char *kOfBfloat16 = "bits=16 exponent=8", *kOfBytes = "bits=8";

inline std::string typed(const std::string& op, const std::string& type) {
  const size_t plus = std::min(op.find(" +"), op.size());
  return op.substr(0, plus) + " " + type + op.substr(plus);
}

inline Target arm_target(const std::string& mcpu) {
  const Result<Target> target = parse_target("llvm -mcpu=" + mcpu + " --threads=2", 0);
  EXPECT_TRUE(target.ok()) << target.error().message();
  return *target;
}

inline bool has_word(const Sketch& sketch, const char* word) {
  return sketch.name.find(word) != std::string::npos;
}
inline bool is_matrix(const Sketch& sketch) { return has_word(sketch, "matrix"); }
inline bool is_dot(const Sketch& sketch) {
  return !is_matrix(sketch) && (has_word(sketch, "pair") || has_word(sketch, "quad"));
}
inline bool has_dots(const Space& space) { return std::ranges::any_of(space.sketches, is_dot); }

inline Candidate sample_dot(const Space& space, Rng& rng, bool (*wanted)(const Sketch&) = is_dot) {
  while (true) {
    const Candidate candidate = sample(space, rng);
    if (wanted(space[candidate.sketch])) return candidate;
  }
}

/// Inputs of small whole numbers, whose sums of products are exact in any order.
inline std::vector<Tensor> small_inputs(const ComputeDag& dag, Rng& rng) {
  std::vector<Tensor> inputs;
  for (const StageId id : dag.inputs()) {
    Tensor& tensor = inputs.emplace_back(dag[id].dtype, dag[id].shape());
    const int64_t least = dag[id].dtype == DType::kUInt8 ? 0 : -8;
    for (int64_t i = 0; i < tensor.num_elements(); ++i)
      tensor.set(i, static_cast<double>(least + static_cast<int64_t>(rng.below(17))));
  }
  return inputs;
}

/// A convolution padded with its zero point, whose sums end as bytes.
inline Task quantized_task(const Target& target,
                           DType data_type = DType::kUInt8,
                           DType weight_type = DType::kInt8) {
  DagBuilder b;
  const StageId data = b.placeholder("data", {1, 8, 9, 16}, data_type);
  const StageId weight = b.placeholder("weight", {3, 3, 16, 32}, weight_type, true);
  const StageId bias = b.placeholder("bias", {1, 1, 1, 32}, DType::kInt32, true);
  const int64_t zero = data_type == DType::kUInt8 ? 131 : 3;
  ConvParams params{{{1, 1}, {1, 1}, {1, 1}, {1, 1}, zero}, 1, DType::kInt32};
  const StageId sums = add_add(b, add_conv(b, data, weight, params), bias);
  const StageId real = add_elementwise(b, "T_multiply", {{sums}}, [](auto x) {
    return cast(DType::kFloat32, x[0]) * float_imm(1.0 / 32);
  });
  const StageId bytes = add_elementwise(b, "T_quantize", {{real}}, [](auto x) {
    const Expr held = max(min(x[0], float_imm(155)), float_imm(-100));
    return cast(DType::kUInt8, call(Intrinsic::kRound, {held}) + float_imm(100));
  });
  return make_task(b.finish({bytes}), target, "quantized");
}

/// A product of bytes and constant bytes of any signs.
inline Task byte_product_task(
    const Target& target, int64_t m, int64_t n, int64_t k, DType data_type, DType weight_type) {
  DagBuilder b;
  const StageId data = b.placeholder("data", {m, k}, data_type);
  const StageId weight = b.placeholder("weight", {n, k}, weight_type, true);
  return make_task(
      b.finish({add_dense(b, data, weight, DType::kInt32)}), target, "product of bytes");
}

}  // namespace pruner
