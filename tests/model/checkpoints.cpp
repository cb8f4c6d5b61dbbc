#include "model/checkpoints.h"

#include <cmath>

#include "model/pickle_writer.h"
#include "support/check.h"
#include "support/rng.h"

namespace pruner {
namespace {

/// Returns the shape that a tensor has in the published networks.
std::vector<int64_t> published_shape(const WeightSpec& spec) {
  std::vector<int64_t> shape = spec.shape;
  if (shape.back() == kRowFeatures) shape.back() = kPublishedRowFeatures;
  return shape;
}

std::string bytes_of(const void* data, size_t count) {
  return {static_cast<const char*>(data), count};
}

/// _rebuild_tensor_v2 of the storage `key`, which lies outside of the stream.
Pickled pickled_tensor(const std::string& key, const WeightTensor& tensor) {
  std::vector<Pickled> extents, strides(tensor.shape.size());
  for (const int64_t extent : tensor.shape) extents.push_back(pickled_integer(extent));
  int64_t stride = 1;
  for (size_t d = strides.size(); d-- > 0; stride *= tensor.shape[d])
    strides[d] = pickled_integer(stride);
  const Pickled storage = pickled_tuple({pickled_text("storage"),
                                         pickled_global("torch FloatStorage"),
                                         pickled_text(key),
                                         pickled_text("cpu"),
                                         pickled_integer(std::ssize(tensor.values))});
  return pickled_call("torch._utils _rebuild_tensor_v2",
                      {pickled_persistent(storage),
                       pickled_integer(0),
                       pickled_tuple(extents),
                       pickled_tuple(strides),
                       pickled_bool(false),
                       pickled_ordered_dict({})});
}

}  // namespace

ModelWeights random_weights(const Architecture& architecture, uint64_t seed) {
  Rng rng(seed);
  ModelWeights weights{.architecture = &architecture};
  for (const Branch& branch : branches_of(architecture))
    weights.scale[branch.input].assign(static_cast<size_t>(input_row(branch.input).width), 1);
  if (architecture.reads(Input::kStatements))
    weights.scale[Input::kStatements].resize(kPublishedRowFeatures);
  for (const WeightSpec& spec : tensor_specs(weights)) {
    WeightTensor tensor{.shape = published_shape(spec), .values = {}};
    int64_t count = 1;
    for (const int64_t extent : tensor.shape) count *= extent;
    const double bound = 1 / std::sqrt(static_cast<double>(tensor.shape.back()));
    for (int64_t i = 0; i < count; ++i)
      tensor.values.push_back(static_cast<float>(bound * (2 * rng.uniform() - 1)));
    if (spec.name == "norm.running_var")
      for (float& v : tensor.values) v = std::abs(v) + 0.5f;
    weights.tensors[spec.name] = std::move(tensor);
  }
  CHECK(add_unit_columns(weights).ok());
  return weights;
}

ModelWeights formula_weights(const Architecture& architecture) {
  ModelWeights weights{.architecture = &architecture, .form = kGpuPrimitives};
  for (int i = 0; i < kPublishedRowFeatures; ++i)
    weights.scale[Input::kStatements].push_back(static_cast<float>(16 + i % 7));
  for (int i = 0; i < kDataflowFeatures; ++i)
    weights.scale[Input::kDataflow].push_back(static_cast<float>(32 + i % 5));
  for (const WeightSpec& spec : tensor_specs(weights))
    weights.tensors[spec.name] = {.shape = published_shape(spec), .values = {}};
  int64_t number = 0;  // number of the tensor in alphabetical order
  for (auto& [name, tensor] : weights.tensors) {
    int64_t count = 1;
    for (const int64_t extent : tensor.shape) count *= extent;
    const bool matrix = tensor.shape.size() == 2;
    const double bound = matrix ? 1 / std::sqrt(static_cast<double>(tensor.shape[1])) : 0.1;
    const bool positive = name == "norm.weight" || name == "norm.running_var";
    for (int64_t j = 0; j < count; ++j) {
      const double u = static_cast<double>((7 * j * j + 31 * j + 101 * number) % 2003) / 2003;
      tensor.values.push_back(static_cast<float>(positive ? 0.5 + u : bound * (2 * u - 1)));
    }
    ++number;
  }
  CHECK(add_unit_columns(weights).ok());
  return weights;
}

std::vector<ZipEntry> state_dict_entries(const Tensors& tensors) {
  PickledItems items;
  std::vector<ZipEntry> entries(1);
  for (const auto& [name, tensor] : tensors) {
    const std::string key = std::to_string(entries.size());
    items.emplace_back(name, pickled_tensor(key, tensor));
    entries.push_back({"archive/data/" + key,
                       bytes_of(tensor.values.data(), tensor.values.size() * sizeof(float))});
  }
  entries[0] = {"archive/data.pkl", print_pickle(pickled_ordered_dict(items))};
  return entries;
}

}  // namespace pruner
