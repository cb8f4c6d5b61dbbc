#include "model/torch_checkpoint.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <optional>

#include "model/pickle.h"
#include "support/zip.h"

namespace pruner {
namespace {

constexpr std::string_view kRebuildTensor = "torch._utils _rebuild_tensor_v2";
constexpr std::string_view kRebuildParameter = "torch._utils _rebuild_parameter";
constexpr std::string_view kLoadFromBytes = "torch.storage _load_from_bytes";

/// Everything that occurs in a checkpoint, beside the networks' own classes.
constexpr std::array kTorchClasses = {
    kRebuildTensor,
    kRebuildParameter,
    kLoadFromBytes,
    std::string_view("builtins set"),
    std::string_view("collections OrderedDict"),
    std::string_view("torch FloatStorage"),
    std::string_view("torch DoubleStorage"),
    std::string_view("torch LongStorage"),
    std::string_view("torch.nn.modules.activation MultiheadAttention"),
    std::string_view("torch.nn.modules.activation ReLU"),
    std::string_view("torch.nn.modules.activation Sigmoid"),
    std::string_view("torch.nn.modules.batchnorm BatchNorm1d"),
    std::string_view("torch.nn.modules.container Sequential"),
    std::string_view("torch.nn.modules.linear Identity"),
    std::string_view("torch.nn.modules.linear Linear"),
    std::string_view("torch.nn.modules.linear NonDynamicallyQuantizableLinear"),
    std::string_view("torch.nn.modules.linear _LinearWithBias"),
    std::string_view("tvm.auto_scheduler.cost_model.mlp_model MLPModule"),
};
std::vector<std::string_view> known_classes() {
  std::vector<std::string_view> names(kTorchClasses.begin(), kTorchClasses.end());
  for (const Architecture* architecture : kArchitectures)
    if (architecture->pickled_class) names.push_back(architecture->pickled_class->name);
  return names;
}

constexpr int kMaxDepth = 16;  // nested modules at most; a damaged file may nest without end

static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian");

struct Storage {
  std::string type;  // class name, such as "FloatStorage"
  std::string bytes;
};

/// The storages that lie outside of a pickle: their (marker, class, key, device, count) → bytes.
using FindStorage = std::function<Result<std::string>(std::string_view key)>;

Result<Storage> persistent_storage(const Pickle& pickle, PickleId id, const FindStorage& find) {
  const PickleNode& node = pickle[id];
  if (node.kind != PickleKind::kPersistent) return Error("a storage is expected");
  const PickleNode& tuple = pickle[node.items[0]];
  if (tuple.kind != PickleKind::kTuple || tuple.items.size() < 5 ||
      pickle[tuple.items[1]].kind != PickleKind::kGlobal ||
      pickle[tuple.items[2]].kind != PickleKind::kText)
    return Error("a storage is damaged");
  const std::string_view type = pickle[tuple.items[1]].text;
  if (!type.ends_with("Storage")) return Error("a storage of a strange class");
  TRY_ASSIGN(std::string bytes, find(pickle[tuple.items[2]].text));
  return Storage{std::string(type.substr(type.find(' ') + 1)), std::move(bytes)};
}

/// torch's format before 1.6, which pickle.dump still writes for each storage: pickles of a magic
/// number, a version, the machine, the storage and a list of one key, then a count and the values.
Result<Storage> legacy_storage(std::string_view bytes) {
  std::array<Pickle, 5> pickles;
  for (Pickle& pickle : pickles) {
    TRY_ASSIGN(pickle, read_pickle(bytes, known_classes()));
    bytes.remove_prefix(pickle.bytes);
  }
  if (pickles[0][pickles[0].root].text != "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19")
    return Error("a storage without torch's magic number");
  if (bytes.size() < sizeof(int64_t)) return Error("a storage is truncated");
  bytes.remove_prefix(sizeof(int64_t));
  return persistent_storage(pickles[3], pickles[3].root, [&](std::string_view) {
    return Result<std::string>(std::string(bytes));
  });
}

Result<Storage> storage_of(const Pickle& pickle, PickleId id, const FindStorage& find) {
  const PickleNode& node = pickle[id];
  if (node.kind == PickleKind::kPersistent) return persistent_storage(pickle, id, find);
  if (node.kind != PickleKind::kCall || pickle[node.callee].text != kLoadFromBytes)
    return Error("a storage is expected");
  const PickleNode& arguments = pickle[node.arguments];
  if (arguments.items.size() != 1 || pickle[arguments.items[0]].kind != PickleKind::kText)
    return Error("a storage is damaged");
  return legacy_storage(pickle[arguments.items[0]].text);
}

template <typename T>
std::vector<float> values_of(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<float>(value);
  }
  return values;
}

Result<std::vector<float>> values_of(const Storage& storage) {
  if (storage.type == "FloatStorage") return values_of<float>(storage.bytes);
  if (storage.type == "DoubleStorage") return values_of<double>(storage.bytes);
  if (storage.type == "LongStorage") return values_of<int64_t>(storage.bytes);
  return Error("a storage of type ", storage.type, ", expected FloatStorage");
}

Result<std::vector<int64_t>> integers_of(const Pickle& pickle, PickleId id) {
  const PickleNode& node = pickle[id];
  if (node.kind != PickleKind::kTuple) return Error("a shape is damaged");
  std::vector<int64_t> integers;
  for (const PickleId item : node.items) {
    if (pickle[item].kind != PickleKind::kInteger || pickle[item].integer < 0)
      return Error("a shape is damaged");
    integers.push_back(pickle[item].integer);
  }
  return integers;
}

/// The tensor at `id`: _rebuild_tensor_v2(storage, offset, shape, strides, ...), perhaps within a
/// _rebuild_parameter(tensor, ...).
Result<WeightTensor> tensor_of(const Pickle& pickle, PickleId id, const FindStorage& find) {
  PickleNode node = pickle[id];
  if (node.kind == PickleKind::kCall && pickle[node.callee].text == kRebuildParameter &&
      !pickle[node.arguments].items.empty())
    node = pickle[pickle[node.arguments].items[0]];
  if (node.kind != PickleKind::kCall || pickle[node.callee].text != kRebuildTensor)
    return Error("expected a tensor");
  const std::vector<PickleId>& arguments = pickle[node.arguments].items;
  if (arguments.size() < 4 || pickle[arguments[1]].kind != PickleKind::kInteger)
    return Error("a tensor is damaged");
  TRY_ASSIGN(const Storage storage, storage_of(pickle, arguments[0], find));
  TRY_ASSIGN(const std::vector<float> values, values_of(storage));
  WeightTensor tensor;
  TRY_ASSIGN(tensor.shape, integers_of(pickle, arguments[2]));
  TRY_ASSIGN(const std::vector<int64_t> strides, integers_of(pickle, arguments[3]));

  // Only what torch writes: values in row-major order from the offset on.
  const int64_t offset = pickle[arguments[1]].integer;
  const int64_t stored = static_cast<int64_t>(values.size());
  int64_t count = 1;
  if (strides.size() != tensor.shape.size()) return Error("a shape is damaged");
  for (size_t d = strides.size(); d-- > 0;) {
    if (tensor.shape[d] != 1 && strides[d] != count) return Error("values are not contiguous");
    if (tensor.shape[d] > stored / std::max<int64_t>(count, 1)) return Error("truncated");
    count *= tensor.shape[d];
  }
  if (offset < 0 || offset > stored - count) return Error("truncated");
  tensor.values.assign(values.begin() + offset, values.begin() + offset + count);
  return tensor;
}

/// Adds the tensors of a dictionary under `prefix`; those of integers (batch norm's counter) are no
/// weights, and what is None is absent.
Result<Unit> add_tensors(const Pickle& pickle,
                         PickleId dict,
                         const std::string& prefix,
                         const FindStorage& find,
                         Tensors& tensors) {
  if (dict == kNoNode) return Unit{};
  const PickleNode& node = pickle[dict];
  for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
    const PickleNode& key = pickle[node.items[i]];
    if (key.kind != PickleKind::kText) return Error("a name is no text");
    const std::string name = prefix + std::string(key.text);
    if (pickle[node.items[i + 1]].kind == PickleKind::kNone) continue;
    Result<WeightTensor> tensor = tensor_of(pickle, node.items[i + 1], find);
    if (!tensor.ok()) return Error("tensor \"", name, "\": ", tensor.error().message());
    if (!name.ends_with("num_batches_tracked")) tensors[name] = *std::move(tensor);
  }
  return Unit{};
}

