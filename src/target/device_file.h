// Reads device files: JSON ↔ Target. The files of devices/ are part of the program and known by
// name, other files by their path. A field is named as in Target, Gpu and DeviceAbstraction.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "support/json.h"
#include "target/target.h"

namespace pruner {

/// kMostThreads is the largest number of threads that a file or a text may give a CPU's target.
inline constexpr int kMostThreads = 4096;

/// A file of devices/.
struct DeviceFile {
  std::string_view name;  // name of the file, without .json
  std::string_view text;
};

/// Every file of devices/, by name.
std::span<const DeviceFile> device_files();
/// The file of that name, if there is one.
const DeviceFile* find_device_file(std::string_view name);

/// Reads a target. A CPU is {"name", "mcpu"} and any fields of Target; fields that are left out are
/// those of the mcpu. "dots" is an object of DotRates, "draft" an object of CpuModel.
/// A GPU is {"name", "backend"} and any fields of Gpu; fields that are left out are those of its
/// "arch". "psa" is an object, whose missing numbers are the device's own. The bandwidths of L2 and
/// shared memory follow from the memory's bandwidth and from the clock. The error names the
/// field, what was found and what was expected.
Result<Target> target_from_json(const Json& json);
/// Returns an object that target_from_json reads back.
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
