// Devices as a user reads them: the list of `pruner device list`, and the fields of one.
#pragma once

#include <span>
#include <string>

#include "support/json.h"
#include "target/target.h"

namespace pruner {

/// What is here and what is known by name, a line a device: how --target names it, what it is, its
/// peak and the bandwidth of its memory.
std::string print_devices(std::span<const Target> here, std::span<const Target> known);
/// {"here":[...],"known":[...]} of {"target","fingerprint","peak_gflops","dram_gbs","source"}.
Json devices_json(std::span<const Target> here, std::span<const Target> known);

/// A line a field: its name and its value; the fields of an object within as "psa.sm_nums".
std::string print_fields(const Json& json);

}  // namespace pruner
