// What a record says of the device it was measured on -> devices: which texts may mean one, and
// which cannot.
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

/// A target text in parts: "cuda -keys=cuda,gpu -arch=sm_70" is kind "cuda" and attribute arch;
/// what does not tell devices apart (keys, libs) is left out. A known model has its architecture.
struct DeviceLabel {
  std::string text;  // as the record prints it, without spaces around it
  std::string kind;
  std::map<std::string, std::string> attributes;
  friend auto operator<=>(const DeviceLabel&, const DeviceLabel&) = default;
};

DeviceLabel parse_device_label(std::string_view target);

/// The label of a record. One of ours names its device. For another's, whose target names no model,
/// the nearest folder of `path` that has the name of a known device of its kind ("k80/conv.json")
/// gives it: public logs of several GPUs differ in nothing else.
DeviceLabel device_of_record(const Record& record, const std::string& path);

/// Whether a target's text is of a CPU.
bool is_cpu(std::string_view target);
/// The model that a label names; empty: none.
std::string model_of(const DeviceLabel& label);
/// The GPU that a label names by its model; nullopt: it names none, or it is not known.
std::optional<Gpu> gpu_of(const DeviceLabel& label);

/// Whether both may mean one device: one kind, and nothing that both say differs.
bool may_be_one_device(const DeviceLabel& a, const DeviceLabel& b);

/// Whether a record's device is the one that a user names: everything the name says is so. A model
/// that the record does not say may be told by its architecture.
bool is_device(const DeviceLabel& record, const DeviceLabel& named);

/// What a program's hash has of the device: the same text wherever the records lie.
std::string device_identity(const DeviceLabel& label);

/// By label: which device it is, named by its fullest label. `one`: all are one; else those of one
/// identity are.
std::vector<std::string> group_devices(std::span<const DeviceLabel> labels, bool one);

}  // namespace pruner
