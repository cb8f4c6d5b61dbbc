#include "model/shipped_weights.h"

// Of cmake/shipped_weights.S.in.
extern "C" const char pruner_shipped_weights[], pruner_shipped_weights_end[];

namespace pruner {

std::string_view shipped_weights() { return {pruner_shipped_weights, pruner_shipped_weights_end}; }

}  // namespace pruner
