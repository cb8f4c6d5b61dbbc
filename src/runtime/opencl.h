// OpenCL: devices, and artifacts made ready to run on one. The ICD loader (libOpenCL.so.1) is
// looked for when it is needed and linked to nothing. A process that has asked for a device must
// not fork and use it in the child: drivers have threads.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/codegen.h"

namespace pruner {

struct OpenClDevice {
  std::string name, platform, version;
  bool is_gpu = false;
  int64_t compute_units = 0;
  double clock_hz = 0;  // 0: the driver does not say
  int64_t max_threads_per_block = 0;
  int64_t shared_bytes_per_block = 0;
  int64_t memory_bytes = 0;
};

/// All devices, GPUs first. Errors: no loader, no driver, no device.
Result<std::vector<OpenClDevice>> list_opencl_devices();

/// A program on the first of those devices, with memory for its arguments and workspace.
class OpenClProgram {
 public:
  virtual ~OpenClProgram() = default;
  /// Copies an argument to the device, or from it; `bytes` is all of it.
  virtual Result<Unit> write_argument(int i, const void* bytes) = 0;
  virtual Result<Unit> read_argument(int i, void* bytes) = 0;
  /// Runs all launches `times` times; seconds on the device of one time, from the start of the
  /// first kernel to the end of the last.
  virtual Result<double> run(int64_t times) = 0;
};

/// Builds the artifact's source. Errors: what the driver's compiler says; a launch that the device
/// has no room for.
Result<std::unique_ptr<OpenClProgram>> load_opencl(const Artifact& artifact);

}  // namespace pruner
