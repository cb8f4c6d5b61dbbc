// The .pkl of a network, as the published scripts load it: the object of their class, with its
// layers, and what goes with it. A class is a name here; the loader has the code.
#include <cstring>

#include "model/pickle_writer.h"
#include "model/torch_checkpoint.h"

namespace pruner {
namespace {

constexpr double kNormMomentum = 0.1;

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// A tensor with a storage of its own, in torch's format before 1.6: pickles of a magic number, a
/// version, the machine, the storage and its key, then a count and the values.
template <typename T>
Pickled tensor_of(std::string_view storage_class,
                  const std::vector<int64_t>& shape,
                  const std::vector<T>& values) {
  const Pickled key = pickled_text("0");
  const auto count = static_cast<int64_t>(values.size());
  const Pickled sizes = pickled_dict(
      {{"short", pickled_integer(2)}, {"int", pickled_integer(4)}, {"long", pickled_integer(4)}});
  const Pickled machine = pickled_dict({{"protocol_version", pickled_integer(1001)},
                                        {"little_endian", pickled_bool(true)},
                                        {"type_sizes", sizes}});
  const Pickled storage = pickled_tuple({pickled_text("storage"),
                                         pickled_global(storage_class),
                                         key,
                                         pickled_text("cpu"),
                                         pickled_integer(count),
                                         pickled_none()});
  const std::string file = print_pickle("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19") +
                           print_pickle(pickled_integer(1001)) + print_pickle(machine) +
                           print_pickle(pickled_persistent(storage)) +
                           print_pickle(pickled_list({key})) + bytes_of(std::vector{count}) +
                           bytes_of(values);
  std::vector<Pickled> extents, strides(shape.size());
  for (const int64_t extent : shape) extents.push_back(pickled_integer(extent));
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) strides[d] = pickled_integer(stride);
  return pickled_call("torch._utils _rebuild_tensor_v2",
                      {pickled_call("torch.storage _load_from_bytes", {pickled_bytes(file)}),
                       pickled_integer(0),
                       pickled_tuple(extents),
                       pickled_tuple(strides),
                       pickled_bool(false),
                       pickled_ordered_dict({})});
}

Pickled vector_of(const std::vector<float>& values) {
  return tensor_of("torch FloatStorage", {static_cast<int64_t>(values.size())}, values);
}

struct Module {
  std::string_view name;  // class name
  PickledItems parameters = {}, buffers = {}, modules = {}, attributes = {};
};

/// Pickles a module in evaluation mode, as a training that validates leaves the module: a program's
/// score depends on no other program.
Pickled pickled(const Module& module) {
  PickledItems all = {
      {"training", pickled_bool(false)},
      {"_parameters", pickled_ordered_dict(module.parameters)},
      {"_buffers", pickled_ordered_dict(module.buffers)},
      {"_non_persistent_buffers_set", pickled_call("builtins set", {pickled_list({})})},
      {"_backward_hooks", pickled_ordered_dict({})},
      {"_is_full_backward_hook", pickled_none()},
      {"_forward_hooks", pickled_ordered_dict({})},
      {"_forward_pre_hooks", pickled_ordered_dict({})},
      {"_state_dict_hooks", pickled_ordered_dict({})},
      {"_load_state_dict_pre_hooks", pickled_ordered_dict({})},
      {"_modules", pickled_ordered_dict(module.modules)}};
  all.insert(all.end(), module.attributes.begin(), module.attributes.end());
  return pickled_object(module.name, all);
}

/// The layers of a network, by the names of their tensors.
class Layers {
 public:
  explicit Layers(const ModelWeights& weights)
      : architecture_(*weights.architecture), tensors_(weights.tensors) {}

  /// The module of a name: its one layer, a sequence of them with a ReLU behind each, or nothing.
  Pickled module(const std::string& name) const {
    PickledItems sequence;
    for (const Layer& layer : architecture_.layers) {
      if (module_of(layer.name) != name) continue;
      if (layer.kind == LayerKind::kAttention) return attention(name, layer.heads);
      if (layer.kind == LayerKind::kBatchNorm) return batch_norm(name);
      if (layer.kind == LayerKind::kLinear) return linear(name);
      sequence.emplace_back(std::to_string(sequence.size()), linear(layer.name));
      sequence.emplace_back(std::to_string(sequence.size()),
                            pickled({.name = "torch.nn.modules.activation ReLU",
                                     .attributes = {{"inplace", pickled_bool(false)}}}));
    }
    if (sequence.empty()) return pickled({.name = "torch.nn.modules.linear Identity"});
    return pickled({.name = "torch.nn.modules.container Sequential", .modules = sequence});
  }

