// Checkpoints of the published models as torch 1.8 wrote them: a file in, weights out, unchecked.
// No code of the file runs (model/pickle.h).
#pragma once

#include <string>
#include <string_view>

#include "model/weights.h"

namespace pruner {

/// A .pth: a zip archive of a state dict (torch.save). It holds no scales.
Result<ModelWeights> read_torch_state_dict(const std::string& path);

/// The bytes of a .pkl (pickle.dump) of (PaCM, mode, scales of rows, scales of data flow), or of
/// (TenSetMLP, local models, mode, scales of rows).
Result<ModelWeights> read_torch_pickle(std::string_view bytes);

}  // namespace pruner
