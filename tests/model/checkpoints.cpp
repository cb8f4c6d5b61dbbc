#include "model/checkpoints.h"

#include <cmath>
#include <cstring>

#include "support/rng.h"

namespace pruner {
namespace {

std::string bytes_of(const void* data, size_t count) {
  return {static_cast<const char*>(data), count};
}

std::string pickled_global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}

}  // namespace

Weights random_weights(Architecture architecture, uint64_t seed) {
  Rng rng(seed);
  Weights weights{.architecture = architecture,
                  .mode = "base_only",
                  .row_scale = std::vector<float>(kRowFeatures, 1),
                  .dataflow_scale = {},
                  .tensors = {}};
  if (architecture == Architecture::kPacm) weights.dataflow_scale.assign(kDataflowFeatures, 1);
  for (const TensorSpec& spec : tensor_specs(architecture)) {
    Tensor tensor{.shape = spec.shape, .values = {}};
    int64_t count = 1;
    for (const int64_t extent : spec.shape) count *= extent;
    const double bound = 1 / std::sqrt(static_cast<double>(spec.shape.back()));
    for (int64_t i = 0; i < count; ++i)
      tensor.values.push_back(static_cast<float>(bound * (2 * rng.uniform() - 1)));
    if (spec.name == "norm.running_var")
      for (float& v : tensor.values) v = std::abs(v) + 0.5f;
    weights.tensors[std::string(spec.name)] = std::move(tensor);
  }
  return weights;
}

std::string pickled_text(std::string_view text) {
  const uint32_t length = static_cast<uint32_t>(text.size());
  return "X" + bytes_of(&length, 4) + std::string(text);
}

std::string pickled_integers(std::string_view before, const std::vector<int64_t>& integers) {
  std::string out(before);
  for (const int64_t value : integers) {
    const int32_t narrow = static_cast<int32_t>(value);
    out += "J" + bytes_of(&narrow, 4);
  }
  return out + "t";
}

std::vector<ZipEntry> state_dict_entries(const Tensors& tensors) {
  std::string pickle("\x80\x02");
  pickle += pickled_global("collections", "OrderedDict") + ")R(";
  std::vector<ZipEntry> entries(1);
  for (const auto& [name, tensor] : tensors) {
    const std::string key = std::to_string(entries.size());
    std::vector<int64_t> strides(tensor.shape.size(), 1);
    for (size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * tensor.shape[d];
    pickle += pickled_text(name) + pickled_global("torch._utils", "_rebuild_tensor_v2") + "((" +
              pickled_text("storage") + pickled_global("torch", "FloatStorage") +
              pickled_text(key) + pickled_text("cpu") +
              pickled_integers("", {static_cast<int64_t>(tensor.values.size())}) +
              std::string("QK\0", 3) + pickled_integers("(", tensor.shape) +
              pickled_integers("(", strides) + "\x89" +
              pickled_global("collections", "OrderedDict") + ")RtR";
    entries.push_back({"archive/data/" + key,
                       bytes_of(tensor.values.data(), tensor.values.size() * sizeof(float))});
  }
  entries[0] = {"archive/data.pkl", pickle + "u."};
  return entries;
}

}  // namespace pruner
