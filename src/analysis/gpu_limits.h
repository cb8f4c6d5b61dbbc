// Whether a program's kernels keep what a GPU allows a block: shared memory and threads. The
// reference verifies this before it scores a program, and vectors and virtual threads too
// (reference.md, limits); those limits are its own, and public records beyond them ran.
#pragma once

#include <array>
#include <span>
#include <string>

#include "analysis/statements.h"
#include "target/target.h"

namespace pruner {

/// A statement's bindings: extents by role from kBlockX on (an inner binding takes the place of an
/// outer one), and the product of its virtual threads.
struct Bindings {
  std::array<float, 6> extents = {1, 1, 1, 1, 1, 1};  // blockIdx.x, threadIdx.x, blockIdx.y ...
  float vthreads = 1;
  float blocks() const { return extents[0] * extents[2] * extents[4]; }
  float threads() const { return extents[1] * extents[3] * extents[5]; }
};
Bindings bindings_of(std::span<const StatementLoop> loops);

/// The first limit that a kernel exceeds, in words; empty: it keeps all.
std::string gpu_limit(const Statements& program, const Gpu& gpu);

/// The limits of a record's 8 hardware numbers; without them the usual ones.
Gpu gpu_of_record(std::span<const int64_t> hardware);

}  // namespace pruner