/// Adds the tensors of a torch.nn.Module and of the modules within.
Result<Unit> add_module(
    const Pickle& pickle, PickleId module, const std::string& prefix, int depth, Tensors& tensors) {
  const PickleNode& node = pickle[module];
  if (node.kind == PickleKind::kNone) return Unit{};
  if (node.kind != PickleKind::kCall || node.state == kNoNode || depth > kMaxDepth)
    return Error("expected a network, found something else at \"", prefix, "\"");
  const FindStorage none = [](std::string_view) {
    return Result<std::string>(Error("a storage outside of the file"));
  };
  TRY(add_tensors(pickle, pickle.find(node.state, "_parameters"), prefix, none, tensors));
  TRY(add_tensors(pickle, pickle.find(node.state, "_buffers"), prefix, none, tensors));
  const PickleId within = pickle.find(node.state, "_modules");
  if (within == kNoNode) return Unit{};
  const std::vector<PickleId>& modules = pickle[within].items;
  for (size_t i = 0; i + 1 < modules.size(); i += 2) {
    const std::string name(pickle[modules[i]].text);
    TRY(add_module(pickle, modules[i + 1], prefix + name + ".", depth + 1, tensors));
  }
  return Unit{};
}

/// The published network that has most of the tensors; of several the smallest.
const Architecture* architecture_of(const Tensors& tensors) {
  const auto misfit = [&](const Architecture* architecture) {
    const std::vector<WeightSpec> specs = tensor_specs({.architecture = architecture});
    const auto known = std::ranges::count_if(
        specs, [&](const WeightSpec& spec) { return tensors.contains(spec.name); });
    return std::tuple(!architecture->pickled_class, -known, specs.size());
  };
  return *std::ranges::min_element(kArchitectures, {}, misfit);
}

