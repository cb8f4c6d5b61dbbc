// Scores by a table of layers: weights and features of programs in, one score each out. In
// evaluation mode (batch norm by its running statistics), so that a program's score depends on
// nothing but the program.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/nn/linear.h"
#include "model/nn/tokens.h"

namespace pruner {

class Network {
 public:
  /// `weights` must be checked (check_weights); `head` is one of theirs, or 0.
  explicit Network(const ModelWeights& weights, size_t head = 0);

  /// One score a program, higher is faster, over `jobs` threads; minus infinity for a program
  /// without what the network reads (is_readable).
  std::vector<float> predict(std::span<const ProgramFeatures> programs, int jobs) const;

  /// What the layers gave: a matrix for each of the architecture's, with a row for each program, or
  /// token. Layers before a branch's attention or sum have none, nor has attention before a sum.
  std::vector<Matrix> activations(std::span<const ProgramFeatures> programs) const;

 private:
  struct Step {
    Step(const Layer& layer, const ModelWeights& weights, size_t head);
    /// Of a layer that takes rows one by one: (rows, in) → (rows, out).
    Matrix operator()(const Matrix& x) const;

    Layer layer;
    std::optional<Linear> linear;      // of attention: the output's projection
    std::optional<Linear> project_in;  // of attention: to queries, keys and values
    std::vector<float> gain, shift;    // batch norm as x * gain + shift
  };
  /// The layers of a branch up to the first that sees a program's rows together.
  struct Prefix {
    size_t first, end;
  };
  /// What the prefix makes of programs' distinct rows, in blocks.
  struct Encoded {
    Tokens tokens;
    std::vector<Matrix> hidden;
    std::vector<Matrix> qkv;  // where attention follows: queries, keys, values
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
  std::vector<Step> steps_;  // of each layer
  std::vector<Prefix> prefixes_;
  bool shares_rows_ = false;  // rows of one program are often those of others, too
};

/// Whether a program has what the architecture's first layer reads.
bool is_readable(const ProgramFeatures& program, const Architecture& architecture);

}  // namespace pruner
