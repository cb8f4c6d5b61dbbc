// The two cost models' networks, for scoring: features of programs in, one score each out. In
// evaluation mode (batch norm by its running statistics), so that a program's score depends on
// nothing but the program. PaCM: Pruner, section 4.4; TenSetMLP: TenSet, section 5.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/features.h"
#include "model/nn/linear.h"

namespace pruner {

/// What the layers gave for B programs.
struct Activations {
  Matrix statements;  // (B, 256): the encoded statement rows, summed up
  Matrix dataflow;    // (B, 128): the encoded data flow, summed over its 8 steps; PaCM only
  Matrix fused;       // (B, 256): both, before batch norm; PaCM only
  Matrix hidden;      // (B, 256): what the residual blocks start from
  std::vector<float> scores;
};

class Network {
 public:
  /// `weights` must be checked (check_weights).
  explicit Network(const ModelWeights& weights);

  /// One score a program, higher is faster, over `jobs` threads; minus infinity for a program
  /// without rows.
  std::vector<float> predict(std::span<const ProgramFeatures> programs, int jobs) const;

  Activations forward(std::span<const ProgramFeatures> programs) const;

 private:
  /// Self-attention over the steps of the data flow.
  struct DataflowBranch {
    explicit DataflowBranch(const ModelWeights& weights);
    /// (programs * 8, 23) → (programs, 128).
    Matrix operator()(const Matrix& steps) const;

    Linear encoder0, encoder2, project_in, project_out;
  };
  /// Concatenation with the data flow, and batch norm.
  struct Fusion {
    explicit Fusion(const ModelWeights& weights);

    Linear linear;
    std::vector<float> gain, shift;  // batch norm as x * gain + shift
  };

  Matrix dataflow(std::span<const ProgramFeatures> programs) const;

  std::vector<float> row_scale_, dataflow_scale_;
  Linear encoder0_, encoder2_, block0_, block1_;
  std::vector<float> decoder_;
  float decoder_bias_;
  std::optional<DataflowBranch> branch_;  // PaCM only, as what follows
  std::optional<Fusion> fusion_;
  std::vector<float> no_dataflow_;  // of every program without the pattern
};

}  // namespace pruner
