#include "model/shipped_weights.h"

#include "support/file.h"

// cmake/shipped_weights.S.in defines these symbols.
extern "C" const char pruner_shipped_weights[], pruner_shipped_weights_end[];

namespace pruner {

Result<std::string> read_model_file(const std::string& path) {
  if (path == kShippedWeights)
    return std::string(pruner_shipped_weights, pruner_shipped_weights_end);
  return read_file(path);
}

}  // namespace pruner
