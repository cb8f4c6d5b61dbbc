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

// Pieces of a pickle of protocol 2.
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

/// A persistent id's tuple: the storage `key`, of `count` numbers.
std::string pickled_storage(const std::string& key, size_t count) {
  return "(" + pickled_text("storage") + pickled_global("torch", "FloatStorage") +
         pickled_text(key) + pickled_text("cpu") +
         pickled_integers("", {static_cast<int64_t>(count)}) + "Q";
}

/// _rebuild_tensor_v2 of a storage.
std::string pickled_tensor(const std::string& storage, const WeightTensor& tensor) {
  std::vector<int64_t> strides(tensor.shape.size(), 1);
  for (size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * tensor.shape[d];
  return pickled_global("torch._utils", "_rebuild_tensor_v2") + "(" + storage +
         std::string("K\0", 2) + pickled_integers("(", tensor.shape) +
         pickled_integers("(", strides) + "\x89" + pickled_global("collections", "OrderedDict") +
         ")RtR";
}

/// _load_from_bytes of the format before torch 1.6.
std::string legacy_storage(const std::vector<float>& values) {
  const std::string begin("\x80\x02", 2);
  const int64_t count = static_cast<int64_t>(values.size());
  const std::string bytes = begin + "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19." + begin +
                            "M\xe9\x03." + begin + "}." + begin +
                            pickled_storage("7", values.size()) + "." + begin + "]" +
                            pickled_text("7") + "a." + bytes_of(&count, sizeof(count)) +
                            bytes_of(values.data(), values.size() * sizeof(float));
  const uint32_t length = static_cast<uint32_t>(bytes.size());
  return pickled_global("torch.storage", "_load_from_bytes") + "(B" + bytes_of(&length, 4) + bytes +
         "tR";
}

/// A torch.nn.Module with the tensors under `prefix`, modules in modules.
std::string pickled_module(const std::string& type,
                           const Tensors& tensors,
                           const std::string& prefix) {
  std::string parameters, modules, last;
  for (const auto& [name, tensor] : tensors) {
    if (!name.starts_with(prefix)) continue;
    const std::string rest = name.substr(prefix.size());
    const size_t dot = rest.find('.');
    if (dot == std::string::npos) {
      parameters += pickled_text(rest) + pickled_tensor(legacy_storage(tensor.values), tensor);
    } else if (const std::string child = rest.substr(0, dot); child != last) {
      last = child;
      modules +=
          pickled_text(child) +
          pickled_module("torch.nn.modules.container\nSequential\n", tensors, prefix + child + ".");
    }
  }
  return "c" + type + ")\x81}(" + pickled_text("_parameters") + "}(" + parameters + "u" +
         pickled_text("_modules") + "}(" + modules + "uub";
}

}  // namespace

ModelWeights random_weights(Architecture architecture, uint64_t seed) {
  Rng rng(seed);
  ModelWeights weights{.architecture = architecture,
                       .mode = "base_only",
                       .row_scale = std::vector<float>(kRowFeatures, 1),
                       .dataflow_scale = {},
                       .tensors = {}};
  if (architecture == Architecture::kPacm) weights.dataflow_scale.assign(kDataflowFeatures, 1);
  for (const WeightSpec& spec : tensor_specs(weights)) {
    WeightTensor tensor{.shape = spec.shape, .values = {}};
    int64_t count = 1;
    for (const int64_t extent : spec.shape) count *= extent;
    const double bound = 1 / std::sqrt(static_cast<double>(spec.shape.back()));
    for (int64_t i = 0; i < count; ++i)
      tensor.values.push_back(static_cast<float>(bound * (2 * rng.uniform() - 1)));
    if (spec.name == "norm.running_var")
      for (float& v : tensor.values) v = std::abs(v) + 0.5f;
    weights.tensors[spec.name] = std::move(tensor);
  }
  return weights;
}

std::vector<ZipEntry> state_dict_entries(const Tensors& tensors) {
  std::string pickle("\x80\x02");
  pickle += pickled_global("collections", "OrderedDict") + ")R(";
  std::vector<ZipEntry> entries(1);
  for (const auto& [name, tensor] : tensors) {
    const std::string key = std::to_string(entries.size());
    pickle +=
        pickled_text(name) + pickled_tensor(pickled_storage(key, tensor.values.size()), tensor);
    entries.push_back({"archive/data/" + key,
                       bytes_of(tensor.values.data(), tensor.values.size() * sizeof(float))});
  }
  entries[0] = {"archive/data.pkl", pickle + "u."};
  return entries;
}

std::string pickled_tenset_mlp(const ModelWeights& weights) {
  const WeightTensor scale{{static_cast<int64_t>(weights.row_scale.size())}, weights.row_scale};
  return "\x80\x03(" +
         pickled_module(
             "tvm.auto_scheduler.cost_model.mlp_model\nMLPModule\n", weights.tensors, "") +
         "}" + pickled_text(weights.mode) + pickled_tensor(legacy_storage(scale.values), scale) +
         "t.";
}

}  // namespace pruner
