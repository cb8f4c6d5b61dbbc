// How a loop runs and where a buffer lives: the words that schedules and loop IR share.
#pragma once

#include <cstdint>

namespace pruner {

enum class LoopKind : uint8_t {
  kSerial,
  kParallel,  // over the threads of a CPU
  kUnroll,
  kVectorize,
  kDot,     // terms of a sum that one instruction adds to each lane of a vector
  kMatrix,  // rows of a tile that one instruction adds to, and its steps along the sum
  kBlock,   // over the blocks (work-groups) of a GPU kernel
  kThread,  // over the threads (work-items) of a block
};

enum class Scope : uint8_t {
  kArgument,   // passed to the kernel
  kWorkspace,  // a part of the kernel's workspace, shared by its threads; global memory of a GPU
  kShared,     // shared memory of a GPU block's threads
  kLocal,      // on the stack of the thread, 64-byte aligned; a GPU thread's own array
  kRegister,
};

/// Stands in place of a number of bytes that are prefetched ahead. Loops around a step that read
/// the same bytes again then prefetch the bytes read after them, an equal part in each iteration.
inline constexpr int32_t kPrefetchRound = 1;

}  // namespace pruner
