#include <algorithm>

#include "graph/networks/network_builder.h"

namespace pruner {

static constexpr NetworkRow kNetworks[] = {
    {"bert_tiny", build_bert_tiny, false},
    {"mobilenet_v2", build_mobilenet_v2, true},
    {"resnet_18", build_resnet_18, true},
    {"resnet_50", build_resnet_50, true},
};

std::vector<std::string> network_names() {
  std::vector<std::string> names;
  for (const NetworkRow& row : kNetworks) names.emplace_back(row.name);
  return names;
}

Result<Graph> build_network(std::string_view name, const NetworkOptions& options) {
  const auto row = std::find_if(std::begin(kNetworks),
                                std::end(kNetworks),
                                [&](const NetworkRow& r) { return r.name == name; });
  if (row == std::end(kNetworks)) {
    std::string known;
    for (const std::string& n : network_names()) known += (known.empty() ? "" : ", ") + n;
    return Error("there is no network \"", name, "\"; built in are ", known);
  }
  if (options.batch_size < 1 || options.batch_size > 4096) {
    return Error("batch size ", options.batch_size, ", expected 1 to 4096");
  }
  if (row->is_image && (options.image_size < 32 || options.image_size > 4096)) {
    return Error("image size ", options.image_size, ", expected 32 to 4096");
  }
  if (!row->is_image && (options.sequence_length < 1 || options.sequence_length > 512)) {
    return Error("sequence length ", options.sequence_length, ", expected 1 to 512");
  }
  return row->build(options);
}

}  // namespace pruner
