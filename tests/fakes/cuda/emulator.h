// Runs a kernel's blocks one after the other on this thread, and a block's threads as fibers that
// take turns at barriers, the lanes of a warp also at what they do together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel_object.h"

namespace fakes {

struct Launch {
  Index3 blocks, threads;
  std::vector<void*> arguments;  // address of each argument
  unsigned shared_bytes = 0;     // dynamic shared memory of a block, beside the kernel's own
};

/// How a launch ended: a status of the driver's, and what is wrong where it is not 0.
struct Ending {
  int status = 0;
  std::string what;
  uint64_t address = 0;  // address of the access that is not allowed
};

Ending emulate(const KernelTable& kernel, ThreadPlace& place, const Launch& launch);

}  // namespace fakes
