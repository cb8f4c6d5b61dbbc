#include "runtime/gpu_context.h"

#include <algorithm>
#include <utility>

#include "runtime/module/fail.h"
#include "support/ceil_div.h"

namespace pruner {
namespace {

// Runs that are recorded as one, at most: launched one by one, a kernel of 3 us or less waits for
// its launch.
constexpr int64_t kMostRecorded = 32;

constexpr int kMostDevices = 64;  // same limit as the OpenCL table has

struct DriverRow {
  Backend backend;
  const GpuDriver& driver;
};
const DriverRow kDrivers[] = {{Backend::kCuda, pruner_cuda_driver},
                              {Backend::kOpenCl, pruner_opencl_driver}};

const GpuDriver& driver_of(Backend backend) {
  const DriverRow* row = kDrivers;
  while (row->backend != backend) ++row;
  return row->driver;
}

// Returns what a driver's table reads of a launch.
PlanLaunch plan_of(const Artifact::Launch& launch, size_t num_args) {
  return {.kernel = launch.kernel.c_str(),
          .code = 0,
          .blocks = launch.blocks,
          .threads = launch.threads,
          .shared_bytes = launch.shared_bytes,
          .dynamic_bytes = launch.dynamic_bytes,
          .early = 0,  // a repeated kernel would overlap with itself
          .args = nullptr,
          .num_args = static_cast<int64_t>(num_args)};
}

// Returns what the table's call said last on this thread.
Error failure() { return Error(pruner_failure()); }

}  // namespace

Result<std::vector<GpuFacts>> list_gpus(Backend backend) {
  std::vector<GpuFacts> facts(kMostDevices);
  const int count = driver_of(backend).list(facts.data(), kMostDevices);
  if (count == 0) return failure();
  facts.resize(static_cast<size_t>(std::min(count, kMostDevices)));
  return facts;
}

Result<Gpu> with_facts(Gpu gpu, const GpuFacts& facts) {
  TRY_ASSIGN(gpu, with_arch(std::move(gpu), facts.arch));
  gpu.most_shared_bytes_per_block = std::max(facts.most_shared_bytes, gpu.shared_bytes_per_block);
  return gpu;
}

template <typename Calls>
Result<Unit> GpuContext::on_device(const Calls& calls) {
  if (driver_.enter(device_) == 0) return failure();
  const bool done = calls();
  driver_.leave(device_);
  if (!done) return failure();
  return Unit{};
}

Result<std::unique_ptr<GpuContext>> GpuContext::open(Backend backend, int number) {
  const GpuDriver& driver = driver_of(backend);
  // Nothing is asked for: load() looks at each launch. The marks are a timed run's two ends.
  const GpuNeeds needs = {.arch = nullptr, .threads = 0, .shared_bytes = 0, .marks = 2};
  GpuDevice* device = driver.open(number, &needs);
  if (device == nullptr) return failure();
  return std::unique_ptr<GpuContext>(new GpuContext(backend, driver, device));
}

GpuContext::~GpuContext() { driver_.close(device_); }

Result<GpuBuffer> GpuContext::allocate(int64_t bytes) {
  const int64_t some = std::max<int64_t>(bytes, 1);
  GpuHandle handle = 0;
  TRY(on_device([&] { return (handle = driver_.allocate(device_, some)) != 0; }));
  return GpuBuffer(*this, handle, some);
}

Result<Unit> GpuContext::fits(const Artifact::Launch& launch) const {
  if (launch.threads > facts().threads_per_block) {
    return Error(launch.kernel,
                 " has ",
                 launch.threads,
                 " threads a block, ",
                 facts().name,
                 " runs at most ",
                 facts().threads_per_block);
  }
  if (launch.shared_bytes > facts().most_shared_bytes) {
    return Error(launch.kernel,
                 " takes ",
                 launch.shared_bytes,
                 " bytes of shared memory a block, ",
                 facts().name,
                 " has ",
                 facts().most_shared_bytes);
  }
  return Unit{};
}

Result<GpuProgram> GpuContext::load(const Artifact& artifact) {
  if (artifact.backend != backend_) {
    return Error(artifact.symbol, " is no program for ", facts().driver, "'s ", facts().name);
  }
  for (const Artifact::Launch& launch : artifact.launches) TRY(fits(launch));
  GpuProgram program(*this, artifact);
  const PlanCode code = {artifact.object.data(), static_cast<int64_t>(artifact.object.size())};
  TRY(on_device([&] {
    program.program_ = driver_.load(device_, &code);
    for (const Artifact::Launch& launch : artifact.launches) {
      if (program.program_ == 0) return false;
      const PlanLaunch plan = plan_of(launch, 0);
      const GpuHandle kernel = driver_.kernel(device_, program.program_, &plan);
      if (kernel == 0) return false;
      program.kernels_.push_back(kernel);
    }
    return program.program_ != 0;
  }));
  return program;
}

// After a kernel's bad access every call in CUDA's context returns its error, waiting included.
bool GpuContext::lost() {
  return !on_device([&] { return driver_.wait(device_) != 0; }).ok();
}

GpuBuffer::GpuBuffer(GpuBuffer&& other) noexcept
    : context_(other.context_), handle_(std::exchange(other.handle_, 0)), bytes_(other.bytes_) {}

GpuBuffer::~GpuBuffer() {
  if (handle_ == 0) return;
  const GpuDriver& driver = context_->driver_;
  (void)context_->on_device([&] {
    driver.release(context_->device_, kGpuMemory, handle_);
    return true;
  });
}

Result<Unit> GpuBuffer::write(const void* from) {
  const GpuDriver& driver = context_->driver_;
  GpuDevice* device = context_->device_;
  return context_->on_device(
      [&] { return driver.write(device, handle_, from, bytes_) != 0 && driver.wait(device) != 0; });
}

Result<Unit> GpuBuffer::read(void* to) const {
  const GpuDriver& driver = context_->driver_;
  GpuDevice* device = context_->device_;
  return context_->on_device(
      [&] { return driver.read(device, to, handle_, bytes_) != 0 && driver.wait(device) != 0; });
}

Result<Unit> GpuBuffer::fill(std::byte value) {
  return context_->on_device([&] {
    return context_->driver_.fill(
               context_->device_, handle_, static_cast<uint8_t>(value), bytes_) != 0;
  });
}

GpuProgram::GpuProgram(GpuContext& context, const Artifact& artifact)
    : context_(&context), launches_(artifact.launches) {}

GpuProgram::GpuProgram(GpuProgram&& other) noexcept
    : context_(other.context_),
      launches_(std::move(other.launches_)),
      program_(std::exchange(other.program_, 0)),
      kernels_(std::exchange(other.kernels_, {})),
      recording_(std::exchange(other.recording_, 0)),
      recorded_(std::exchange(other.recorded_, {})),
      recorded_runs_(other.recorded_runs_) {}

GpuProgram::~GpuProgram() {
  if (program_ == 0) return;
  const GpuDriver& driver = context_->driver_;
  (void)context_->on_device([&] {
    if (recording_ != 0) driver.release(context_->device_, kGpuRecording, recording_);
    for (const GpuHandle kernel : kernels_) driver.release(context_->device_, kGpuKernel, kernel);
    driver.release(context_->device_, kGpuProgram, program_);
    return true;
  });
}

bool GpuProgram::launch(const Arguments& arguments) {
  for (size_t i = 0; i < launches_.size(); ++i) {
    const std::vector<GpuHandle>& of_launch = arguments[i];
    const PlanLaunch launch = plan_of(launches_[i], of_launch.size());
    if (context_->driver_.launch(context_->device_, kernels_[i], &launch, of_launch.data()) == 0)
      return false;
  }
  return true;
}

bool GpuProgram::record(const std::vector<Arguments>& turns, int64_t runs) {
  if (recording_ != 0 && recorded_ == turns && recorded_runs_ == runs) return true;
  const GpuDriver& driver = context_->driver_;
  GpuDevice* device = context_->device_;
  if (recording_ != 0) driver.release(device, kGpuRecording, std::exchange(recording_, 0));
  if (driver.begin_recording(device) == 0) return false;
  bool launched = true;
  for (int64_t n = 0; launched && n < runs; ++n)
    launched = launch(turns[static_cast<size_t>(n % std::ssize(turns))]);
  recording_ = pruner_end_recording(&driver, device, launched ? 1 : 0);
  recorded_ = turns;
  recorded_runs_ = runs;
  // The first time it has to be brought to the device.
  return recording_ != 0 && driver.replay(device, recording_) != 0;
}

// Returns for each launch its arguments, then the workspace if the launch takes one.
GpuProgram::Arguments GpuProgram::arguments_of(std::span<GpuBuffer* const> buffers) const {
  Arguments arguments;
  for (const Artifact::Launch& launch : launches_) {
    std::vector<GpuHandle>& of_launch = arguments.emplace_back();
    for (const int a : launch.arguments) of_launch.push_back(buffers[a]->handle_);
    if (launch.workspace) of_launch.push_back(buffers.back()->handle_);
  }
  return arguments;
}

Result<double> GpuProgram::run(std::span<GpuBuffer* const> buffers,
                               int64_t times,
                               GpuBuffer* flushed) {
  return run({arguments_of(buffers)}, times, flushed);
}

Result<double> GpuProgram::run_in_turns(std::span<const std::vector<GpuBuffer*>> turns,
                                        int64_t times) {
  std::vector<Arguments> arguments;
  for (const std::vector<GpuBuffer*>& buffers : turns) arguments.push_back(arguments_of(buffers));
  return run(arguments, std::max(times, std::ssize(turns)), nullptr);
}

Result<double> GpuProgram::run(const std::vector<Arguments>& turns,
                               int64_t times,
                               GpuBuffer* flushed) {
  const GpuDriver& driver = context_->driver_;
  GpuDevice* device = context_->device_;
  const auto time_some = [&](int64_t some, double& seconds, const auto& run_one) {
    if (driver.mark(device, 0) == 0) return false;
    for (int64_t n = 0; n < some; ++n) {
      if (!run_one(n)) return false;
    }
    return driver.mark(device, 1) != 0 && driver.wait(device) != 0 &&
           driver.elapsed(device, 0, &seconds) != 0;
  };
  const auto launch_turn = [&](int64_t n) {
    return launch(turns[static_cast<size_t>(n % std::ssize(turns))]);
  };
  const bool recorded = flushed == nullptr && times > 1 && driver.begin_recording != nullptr;
  const int64_t most = std::max(kMostRecorded, std::ssize(turns));
  const int64_t runs = recorded ? std::min(times, most) : 1;
  const int64_t replays = ceil_div(times, runs);
  double sum = 0;
  TRY(context_->on_device([&] {
    if (recorded) {
      return record(turns, runs) && time_some(replays, sum, [&](int64_t) {
               return driver.replay(device, recording_) != 0;
             });
    }
    if (flushed == nullptr) return time_some(times, sum, launch_turn);
    // Each time by itself: the write of `flushed` is before its first mark.
    for (int64_t n = 0; n < times; ++n) {
      double seconds = 0;
      if (driver.fill(device, flushed->handle_, 0, flushed->bytes_) == 0) return false;
      if (!time_some(1, seconds, launch_turn)) return false;
      sum += seconds;
    }
    return true;
  }));
  return sum / static_cast<double>(recorded ? replays * runs : times);
}

}  // namespace pruner
