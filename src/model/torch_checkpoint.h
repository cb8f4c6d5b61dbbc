// Checkpoints of the published models as torch 1.8 wrote them: a file in, weights out, unchecked,
// and weights to a .pkl. No code of a file runs (model/pickle.h).
#pragma once

#include <string>
#include <string_view>

#include "model/weights.h"

namespace pruner {

/// A .pth: a zip archive of a state dict (torch.save). It holds no scales.
Result<ModelWeights> read_torch_state_dict(const std::string& path);

/// The bytes of a .pkl (pickle.dump) of a tuple of four: the network, local models (TenSetMLP;
/// always None) where it has one input only, the mode, and the scales of each input.
Result<ModelWeights> read_torch_pickle(std::string_view bytes);

/// The same of weights of an architecture with a published class, for the published scripts under
/// any torch from 1.8 on. What they were trained on is an attribute of the network.
std::string print_torch_pickle(const ModelWeights& weights);
inline constexpr const char* kTrainedOnKey = "trained_on";

}  // namespace pruner
