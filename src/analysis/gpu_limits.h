// Whether a program's kernels keep what a GPU allows a block: shared memory and threads. The
// reference verifies this before it scores a program, and vectors and virtual threads too
// (reference.md, limits); those limits are its own, and public records beyond them ran.
#pragma once

#include <span>
#include <string>

#include "analysis/statements.h"
#include "target/target.h"

namespace pruner {

/// Threads of a block: the product over its dimensions, in each of which the innermost binding is.
inline double block_threads(std::span<const StatementLoop> loops) {
  double threads[3] = {1, 1, 1};
  for (const StatementLoop& loop : loops) {
    const int place = static_cast<int>(loop.role) - static_cast<int>(LoopRole::kThreadX);
    if (is_thread(loop.role)) threads[place / 2] = static_cast<double>(loop.extent);
  }
  return threads[0] * threads[1] * threads[2];
}

/// The first limit that a kernel exceeds, in words; empty: it keeps all.
std::string gpu_limit(const Statements& program, const Gpu& gpu);

/// The limits of a record's 8 hardware numbers; without them the usual ones.
Gpu gpu_of_record(std::span<const int64_t> hardware);

}  // namespace pruner
