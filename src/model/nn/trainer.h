// `Trainer` trains a network one mini-batch at a time: batches and gradients of the loss in,
// weights out. model/train.h chooses the batches and when to stop.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/nn/tokens.h"
#include "model/weights.h"

namespace pruner {

/// `ScoreRequest` asks for the score of a program by a head.
struct ScoreRequest {
  int64_t program = 0, head = 0;
};

struct TrainingBatch {
  std::vector<Tokens> branches;        // programs' tokens for each branch
  std::vector<ScoreRequest> requests;  // scores to compute
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
  /// Computes one score a request in training mode (batch norm by the batch's statistics).
  virtual Result<std::vector<float>> forward(const TrainingBatch& batch) = 0;
  /// Takes one step of the optimizer from d loss / d score of the last forward(). The gradients'
  /// global L2 norm is clipped at `clip_norm` if `clip_norm` is above 0.
  virtual Result<Unit> step(std::span<const float> gradient,
                            double learning_rate,
                            double clip_norm) = 0;
  virtual Result<Tensors> tensors() = 0;
  /// Returns the state of the optimizer: Adam's two moments of each parameter, and its steps. The
  /// state is empty before the first step, and for plain SGD.
  virtual Result<Tensors> optimizer_state() = 0;
  virtual Result<Unit> set_optimizer_state(const Tensors& state) = 0;
};

/// Loads the plug-in if it is there and fits; otherwise the error names the package.
Result<Unit> find_torch();

/// Makes a trainer of LibTorch. The plug-in libpruner_torch.so is loaded here: from beside the
/// program, from ../lib/pruner, or from the path PRUNER_TORCH_PLUGIN in the environment.
Result<std::unique_ptr<Trainer>> make_torch_trainer(const ModelWeights& start,
                                                    const TrainerOptions& options);

}  // namespace pruner