Result<std::vector<float>> scale_of(const Pickle& pickle, PickleId id) {
  const Result<WeightTensor> tensor = tensor_of(pickle, id, [](std::string_view) {
    return Result<std::string>(Error("a storage outside of the file"));
  });
  if (!tensor.ok()) return Error("scales: ", tensor.error().message());
  return tensor->values;
}

}  // namespace

Result<ModelWeights> read_torch_state_dict(const std::string& path) {
  TRY_ASSIGN(const ZipReader zip, ZipReader::open(path));
  const auto entry = [&](std::string_view end) -> Result<std::string> {
    for (size_t i = 0; i < zip.names().size(); ++i) {
      if (!zip.names()[i].ends_with(end)) continue;
      Result<std::string> bytes = zip.read(i);
      if (!bytes.ok()) return Error("entry \"", zip.names()[i], "\": ", bytes.error().message());
      return bytes;
    }
    return Error("it has no entry \"", end, "\"");
  };
  const auto read = [&]() -> Result<ModelWeights> {
    TRY_ASSIGN(const std::string bytes, entry("/data.pkl"));
    TRY_ASSIGN(const Pickle pickle, read_pickle(bytes, known_classes()));
    const PickleNode& root = pickle[pickle.root];
    if (root.kind != PickleKind::kDict && root.kind != PickleKind::kCall)
      return Error("expected a state dict");
    ModelWeights weights;
    TRY(add_tensors(
        pickle,
        pickle.root,
        "",
        [&](std::string_view key) { return entry("/data/" + std::string(key)); },
        weights.tensors));
    weights.architecture = architecture_of(weights.tensors);
    return weights;
  };
  Result<ModelWeights> weights = read();
  if (!weights.ok()) return Error(path, ": ", weights.error().message());
  return weights;
}

Result<ModelWeights> read_torch_pickle(std::string_view bytes) {
  TRY_ASSIGN(const Pickle pickle, read_pickle(bytes, known_classes()));
  const PickleNode& tuple = pickle[pickle.root];
  if (tuple.kind != PickleKind::kTuple || tuple.items.size() != 4)
    return Error("expected a tuple of network, mode and scales");
  ModelWeights weights;
  TRY(add_module(pickle, tuple.items[0], "", 0, weights.tensors));
  weights.architecture = architecture_of(weights.tensors);
  const std::vector<Branch> branches = branches_of(*weights.architecture);
  const size_t first_scale = tuple.items.size() - branches.size();
  const PickleNode& mode = pickle[tuple.items[first_scale - 1]];
  if (mode.kind != PickleKind::kText) return Error("the mode is no text");
  weights.mode = mode.text;
  if (const PickleId seen = pickle.find(pickle[tuple.items[0]].state, kTrainedOnKey);
      seen != kNoNode) {
    Result<TrainedOn> trained_on = parse_trained_on(pickle[seen].text);
    if (!trained_on.ok()) return Error(kTrainedOnKey, ": ", trained_on.error().message());
    weights.trained_on = *std::move(trained_on);
  }
  for (size_t i = 0; i < branches.size(); ++i) {
    TRY_ASSIGN(weights.scale[branches[i].input], scale_of(pickle, tuple.items[first_scale + i]));
  }
  return weights;
}

}  // namespace pruner
