// A training between two epochs <-> a safetensors file, so that a run that was cut goes on.
#pragma once

#include <string>

#include "model/train.h"

namespace pruner {

/// `run`: what tells this run from others, e.g. a hash of its options and programs.
Result<Unit> save_train_state(const std::string& path,
                              const TrainState& state,
                              const std::string& run);
/// Errors name the file: it is damaged, or of another run.
Result<TrainState> load_train_state(const std::string& path, const std::string& run);

}  // namespace pruner
