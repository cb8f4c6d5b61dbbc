// The layers that GoogLeNet and Inception-v3 share.
#pragma once

#include "graph/networks/network_builder.h"

namespace pruner {

/// Adds a Conv, a batch norm with torchvision's epsilon of these networks, and a relu.
inline ValueId inception_conv(NetworkBuilder& b,
                              const std::string& name,
                              ValueId x,
                              ConvLayer layer) {
  layer.then = Nonlinearity::kRelu;
  layer.epsilon = 1e-3;
  return b.conv_norm(name, x, layer);
}

}  // namespace pruner
