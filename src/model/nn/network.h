// `Network` scores by a table of layers: weights and features of programs in, one score each out.
// It runs in evaluation mode (batch norm by its running statistics), so that a program's score
// depends on nothing but the program.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/nn/linear.h"
#include "model/nn/tokens.h"

namespace pruner {

class Network {
 public:
  /// `weights` must be checked (check_weights); `head` is one of the weights' heads, or 0.
  explicit Network(const ModelWeights& weights, size_t head = 0);

  /// Returns one score a program, higher is faster, on `jobs` threads; minus infinity for a program
  /// without the input of the network (is_readable).
  std::vector<float> predict(std::span<const ProgramFeatures> programs, int jobs) const;

  /// Returns the output of each layer: a matrix with a row for each program, or token. The matrix
  /// is empty for layers before a branch's attention or sum, and for attention before a sum.
  std::vector<Matrix> activations(std::span<const ProgramFeatures> programs) const;

 private:
  struct Step {
    Step(const Layer& layer, const ModelWeights& weights, size_t head);
    /// Applies a layer that takes rows one by one: (rows, in) → (rows, out).
    Matrix operator()(const Matrix& x) const;

    Layer layer;
    std::optional<Linear> linear;      // the layer's product; in attention: the output's projection
    std::optional<Linear> project_in;  // in attention: the projection to queries, keys and values
    std::vector<float> gain, shift;    // batch norm as x * gain + shift
  };
  /// `Prefix` is the range of a branch's layers that take rows one by one.
  struct Prefix {
    size_t first, end;
  };
  /// `Encoded` holds the output of a branch's prefix for the programs' distinct rows, in blocks.
  struct Encoded {
    Tokens tokens;
    std::vector<Matrix> hidden;
    std::vector<Matrix> qkv;  // queries, keys and values if attention follows
  };
  struct Rows;

  std::vector<Encoded> encode(std::span<const ProgramFeatures> programs, int jobs) const;
  Matrix attend(const Step& step, const Rows& rows, bool summed) const;
  Matrix finish(std::span<const Encoded> branches,
                int64_t first,
                int64_t count,
                std::vector<Matrix>* activations) const;

  const Architecture* architecture_;
  FeatureScales scale_;
  PrimitiveForm form_;
  std::vector<Step> steps_;  // one per layer
  std::vector<Prefix> prefixes_;
  bool shares_rows_ = false;  // rows of one program are often those of others, too
};

/// Returns whether a program has the input that the architecture's first layer reads.
bool is_readable(const ProgramFeatures& program, const Architecture& architecture);

}  // namespace pruner
