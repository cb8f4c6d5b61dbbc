// What a kernel takes of a GPU, read from its cubin (an ELF file) with no device present.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace pruner {

struct CubinKernel {
  std::string name;
  int64_t registers = 0;     // of a thread
  int64_t stack_bytes = 0;   // of a thread: arrays that are indexed at run time, and spills
  int64_t shared_bytes = 0;  // of a block, static; without what the system keeps for itself
};

/// The kernels of a cubin, by name. Errors: no cubin, or one that is cut off.
Result<std::vector<CubinKernel>> read_cubin(std::string_view cubin);

}  // namespace pruner
