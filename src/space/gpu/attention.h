// Attention as one kernel of a GPU (FlashAttention, Dao et al., 2022, in its second form): a warp,
// or a group of four, keeps rows of queries, and block after block of keys it makes their scores by
// instructions on matrices, weighs them by a softmax whose maximum and sum run along, and
// multiplies them by the values. The scores and weights stay in registers.
#pragma once

#include <optional>
#include <span>

#include "space/gpu/mma_contraction.h"

namespace pruner {

/// The stages of a DAG that one kernel computes. `query`, `key` and `value` are copies of the
/// operands in shared memory, [batch.., rows, terms] and, for values, [batch.., keys, width].
struct AttentionKernel {
  StageId query, key, value;
  StageId products;  // query * key^T
  StageId scores;    // element by element from the products: scaled, masked, biased
  StageId largest, exps, sum;
  StageId weighed;  // exps * value
  StageId root;     // element by element from the weighed values and the sum
  MmaContraction of_keys, of_values;

  /// Returns the axis of the scores' and the result's stages that numbers the queries.
  int rows() const { return of_values.m; }
  int columns() const { return of_values.n; }
};

/// Whether a DAG is attention of 16-bit operands and nothing else, for which the GPU has matrix
/// instructions of `shape` (m x n x k), and asynchronous copies.
bool has_attention_kernel(const ComputeDag& dag, const Gpu& gpu, std::span<const int64_t> shape);

/// Adds the copies of the operands to such a DAG, and returns its stages.
AttentionKernel make_attention_kernel(ComputeDag& dag,
                                      const Gpu& gpu,
                                      std::span<const int64_t> shape);

}  // namespace pruner
