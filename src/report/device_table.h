// Devices as a user reads them: the list of `pruner device list`, and the fields of one.
#pragma once

#include <span>
#include <string>

#include "support/json.h"
#include "target/target.h"

namespace pruner {

/// Prints the devices that are here and those known by name. A line has the device's name for
/// --target, its peak, the bandwidth of its memory, and its kind.
std::string print_devices(std::span<const Target> here, std::span<const Target> known);
/// {"here":[...],"known":[...]} of {"target","fingerprint","peak_gflops","dram_gbs","source"}.
Json devices_json(std::span<const Target> here, std::span<const Target> known);

/// Prints a line a field: its name and its value. Fields of an inner object are "psa.sm_nums".
std::string print_fields(const Json& json);

}  // namespace pruner
