// A network in training, one mini-batch at a time: batches and gradients of the loss in, weights
// out. What to feed it, and when to stop, is model/train.h's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/nn/tokens.h"
#include "model/weights.h"

namespace pruner {

/// One score that a network gives: of a program, by a head.
struct ScoreRequest {
  int64_t program = 0, head = 0;
};

struct TrainingBatch {
  std::vector<Tokens> branches;        // what each branch reads of the programs
  std::vector<ScoreRequest> requests;  // what is scored
};

enum class Optimizer { kAdam, kSgd };

struct TrainerOptions {
  Optimizer optimizer = Optimizer::kAdam;
  double weight_decay = 0;  // L2, added to the gradient
  int threads = 1;
};

class Trainer {
 public:
  virtual ~Trainer() = default;
  /// Scores in training mode (batch norm by the batch's statistics), one a request.
  virtual Result<std::vector<float>> forward(const TrainingBatch& batch) = 0;
  /// One step of the optimizer, from d loss / d score of the last forward(), the gradients' global
  /// L2 norm clipped at `clip_norm` where that is above 0.
  virtual Result<Unit> step(std::span<const float> gradient,
                            double learning_rate,
                            double clip_norm) = 0;
  virtual Result<Tensors> tensors() = 0;
  /// What the optimizer remembers: Adam's two moments of each parameter, and its steps. Empty
  /// before the first step, and of plain SGD.
  virtual Result<Tensors> optimizer_state() = 0;
  virtual Result<Unit> set_optimizer_state(const Tensors& state) = 0;
};

/// Whether the plug-in is there and fits; it is loaded then. The error names the package.
Result<Unit> find_torch();

/// LibTorch's, from the plug-in libpruner_torch.so, which is loaded here: beside the program, in
/// ../lib/pruner, or where PRUNER_TORCH_PLUGIN in the environment says.
Result<std::unique_ptr<Trainer>> make_torch_trainer(const ModelWeights& start,
                                                    const TrainerOptions& options);

}  // namespace pruner
