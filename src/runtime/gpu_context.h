// A GPU, or another device that runs such kernels, through the drivers that modules carry
// (module/gpu_driver.h): what measuring needs of it. A driver starts threads: a process that has
// asked for one must not fork.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "runtime/module/gpu_driver.h"

namespace pruner {

/// The devices that code of a backend runs on, in the order that numbers name them: GPUs first.
/// Errors: no driver, no device.
Result<std::vector<GpuFacts>> list_gpus(Backend backend);
/// `gpu` as one of the device's arch, with the shared memory that the driver says it gives a block.
/// Errors: an arch that is in no row of the table (gpu_table.h).
Result<Gpu> with_facts(Gpu gpu, const GpuFacts& facts);

class GpuContext;

/// Bytes on a device; released with it.
class GpuBuffer {
 public:
  GpuBuffer(GpuBuffer&& other) noexcept;
  GpuBuffer& operator=(GpuBuffer&&) = delete;
  ~GpuBuffer();
  int64_t bytes() const { return bytes_; }

  /// All of it: to the device, from it, every byte the same. write() and read() wait.
  Result<Unit> write(const void* from);
  Result<Unit> read(void* to) const;
  Result<Unit> fill(std::byte value);

 private:
  friend class GpuContext;
  friend class GpuProgram;
  GpuBuffer(GpuContext& context, GpuHandle handle, int64_t bytes)
      : context_(&context), handle_(handle), bytes_(bytes) {}
  GpuContext* context_;
  GpuHandle handle_;  // 0: moved from
  int64_t bytes_;
};

/// The code of an artifact on a device.
class GpuProgram {
 public:
  GpuProgram(GpuProgram&& other) noexcept;
  GpuProgram& operator=(GpuProgram&&) = delete;
  ~GpuProgram();

  /// Runs all launches `times` times on `buffers`: one buffer per argument of the artifact, then
  /// the workspace. Returns the seconds of one time on the device, from the start of the first
  /// kernel to the end of the last kernel. Several times are recorded and replayed if the driver
  /// does that, and may be a few more. With `flushed`, that buffer is overwritten before each time,
  /// so that the caches hold nothing else; the overwriting does not count.
  Result<double> run(std::span<GpuBuffer* const> buffers,
                     int64_t times,
                     GpuBuffer* flushed = nullptr);
  /// The same on each of several lists of buffers in turn, on each at least once: what only one of
  /// them has is not in the caches any more when its turn comes, if together they exceed these.
  Result<double> run_in_turns(std::span<const std::vector<GpuBuffer*>> turns, int64_t times);

 private:
  friend class GpuContext;
  using Arguments = std::vector<std::vector<GpuHandle>>;  // one list per launch
  Arguments arguments_of(std::span<GpuBuffer* const> buffers) const;
  Result<double> run(const std::vector<Arguments>& turns, int64_t times, GpuBuffer* flushed);
  GpuProgram(GpuContext& context, const Artifact& artifact);
  /// All launches, into the queue.
  bool launch(const Arguments& arguments);
  /// Makes `recording_` of so many runs on these arguments in turn, unless it is of them already.
  bool record(const std::vector<Arguments>& turns, int64_t runs);

  GpuContext* context_;
  std::vector<Artifact::Launch> launches_;
  GpuHandle program_ = 0;           // 0: moved from, or not loaded; nothing to release
  std::vector<GpuHandle> kernels_;  // one a launch
  GpuHandle recording_ = 0;
  std::vector<Arguments> recorded_;
  int64_t recorded_runs_ = 0;
};

/// An opened device with one queue. It outlives what is made of it.
class GpuContext {
 public:
  /// The device of a backend with that number in list_gpus().
  static Result<std::unique_ptr<GpuContext>> open(Backend backend, int number);
  GpuContext(const GpuContext&) = delete;
  ~GpuContext();

  Backend backend() const { return backend_; }
  const GpuFacts& facts() const { return *driver_.facts(device_); }

  /// At least one byte, whose content is undefined.
  Result<GpuBuffer> allocate(int64_t bytes);
  /// Errors: what the driver's compiler says; a launch that the device has no room for.
  Result<GpuProgram> load(const Artifact& artifact);
  /// Whether the device serves this process no more, as after a kernel's bad access.
  bool lost();

 private:
  friend class GpuBuffer;
  friend class GpuProgram;
  GpuContext(Backend backend, const GpuDriver& driver, GpuDevice* device)
      : backend_(backend), driver_(driver), device_(device) {}
  /// Runs `calls`, which gives whether all succeeded, with the device as the thread's own.
  template <typename Calls>
  Result<Unit> on_device(const Calls& calls);
  /// Whether a block of the launch has the threads and shared memory that the device gives one.
  Result<Unit> fits(const Artifact::Launch& launch) const;

  Backend backend_;
  const GpuDriver& driver_;
  GpuDevice* device_;  // owned: the destructor closes it
};

}  // namespace pruner
