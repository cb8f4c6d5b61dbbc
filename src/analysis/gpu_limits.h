// Whether a program's kernels keep what a GPU allows a block: shared memory and threads. The
// reference verifies this before it scores a program, and vectors and virtual threads too
// (reference.md, limits); those limits are its own, and public records beyond them ran.
#pragma once

#include <span>
#include <string>

#include "analysis/statements.h"
#include "target/target.h"

namespace pruner {

/// The first limit that a kernel exceeds, in words; empty: it keeps all.
std::string gpu_limit(const Statements& program, const Gpu& gpu);

/// The limits of a record's 8 hardware numbers; without them the usual ones.
Gpu gpu_of_record(std::span<const int64_t> hardware);

}  // namespace pruner
