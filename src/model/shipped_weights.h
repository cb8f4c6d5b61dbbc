// The weights of PaCM that come with the program: trained on measured programs of CPUs
// (bench/draft_transfer.py pretrain). The mode pam starts from them on a CPU.
#pragma once

#include <string>

#include "support/result.h"

namespace pruner {

/// `kShippedWeights` names these weights in place of a file, as in --load-model; a file of the same
/// name is given as "./shipped".
inline constexpr const char* kShippedWeights = "shipped";

/// Returns the bytes of a file of weights or trees. For kShippedWeights, returns the bytes of
/// models/pam_cpu.safetensors.
Result<std::string> read_model_file(const std::string& path);

}  // namespace pruner