 private:
  Pickled linear(const std::string& name) const {
    const std::vector<int64_t>& shape = at(name + ".weight").shape;
    return pickled({.name = "torch.nn.modules.linear Linear",
                    .parameters = {{"weight", parameter(name + ".weight")},
                                   {"bias", parameter(name + ".bias")}},
                    .attributes = {{"in_features", pickled_integer(shape[1])},
                                   {"out_features", pickled_integer(shape[0])}}});
  }

  Pickled batch_norm(const std::string& name) const {
    const Pickled batches = tensor_of("torch LongStorage", {}, std::vector<int64_t>{0});
    return pickled({.name = "torch.nn.modules.batchnorm BatchNorm1d",
                    .parameters = {{"weight", parameter(name + ".weight")},
                                   {"bias", parameter(name + ".bias")}},
                    .buffers = {{"running_mean", tensor(name + ".running_mean")},
                                {"running_var", tensor(name + ".running_var")},
                                {"num_batches_tracked", batches}},
                    .attributes = {{"num_features", pickled_integer(at(name + ".weight").shape[0])},
                                   {"eps", pickled_float(double{kBatchNormEpsilon})},
                                   {"momentum", pickled_float(kNormMomentum)},
                                   {"affine", pickled_bool(true)},
                                   {"track_running_stats", pickled_bool(true)}}});
  }

  /// The projection is a plain linear layer, whose subclass has another name in each torch.
  Pickled attention(const std::string& name, int64_t heads) const {
    const int64_t width = at(name + ".in_proj_weight").shape[1];
    return pickled({.name = "torch.nn.modules.activation MultiheadAttention",
                    .parameters = {{"in_proj_weight", parameter(name + ".in_proj_weight")},
                                   {"q_proj_weight", pickled_none()},
                                   {"k_proj_weight", pickled_none()},
                                   {"v_proj_weight", pickled_none()},
                                   {"in_proj_bias", parameter(name + ".in_proj_bias")}},
                    .modules = {{"out_proj", linear(name + ".out_proj")}},
                    .attributes = {{"embed_dim", pickled_integer(width)},
                                   {"kdim", pickled_integer(width)},
                                   {"vdim", pickled_integer(width)},
                                   {"_qkv_same_embed_dim", pickled_bool(true)},
                                   {"num_heads", pickled_integer(heads)},
                                   {"dropout", pickled_float(0)},
                                   {"batch_first", pickled_bool(false)},
                                   {"head_dim", pickled_integer(width / heads)},
                                   {"bias_k", pickled_none()},
                                   {"bias_v", pickled_none()},
                                   {"add_zero_attn", pickled_bool(false)}}});
  }

  const WeightTensor& at(const std::string& name) const { return tensors_.find(name)->second; }
  Pickled tensor(const std::string& name) const {
    return tensor_of("torch FloatStorage", at(name).shape, at(name).values);
  }
  Pickled parameter(const std::string& name) const {
    return pickled_call("torch._utils _rebuild_parameter",
                        {tensor(name), pickled_bool(true), pickled_ordered_dict({})});
  }

  const Architecture& architecture_;
  const Tensors& tensors_;
};

}  // namespace

std::string print_torch_pickle(const ModelWeights& weights) {
  const Layers layers(weights);
  const PublishedClass& published = *weights.architecture->pickled_class;
  Module network = {.name = published.name};
  // In the order of the classes: momentum walks through the parameters of two networks at once.
  for (const std::string name : weights.architecture->modules)
    network.modules.emplace_back(name, layers.module(name));
  for (const auto& [name, value] : published.attributes)
    network.attributes.emplace_back(name, pickled_integer(value));
  if (weights.trained_on)
    network.attributes.emplace_back(kTrainedOnKey,
                                    pickled_text(print_trained_on(*weights.trained_on)));
  std::vector<Pickled> tuple = {pickled(network), pickled_text(weights.mode)};
  for (const Branch& branch : branches_of(*weights.architecture))
    tuple.push_back(vector_of(weights.scale[branch.input]));
  if (tuple.size() < 4) tuple.insert(tuple.begin() + 1, pickled_none());  // no local models
  return print_pickle(pickled_tuple(tuple));
}

}  // namespace pruner
