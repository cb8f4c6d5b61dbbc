// How a loop runs and where a buffer lives: the words that schedules and loop IR share.
#pragma once

#include <cstdint>

namespace pruner {

enum class LoopKind : uint8_t { kSerial, kParallel, kUnroll, kVectorize };

enum class Scope : uint8_t {
  kArgument,   // passed to the kernel
  kWorkspace,  // a part of the kernel's workspace, shared by its threads
  kLocal,      // on the stack of the thread, 64-byte aligned
  kRegister,
};

}  // namespace pruner
