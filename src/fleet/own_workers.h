// The measurer of this machine: a fleet in this process, whose workers are threads, one a device.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "measure/measure.h"
#include "target/target.h"

namespace pruner {

/// Measures on the devices of those numbers (list_gpus()), of a CPU on the one of number 0. They
/// share the build jobs. `program`: this program's own file, with the hidden worker commands. When
/// a device is gone its trials go to the others; measure() fails when none is left.
Result<std::unique_ptr<Measurer>> measure_here(const Target& target,
                                               std::span<const int> devices,
                                               const MeasureOptions& options,
                                               const std::string& program);

}  // namespace pruner
