// GPU program -> its launches: what a runtime has to know of each kernel to start it.
#pragma once

#include <string>
#include <vector>

#include "codegen/codegen.h"

namespace pruner {

/// Returns the launches of `program` in order; a program for CPUs has none. Kernel i is `symbol`_i.
/// A kernel declares at most `most_declared` bytes of shared memory. If a kernel takes more, or has
/// buffers that lie over others, its launch provides all of its shared memory.
std::vector<Artifact::Launch> plan_launches(const Program& program,
                                            const std::string& symbol,
                                            int64_t most_declared);

/// Returns where a shared buffer begins after `bytes` bytes of others: at a multiple of 16.
inline int64_t shared_offset(int64_t bytes) { return (bytes + 15) / 16 * 16; }

/// `read` and `written` say for each buffer whether a statement reads it and whether it writes it.
struct Touched {
  std::vector<bool> read, written;
  bool any(size_t buffer) const { return read[buffer] || written[buffer]; }
};
Touched touched_buffers(const Program& program, const Stmt& stmt);

}  // namespace pruner
