#include "dataset/record_device.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "support/json.h"
#include "target/device_file.h"

namespace pruner {

namespace {

/// Returns the device file of this name and backend; an empty object if there is none.
Json find_device(const std::string& name, const std::string& kind) {
  const DeviceFile* file = find_device_file(name);
  if (file == nullptr) return Json::object();
  Result<Json> json = parse_json(file->text);
  const bool fits = json.ok() && json->value("backend", std::string()) == kind;
  return fits ? *std::move(json) : Json::object();
}

/// Returns the nearest folder of the path with the name of a device of the kind; empty if none.
std::string folder_model(const std::string& path, const std::string& kind) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (; folder.has_filename(); folder = folder.parent_path()) {
    std::string name = folder.filename().string();
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    if (!find_device(name, kind).empty()) return name;
  }
  return {};
}

std::string attribute(const DeviceLabel& label, const std::string& name) {
  const auto found = label.attributes.find(name);
  return found == label.attributes.end() ? std::string() : found->second;
}

/// Adds the architecture of a known model.
void add_arch(DeviceLabel& label) {
  const std::string model = attribute(label, "model");
  if (model.empty() || label.attributes.contains("arch")) return;
  const std::string arch = find_device(model, label.kind).value("arch", std::string());
  if (!arch.empty()) label.attributes["arch"] = arch;
}

}  // namespace

DeviceLabel parse_device_label(std::string_view target) {
  static const std::set<std::string> kOfNoDevice = {"keys", "libs", "link-params", "host"};
  DeviceLabel label;
  std::istringstream words{std::string(target)};
  for (std::string word; words >> word;) {
    label.text += (label.text.empty() ? "" : " ") + word;
    if (label.kind.empty()) {
      label.kind = word;
      continue;
    }
    word.erase(0, std::min(word.find_first_not_of('-'), word.size()));
    const size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    if (equals == std::string::npos || kOfNoDevice.contains(name)) continue;
    label.attributes[std::move(name)] = word.substr(equals + 1);
  }
  add_arch(label);
  return label;
}

DeviceLabel device_of_record(const Record& record, const std::string& path) {
  DeviceLabel label = parse_device_label(record.target);
  if (!record.device.empty()) {
    label.attributes["machine"] = record.device;
  } else if (!label.attributes.contains("model")) {
    const std::string model = folder_model(path, label.kind);
    if (model.empty()) return label;
    label.attributes["model"] = model;
    label.text += " -model=" + model;
    add_arch(label);
  }
  return label;
}

bool is_cpu(std::string_view target) { return target.substr(0, target.find(' ')) == "llvm"; }

std::string model_of(const DeviceLabel& label) { return attribute(label, "model"); }

std::optional<Gpu> gpu_of(const DeviceLabel& label) {
  const std::string model = model_of(label);
  if (find_device(model, label.kind).empty()) return std::nullopt;
  const Result<Target> target = read_device(model);
  return target.ok() && target->is_gpu() ? std::optional(target->gpu) : std::nullopt;
}

bool may_be_one_device(const DeviceLabel& a, const DeviceLabel& b) {
  if (a.kind != b.kind) return false;
  return std::ranges::all_of(a.attributes, [&](const auto& entry) {
    const auto other = b.attributes.find(entry.first);
    return other == b.attributes.end() || other->second == entry.second;
  });
}

bool is_device(const DeviceLabel& record, const DeviceLabel& named) {
  if (record.kind != named.kind) return false;
  return std::ranges::all_of(named.attributes, [&](const auto& entry) {
    const auto& [name, value] = entry;
    const std::string said = attribute(record, name);
    if (!said.empty() || name != "model") return said == value;
    const std::string arch = attribute(named, "arch");
    return !arch.empty() && attribute(record, "arch") == arch;
  });
}

std::string device_identity(const DeviceLabel& label) {
  for (const char* name : {"machine", "model", "arch", "mcpu"}) {
    const std::string value = attribute(label, name);
    if (!value.empty()) return label.kind + " " + value;
  }
  return label.kind;
}

std::vector<std::string> group_devices(std::span<const DeviceLabel> labels, bool one) {
  const auto fuller = [](const DeviceLabel* a, const DeviceLabel* b) {
    const auto size = [](const DeviceLabel* l) {
      return std::pair(l->attributes.size(), l->text.size());
    };
    return b == nullptr || size(a) > size(b);
  };
  std::map<std::string, const DeviceLabel*> fullest;  // fullest label by identity
  const auto device_of = [&](const DeviceLabel& label) {
    return one ? std::string() : device_identity(label);
  };
  for (const DeviceLabel& label : labels) {
    const DeviceLabel*& best = fullest[device_of(label)];
    if (fuller(&label, best)) best = &label;
  }
  std::vector<std::string> names;
  for (const DeviceLabel& label : labels) names.push_back(fullest[device_of(label)]->text);
  return names;
}

}  // namespace pruner
