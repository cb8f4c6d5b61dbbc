// GPU program -> its launches: what a runtime has to know of each kernel to start it.
#pragma once

#include <string>
#include <vector>

#include "codegen/codegen.h"

namespace pruner {

/// Returns the launches of `program` in order; a program for CPUs has none. Kernel i is `symbol`_i.
/// A kernel declares at most `most_declared` bytes of shared memory. If a kernel takes more, has
/// buffers that lie over others, or groups that read its buffers, its launch provides all of its
/// shared memory.
std::vector<Artifact::Launch> plan_launches(const Program& program,
                                            const std::string& symbol,
                                            int64_t most_declared);

/// Bytes of which a shared buffer begins at a multiple, where no group reads it.
inline constexpr int64_t kSharedAlignment = 16;
/// Returns the bytes of which the shared buffers of a kernel begin at a multiple.
int64_t shared_alignment(const Stmt& kernel);
/// Returns where a shared buffer begins after `bytes` bytes of others.
inline int64_t shared_offset(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// `read` and `written` say for each buffer whether a statement reads it and whether it writes it.
struct Touched {
  std::vector<bool> read, written;
  bool any(size_t buffer) const { return read[buffer] || written[buffer]; }
};
Touched touched_buffers(const Program& program, const Stmt& stmt);

}  // namespace pruner
