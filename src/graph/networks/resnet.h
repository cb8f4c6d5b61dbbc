// The residual networks' features, for classifiers and as other networks' backbone.
#pragma once

#include <array>

#include "graph/networks/network_builder.h"

namespace pruner {

struct Resnet {
  bool bottleneck = true;                    // else two 3x3 convolutions a block
  std::array<int, 4> depths = {3, 4, 6, 3};  // blocks of a stage
  int64_t groups = 1, width = 64;            // channels of a group in the first stage
  std::array<bool, 4> dilated = {};          // stages that dilate instead of taking a stride
};

/// Returns the last stage's output, at 1/32 of the size of `image` (less if stages are dilated).
/// Layers have torchvision's names, after `prefix`.
ValueId resnet_features(NetworkBuilder& b,
                        const std::string& prefix,
                        ValueId image,
                        const Resnet& resnet);

}  // namespace pruner
