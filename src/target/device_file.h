// Device files: JSON ↔ Target. Those of devices/ are part of the program and known by name; others
// by their path. A field is named as in Target, Gpu and DeviceAbstraction.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "support/json.h"
#include "target/target.h"

namespace pruner {

/// Of a CPU's target, by a file or a text.
inline constexpr int kMostThreads = 4096;

/// A file of devices/.
struct DeviceFile {
  std::string_view name;  // of the file, without .json
  std::string_view text;
};

/// Every file of devices/, by name.
std::span<const DeviceFile> device_files();
/// The file of that name, if there is one.
const DeviceFile* find_device_file(std::string_view name);

/// A CPU: {"name", "mcpu"}, and any number of Target by its field's name; what it leaves out is
/// that of the mcpu; "dots" is an object of DotRates, "draft" one of CpuModel. A GPU: {"name",
/// "backend"} and any number of Gpu; what it leaves out is that of its "arch"; "psa" is an object,
/// and its numbers are the device's where it leaves them out; the bandwidths of L2 and shared
/// memory follow from that of memory and from the clock. The error names the field, what was found
/// and what was expected.
Result<Target> target_from_json(const Json& json);
/// What target_from_json reads back.
Json target_to_json(const Target& target);

/// Fails if a block may hold less than any GPU's: no schedule keeps to it, which a search finds out
/// late.
Result<Unit> check_block_limits(const Gpu& gpu);

/// The device's own numbers in the formulas' terms.
DeviceAbstraction abstraction_of(const Gpu& gpu);

/// The device of a name in device_files(), or of a file by its path; the error lists the names.
Result<Target> read_device(const std::string& device);
/// `target` with the numbers of the analysis from another device (a name or a path): a GPU's
/// Gpu::psa and drafted_as, a CPU's rates, launch_s and draft. A GPU takes those of a GPU, a CPU
/// those of a CPU; code, print and fingerprint stay as they are.
Result<Target> with_abstraction(Target target, const std::string& device);

}  // namespace pruner
