#include "dataset/network_set.h"

#include <algorithm>
#include <array>
#include <optional>

#include "ansor/workload_table.h"
#include "graph/partition.h"
#include "support/gzip.h"

namespace pruner {

namespace {

enum class InputKind : uint8_t { kImage, kVideo, kTokens };

/// `NetworkRow` is a network of TenSet, with its inputs in TenSet.
struct NetworkRow {
  const char* name;
  InputKind kind;
  std::array<int64_t, 3> sizes;  // 0: fewer
  std::array<int64_t, 3> batches;
};

constexpr NetworkRow kTenSetNetworks[] = {
    {"resnet_18", InputKind::kImage, {224, 240, 256}, {1, 4, 8}},
    {"resnet_50", InputKind::kImage, {224, 240, 256}, {1, 4, 8}},
    {"mobilenet_v2", InputKind::kImage, {224, 240, 256}, {1, 4, 8}},
    {"mobilenet_v3", InputKind::kImage, {224, 240, 256}, {1, 4, 8}},
    {"wide_resnet_50", InputKind::kImage, {224, 240, 256}, {1, 4, 8}},
    {"resnext_50", InputKind::kImage, {224, 240, 256}, {1, 4, 8}},
    {"inception_v3", InputKind::kImage, {299}, {1, 2, 4}},
    {"densenet_121", InputKind::kImage, {224, 240, 256}, {1, 2, 4}},
    {"resnet3d_18", InputKind::kVideo, {112, 128, 144}, {1, 2, 4}},
    {"bert_tiny", InputKind::kTokens, {64, 128, 256}, {1, 2, 4}},
    {"bert_base", InputKind::kTokens, {64, 128, 256}, {1, 2, 4}},
    {"bert_medium", InputKind::kTokens, {64, 128, 256}, {1, 2, 4}},
    {"bert_large", InputKind::kTokens, {64, 128, 256}, {1, 2, 4}},
    {"dcgan", InputKind::kImage, {64, 80, 96}, {1, 4, 8}},
};

std::vector<int64_t> input_shape(InputKind kind, int64_t batch, int64_t size) {
  switch (kind) {
    case InputKind::kImage: return {batch, 3, size, size};
    case InputKind::kVideo: return {batch, 3, size, size, 16};
    case InputKind::kTokens: return {batch, size};
  }
  return {};
}

/// Adds every input of a network, only at batch size `batch` if `batch` is not 0.
void add_inputs(const NetworkRow& row, int64_t batch, std::vector<NetworkInput>& inputs) {
  for (const int64_t of : row.batches) {
    for (const int64_t size : row.sizes) {
      if (size == 0 || (batch != 0 && of != batch)) continue;
      inputs.push_back({row.name, input_shape(row.kind, of, size)});
    }
  }
}

Result<NetworkInput> network_of_any_input(const std::string& name) {
  const std::vector<std::string> built_in = network_names();
  const auto row =
      std::ranges::find_if(kTenSetNetworks, [&](const NetworkRow& r) { return name == r.name; });
  if (row != std::end(kTenSetNetworks) || std::ranges::find(built_in, name) != built_in.end())
    return NetworkInput{name, {}};
  std::string known;
  for (const NetworkRow& r : kTenSetNetworks) known += std::string(", ") + r.name;
  return Error("\"", name, "\" is no set of networks: all_five, resnet-50, batch-size-1", known);
}

/// Returns the options that build this input; nullopt if the network is not built in.
std::optional<NetworkOptions> build_options(const NetworkInput& input) {
  const std::vector<std::string> built_in = network_names();
  if (std::ranges::find(built_in, input.network) == built_in.end()) return std::nullopt;
  NetworkOptions options;
  if (input.shape.size() >= 4) options.image_size = input.shape[2];
  if (input.shape.size() == 2) options.sequence_length = input.shape[1];
  if (!input.shape.empty()) options.batch_size = input.shape[0];
  return options;
}

std::string name_of(const std::string& network, const std::vector<int64_t>& shape) {
  std::string name = network;
  for (size_t d = 0; d < shape.size(); ++d) name += (d == 0 ? " " : "x") + std::to_string(shape[d]);
  return name;
}

/// Returns the tasks of a built-in network on the target; nullopt if the network is not built in,
/// or cannot be built with this input.
std::optional<std::vector<WeightedTask>> built_in_tasks(const NetworkInput& input,
                                                        const Target& target) {
  const std::optional<NetworkOptions> options = build_options(input);
  if (!options) return std::nullopt;
  Result<Graph> graph = build_network(input.network, *options);
  if (!graph.ok()) return std::nullopt;
  const Result<Partition> cut = partition(*std::move(graph), target);
  if (!cut.ok()) return std::nullopt;
  return extract_tasks(*cut, target);
}

}  // namespace

Result<std::vector<NetworkInput>> network_set(std::string_view name) {
  std::vector<NetworkInput> inputs;
  if (name == "all_five") {
    for (const char* network : {"resnet_18", "resnet_50", "mobilenet_v2", "resnext_50"})
      inputs.push_back({network, {1, 3, 224, 224}});
    for (const char* network : {"bert_tiny", "bert_base"}) inputs.push_back({network, {1, 128}});
  } else if (name == "resnet-50") {
    for (const NetworkRow& row : kTenSetNetworks) {
      if (std::string_view(row.name) == "resnet_50") add_inputs(row, 0, inputs);
    }
  } else if (name == "batch-size-1") {
    for (const NetworkRow& row : kTenSetNetworks) add_inputs(row, 1, inputs);
  } else {
    for (std::string_view rest = name; !rest.empty();) {
      const size_t comma = std::min(rest.find(','), rest.size());
      TRY_ASSIGN(NetworkInput input, network_of_any_input(std::string(rest.substr(0, comma))));
      inputs.push_back(std::move(input));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return inputs;
}

NetworkTasks::NetworkTasks(std::vector<NetworkInput> networks)
    : networks_(std::move(networks)), named_(networks_.size(), false) {}

Result<Unit> NetworkTasks::add_file(const std::string& path) {
  if (empty()) return Unit{};
  TRY_ASSIGN(const UnpackedFile file, read_unpacked(path));
  if (const Result<Json> whole = parse_json(file.content); whole.ok()) {
    add(*whole);
    return Unit{};
  }
  for (const RecordLine& line : record_lines(file.content)) {
    if (const Result<Json> task = parse_json(line.text); task.ok()) add(*task);
  }
  return Unit{};
}

void NetworkTasks::add(const Json& task) {
  const auto network = json_get<std::string>(task, "network");
  const auto shape = json_get<std::vector<int64_t>>(task, "input_shape");
  const auto key = json_get<std::string>(task, "workload_key");
  if (!network.ok() || !shape.ok() || !key.ok()) return;
  for (size_t i = 0; i < networks_.size(); ++i) {
    const bool of = networks_[i].network == *network &&
                    (networks_[i].shape.empty() || networks_[i].shape == *shape);
    if (!of) continue;
    named_[i] = true;
    NamedTask named{i, *shape, task.value("target_kind", std::string()), {}};
    named.call.calls = task.value("weight", 1.0);
    named.call.keys.push_back(ansor::canonical_key(*key));
    const Result<ComputeDag> dag = dag_from_json(task.value("dag", Json()));
    if (dag.ok()) named.call.keys.push_back(ansor::canonical_key(workload_key(*dag)));
    keys_.insert(named.call.keys.begin(), named.call.keys.end());
    tasks_.push_back(std::move(named));
  }
}

std::vector<std::string> NetworkTasks::unnamed() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < networks_.size(); ++i) {
    if (!named_[i]) names.push_back(name_of(networks_[i].network, networks_[i].shape));
  }
  return names;
}

std::vector<CalledNetwork> NetworkTasks::on(const std::string& target) const {
  const std::string kind = target.substr(0, target.find(' '));
  const Result<Target> known = parse_target(target, 0);
  std::vector<CalledNetwork> networks;
  for (size_t i = 0; i < networks_.size(); ++i) {
    std::map<std::vector<int64_t>, CalledNetwork> inputs;
    for (const NamedTask& task : tasks_) {
      if (task.network != i || (!task.kind.empty() && task.kind != kind)) continue;
      CalledNetwork& network = inputs[task.shape];
      network.name = name_of(networks_[i].network, task.shape);
      network.tasks.push_back(task.call);
    }
    for (auto& [shape, network] : inputs) networks.push_back(std::move(network));
    if (!inputs.empty() || !known.ok()) continue;
    const auto tasks = built_in_tasks(networks_[i], *known);
    if (!tasks) continue;
    CalledNetwork& network = networks.emplace_back();
    network.name = name_of(networks_[i].network, networks_[i].shape);
    for (const WeightedTask& task : *tasks)
      network.tasks.push_back(
          {{ansor::canonical_key(task.task.key)}, static_cast<double>(task.weight)});
  }
  return networks;
}

std::vector<ComputeDag> NetworkTasks::built_in_dags(const Target& target) const {
  std::vector<ComputeDag> dags;
  for (const NetworkInput& input : networks_) {
    const auto tasks = built_in_tasks(input, target);
    if (!tasks) continue;
    for (const WeightedTask& task : *tasks) dags.push_back(task.task.dag);
  }
  return dags;
}

std::set<std::string> NetworkTasks::built_in_keys(const Record& record) const {
  std::set<std::string> keys;
  const Result<Target> target = parse_target(record.target, record.threads);
  if (!target.ok()) return keys;
  for (const NetworkInput& input : networks_) {
    const std::optional<NetworkOptions> options = build_options(input);
    if (!options) continue;
    Result<Graph> graph = build_network(input.network, *options);
    if (!graph.ok()) continue;
    const Result<Partition> cut = partition(*std::move(graph), *target);
    if (!cut.ok()) continue;
    for (const Group& group : cut->groups) keys.insert(group.key);
  }
  return keys;
}

bool NetworkTasks::holds(const Record& record) {
  if (empty()) return false;
  if (keys_.contains(ansor::canonical_key(record.workload_key))) return true;
  if (record.sketch_name.empty()) return false;
  const std::lock_guard lock(mutex_);
  auto found = built_in_.find(record.target);
  if (found == built_in_.end())
    found = built_in_.emplace(record.target, built_in_keys(record)).first;
  return found->second.contains(record.workload_key);
}

}  // namespace pruner
