// ModelWeights and checkpoints that tests make themselves.
#pragma once

#include <string>
#include <string_view>

#include "model/weights.h"
#include "support/zip.h"

namespace pruner {

/// ModelWeights drawn at random, of the size that torch's layers start with; scales of 1.
ModelWeights random_weights(const Architecture& architecture, uint64_t seed);

/// ModelWeights by a formula that others can compute too (tests/golden/reference/README.md).
ModelWeights formula_weights(const Architecture& architecture);

/// The entries of a .pth that torch.save(state_dict) makes of the tensors.
std::vector<ZipEntry> state_dict_entries(const Tensors& tensors);

}  // namespace pruner
