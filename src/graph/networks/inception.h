// What GoogLeNet and Inception-v3 have in common.
#pragma once

#include "graph/networks/network_builder.h"

namespace pruner {

/// Conv, batch norm with torchvision's epsilon of these networks, relu.
inline ValueId inception_conv(NetworkBuilder& b,
                              const std::string& name,
                              ValueId x,
                              ConvLayer layer) {
  layer.then = Nonlinearity::kRelu;
  layer.epsilon = 1e-3;
  return b.conv_norm(name, x, layer);
}

}  // namespace pruner
