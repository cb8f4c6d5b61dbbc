// The block of MobileNets, MnasNet and EfficientNet: a 1x1 convolution that expands, a depthwise
// one, squeeze-and-excite where asked for, a 1x1 convolution that projects, and the input added
// where the shapes agree.
#pragma once

#include "graph/networks/network_builder.h"

namespace pruner {

/// Multiplies each channel by a gate of its mean (Hu et al. 2018), through a layer of `squeezed`
/// channels.
struct SqueezeAndExcite {
  int64_t squeezed;
  Nonlinearity then = Nonlinearity::kRelu, gate = Nonlinearity::kSigmoid;
};
ValueId squeeze_and_excite(NetworkBuilder& b,
                           const std::string& name,
                           ValueId x,
                           const SqueezeAndExcite& layer);

struct InvertedResidual {
  int64_t expanded = 0, channels = 0;  // inside and out; no expansion where that is the input's
  int64_t kernel = 3, stride = 1;
  int64_t squeezed = 0;  // channels inside the squeeze-and-excite; 0: there is none
  Nonlinearity then = Nonlinearity::kRelu6;
  Nonlinearity squeeze = Nonlinearity::kRelu;  // inside the squeeze-and-excite
  Nonlinearity gate = Nonlinearity::kSigmoid;
  double epsilon = 1e-5;
};

ValueId inverted_residual(NetworkBuilder& b,
                          const std::string& name,
                          ValueId x,
                          const InvertedResidual& block);

/// The multiple of 8 nearest to `channels`, raised where that is less than 90 % of it
/// (torchvision's _make_divisible).
int64_t round_channels(double channels);

}  // namespace pruner
