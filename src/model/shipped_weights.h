// The weights of PaCM that come with the program: trained on measured programs of CPUs
// (bench/draft_transfer.py pretrain). The mode pam starts from them on a CPU.
#pragma once

#include <string>

#include "support/result.h"

namespace pruner {

/// What stands for the file of these weights where one is named, as in --load-model; a file of that
/// name is "./shipped".
inline constexpr const char* kShippedWeights = "shipped";

/// The bytes of a file of weights or trees; of kShippedWeights those of models/pam_cpu.safetensors.
Result<std::string> read_model_file(const std::string& path);

}  // namespace pruner
