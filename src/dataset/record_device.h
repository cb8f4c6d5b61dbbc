// Finds the devices that records were measured on: which texts of records may mean one device, and
// which texts cannot.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/record.h"
#include "target/target.h"

namespace pruner {

/// `DeviceLabel` is a target text in parts: "cuda -keys=cuda,gpu -arch=sm_70" is kind "cuda" and
/// attribute arch. Parts that do not tell devices apart (keys, libs) are left out. A known model
/// has its architecture.
struct DeviceLabel {
  std::string text;  // text in the record, without spaces around it
  std::string kind;
  std::map<std::string, std::string> attributes;
  friend auto operator<=>(const DeviceLabel&, const DeviceLabel&) = default;
};

DeviceLabel parse_device_label(std::string_view target);

/// Returns the label of a record. Our records name their device. If another system's record names
/// no model, the nearest folder of `path` that is named like a known device of its kind gives the
/// model ("k80/conv.json"). Public logs of several GPUs differ in nothing else.
DeviceLabel device_of_record(const Record& record, const std::string& path);

/// Returns whether a target's text means a CPU.
bool is_cpu(std::string_view target);
/// Returns the model that a label names; empty if none.
std::string model_of(const DeviceLabel& label);
/// Returns the GPU that a label names by its model; nullopt if the label names no known GPU.
std::optional<Gpu> gpu_of(const DeviceLabel& label);

/// Returns whether both labels may mean one device: same kind, and no common attribute differs.
bool may_be_one_device(const DeviceLabel& a, const DeviceLabel& b);

/// Returns whether a record's device is the device that a user names: all attributes of the name
/// hold. If the record does not say its model, the architectures are compared.
bool is_device(const DeviceLabel& record, const DeviceLabel& named);

/// Returns the part of the device in a program's hash: the same text wherever the records lie.
std::string device_identity(const DeviceLabel& label);

/// Returns the device of each label, named by the device's fullest label. If `one`, all labels are
/// one device; otherwise labels of one identity are.
std::vector<std::string> group_devices(std::span<const DeviceLabel> labels, bool one);

}  // namespace pruner
