// The attention of Swin (Liu et al. 2021), by itself for tests.
#pragma once

#include "graph/networks/network_builder.h"

namespace pruner {

/// Attention inside of windows of 7x7 pixels of x, [batch, height, width, channels], which are
/// shifted by three pixels where there are several; below and to the right windows are filled with
/// zeros.
ValueId window_attention(
    NetworkBuilder& b, const std::string& name, ValueId x, int64_t heads, bool shifted);

}  // namespace pruner
