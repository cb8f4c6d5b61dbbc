// How much memory this machine, or the container that the process is in, has in all, and what may
// be taken of it: the limits of what a small input asks for.
#pragma once

#include <cstdint>
#include <string_view>

#include "support/result.h"

namespace pruner {

inline constexpr int64_t kHugePage = 2 << 20;  // bytes, of x86-64 and of ARM with 4 KiB pages

/// Bytes of the machine's memory, or of its control group's where that allows fewer.
int64_t memory_bytes();

/// An error when `what` takes more than there is in all: "x needs 40.0 GB of memory, there are
/// 24.0". As a double, so that no product of extents overflows.
Result<Unit> check_memory(std::string_view what, double bytes);

/// Whether packed bytes may be opened into memory as a whole: to at most 256 MiB, or 100 times as
/// many and no more than there is memory. What is read piece by piece has no such limit.
Result<Unit> check_unpacked(double packed_bytes, double unpacked_bytes);

}  // namespace pruner
