// GPU program -> its launches: what a runtime has to know of each kernel to start it.
#pragma once

#include <string>
#include <vector>

#include "codegen/codegen.h"

namespace pruner {

/// The launches of `program`, in order; none of a program for CPUs. Kernel i is `symbol`_i. Of
/// shared memory a kernel declares at most `most_declared` bytes; where it takes more, or has
/// buffers that lie over others, its launch gives it all of them.
std::vector<Artifact::Launch> plan_launches(const Program& program,
                                            const std::string& symbol,
                                            int64_t most_declared);

/// Where a shared buffer begins after so many bytes of others: at a multiple of 16.
inline int64_t shared_offset(int64_t bytes) { return (bytes + 15) / 16 * 16; }

/// The buffers that a statement reads or writes, and those that it writes.
struct Touched {
  std::vector<bool> read, written;
  bool any(size_t buffer) const { return read[buffer] || written[buffer]; }
};
Touched touched_buffers(const Program& program, const Stmt& stmt);

}  // namespace pruner
