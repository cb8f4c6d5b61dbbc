// The weights of PaCM that come with the program: trained on measured programs of CPUs
// (bench/draft_transfer.py pretrain). The mode pam starts from them on a CPU.
#pragma once

#include <string_view>

namespace pruner {

/// What stands for the file of these weights where one is named, as in --load-model; a file of that
/// name is "./shipped".
inline constexpr const char* kShippedWeights = "shipped";

/// The bytes of models/pam_cpu.safetensors.
std::string_view shipped_weights();

}  // namespace pruner
