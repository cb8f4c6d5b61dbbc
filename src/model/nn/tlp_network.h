// TLP's network for scoring (Zhai et al., "TLP", ASPLOS 2023; MTL-TLP's decoders): sequences of
// primitives in, one score each out. Each step is encoded alone, 8 heads of self-attention with a
// residual and two residual blocks see all, and what each step is decoded to is summed up.
#pragma once

#include <span>
#include <vector>

#include "model/nn/linear.h"
#include "model/nn/primitive_batch.h"

namespace pruner {

class TlpNetwork {
 public:
  /// `weights` must be checked (check_weights); `head` one of them.
  explicit TlpNetwork(const ModelWeights& weights, size_t head = 0);

  /// One score a program, higher is faster, over `jobs` threads; minus infinity for a program
  /// without primitives.
  std::vector<float> predict(std::span<const ProgramFeatures> programs, int jobs) const;

 private:
  /// What attention and the residual blocks read of a batch's distinct rows.
  struct Encoded {
    Matrix hidden;  // (rows, 256)
    Matrix qkv;     // (rows, 768): queries, keys, values
  };
  Encoded encode(const PrimitiveBatch& batch, int jobs) const;
  void score(const PrimitiveBatch& batch,
             const Encoded& encoded,
             int64_t first,
             int64_t count,
             float* scores) const;

  PrimitiveForm form_;
  std::vector<Linear> encoder_;  // 4
  Linear project_in_, project_out_, block0_, block1_;
  std::vector<Linear> decoder_;  // 3, and the last layer:
  std::vector<float> last_;
  float last_bias_;
};

}  // namespace pruner
