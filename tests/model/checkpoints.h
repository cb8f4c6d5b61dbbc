// Weights and checkpoints that tests make themselves.
#pragma once

#include <string>
#include <string_view>

#include "model/weights.h"
#include "support/zip.h"

namespace pruner {

/// Weights drawn at random, of the size that torch's layers start with; scales of 1.
Weights random_weights(Architecture architecture, uint64_t seed);

/// Pieces of a pickle of protocol 2.
std::string pickled_text(std::string_view text);
std::string pickled_integers(std::string_view opcodes_before, const std::vector<int64_t>& integers);

/// The entries of a .pth that torch.save(state_dict) makes of the tensors.
std::vector<ZipEntry> state_dict_entries(const Tensors& tensors);

}  // namespace pruner
