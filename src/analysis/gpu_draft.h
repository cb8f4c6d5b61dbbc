// The draft of a GPU's kernels (draft.h).
#pragma once

#include "analysis/draft.h"

namespace pruner {

Draft gpu_draft(const LoopNest& nest, const Gpu& gpu);

}  // namespace pruner
