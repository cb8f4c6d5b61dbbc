// The network of whatever architecture weights are of, for scoring.
#pragma once

#include <span>
#include <variant>
#include <vector>

#include "model/nn/network.h"
#include "model/nn/tlp_network.h"

namespace pruner {

class AnyNetwork {
 public:
  /// `weights` must be checked (check_weights); `head` is of a TLP with several.
  explicit AnyNetwork(const ModelWeights& weights, size_t head = 0);

  /// One score a program, higher is faster, over `jobs` threads; minus infinity for a program
  /// without what the network reads.
  std::vector<float> predict(std::span<const ProgramFeatures> programs, int jobs) const;

 private:
  std::variant<Network, TlpNetwork> network_;
};

/// Whether a program has what the architecture reads.
bool is_readable(const ProgramFeatures& program, Architecture architecture);

}  // namespace pruner
