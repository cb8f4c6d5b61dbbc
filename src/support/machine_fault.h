// Tells faults of the machine from the mistakes of a user or a candidate.
#pragma once

#include <string_view>

namespace pruner {

/// Whether a message has the system's words for a want of the machine: memory, processes,
/// descriptors, room on a disk, a disk that works.
bool is_machine_fault(std::string_view message);

}  // namespace pruner
