// Resources that a kernel takes of a GPU, read from its cubin (an ELF file) with no device present.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace pruner {

struct CubinKernel {
  std::string name;
  int64_t registers = 0;     // registers per thread
  int64_t stack_bytes = 0;   // stack per thread: arrays that are indexed at run time, and spills
  int64_t shared_bytes = 0;  // static shared memory per block, without the bytes the system keeps
};

/// The kernels of a cubin, by name. Errors: no cubin, or one that is cut off.
Result<std::vector<CubinKernel>> read_cubin(std::string_view cubin);

}  // namespace pruner
