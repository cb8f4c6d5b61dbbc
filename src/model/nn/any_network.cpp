#include "model/nn/any_network.h"

namespace pruner {

static std::variant<Network, TlpNetwork> make(const ModelWeights& weights, size_t head) {
  if (weights.architecture == Architecture::kTlp) return TlpNetwork(weights, head);
  return Network(weights);
}

AnyNetwork::AnyNetwork(const ModelWeights& weights, size_t head) : network_(make(weights, head)) {}

std::vector<float> AnyNetwork::predict(std::span<const ProgramFeatures> programs, int jobs) const {
  return std::visit([&](const auto& network) { return network.predict(programs, jobs); }, network_);
}

bool is_readable(const ProgramFeatures& program, Architecture architecture) {
  return architecture == Architecture::kTlp ? !program.primitives.empty() : !program.rows.empty();
}

}  // namespace pruner
