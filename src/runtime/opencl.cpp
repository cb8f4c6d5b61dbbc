#include "runtime/opencl.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

namespace pruner {
namespace {

// What is used of OpenCL 1.2's C interface, by its specification. Handles are opaque, and a status
// that is not 0 is an error.
using Handle = void*;
using Status = int32_t;
using Flags = uint64_t;

constexpr Flags kAllDevices = 0xFFFFFFFF, kGpu = 1 << 2;
constexpr Flags kReadWrite = 1 << 0;
constexpr Flags kProfiling = 1 << 1;
constexpr uint32_t kDeviceType = 0x1000, kComputeUnits = 0x1002, kGroupSize = 0x1004,
                   kClockMhz = 0x100C;
constexpr uint32_t kMemoryBytes = 0x101F, kLocalBytes = 0x1023;
constexpr uint32_t kDeviceName = 0x102B, kDeviceVersion = 0x102F;
constexpr uint32_t kPlatformName = 0x0902;
constexpr uint32_t kBuildLog = 0x1183;
constexpr uint32_t kCommandStart = 0x1282, kCommandEnd = 0x1283;

struct OpenCl {
  Status (*platforms)(uint32_t, Handle*, uint32_t*);
  Status (*platform_text)(Handle, uint32_t, size_t, void*, size_t*);
  Status (*devices)(Handle, Flags, uint32_t, Handle*, uint32_t*);
  Status (*device_value)(Handle, uint32_t, size_t, void*, size_t*);
  Handle (*context)(const intptr_t*, uint32_t, const Handle*, void*, void*, Status*);
  Handle (*queue)(Handle, Handle, Flags, Status*);
  Handle (*buffer)(Handle, Flags, size_t, void*, Status*);
  Handle (*program)(Handle, uint32_t, const char**, const size_t*, Status*);
  Status (*build)(Handle, uint32_t, const Handle*, const char*, void*, void*);
  Status (*build_value)(Handle, Handle, uint32_t, size_t, void*, size_t*);
  Handle (*kernel)(Handle, const char*, Status*);
  Status (*argument)(Handle, uint32_t, size_t, const void*);
  Status (*launch)(Handle,
                   Handle,
                   uint32_t,
                   const size_t*,
                   const size_t*,
                   const size_t*,
                   uint32_t,
                   const Handle*,
                   Handle*);
  Status (*write)(
      Handle, Handle, uint32_t, size_t, size_t, const void*, uint32_t, const Handle*, Handle*);
  Status (*read)(Handle, Handle, uint32_t, size_t, size_t, void*, uint32_t, const Handle*, Handle*);
  Status (*finish)(Handle);
  Status (*event_time)(Handle, uint32_t, size_t, void*, size_t*);
  Status (*release_event)(Handle), (*release_kernel)(Handle), (*release_program)(Handle);
  Status (*release_buffer)(Handle), (*release_queue)(Handle), (*release_context)(Handle);
};

constexpr const char* kNoDriver =
    "no OpenCL driver: install one for this machine's GPU, or pocl-opencl-icd to run on the CPU";

Result<OpenCl> open_loader() {
  void* handle = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Error("no OpenCL loader (libOpenCL.so.1): install ocl-icd-libopencl1 and a driver");
  }
  OpenCl cl = {};
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    void* symbol = dlsym(handle, name);
    if (symbol == nullptr) missing = name;
    function = reinterpret_cast<std::decay_t<decltype(function)>>(symbol);
  };
  find(cl.platforms, "clGetPlatformIDs");
  find(cl.platform_text, "clGetPlatformInfo");
  find(cl.devices, "clGetDeviceIDs");
  find(cl.device_value, "clGetDeviceInfo");
  find(cl.context, "clCreateContext");
  find(cl.queue, "clCreateCommandQueue");
  find(cl.buffer, "clCreateBuffer");
  find(cl.program, "clCreateProgramWithSource");
  find(cl.build, "clBuildProgram");
  find(cl.build_value, "clGetProgramBuildInfo");
  find(cl.kernel, "clCreateKernel");
  find(cl.argument, "clSetKernelArg");
  find(cl.launch, "clEnqueueNDRangeKernel");
  find(cl.write, "clEnqueueWriteBuffer");
  find(cl.read, "clEnqueueReadBuffer");
  find(cl.finish, "clFinish");
  find(cl.event_time, "clGetEventProfilingInfo");
  find(cl.release_event, "clReleaseEvent");
  find(cl.release_kernel, "clReleaseKernel");
  find(cl.release_program, "clReleaseProgram");
  find(cl.release_buffer, "clReleaseMemObject");
  find(cl.release_queue, "clReleaseCommandQueue");
  find(cl.release_context, "clReleaseContext");
  if (!missing.empty()) return Error("libOpenCL.so.1 has no ", missing, ": it is no OpenCL 1.2");
  return cl;
}

const Result<OpenCl>& loader() {
  static const Result<OpenCl> opened = open_loader();
  return opened;
}

// A text of a platform or device; both are asked for it alike.
std::string text(Status (*ask)(Handle, uint32_t, size_t, void*, size_t*),
                 Handle of,
                 uint32_t what) {
  size_t bytes = 0;
  if (ask(of, what, 0, nullptr, &bytes) != 0) return "";
  std::string result(bytes, '\0');
  ask(of, what, bytes, result.data(), nullptr);
  return result.c_str();
}

template <typename T>
int64_t number(const OpenCl& cl, Handle device, uint32_t what) {
  T value = 0;
  cl.device_value(device, what, sizeof value, &value, nullptr);
  return static_cast<int64_t>(value);
}

struct Found {
  Handle handle;
  OpenClDevice device;
};

Result<std::vector<Found>> find_devices() {
  TRY(loader());
  const OpenCl& cl = *loader();
  uint32_t count = 0;
  if (cl.platforms(0, nullptr, &count) != 0 || count == 0) return Error(kNoDriver);
  std::vector<Handle> platforms(count);
  cl.platforms(count, platforms.data(), nullptr);
  std::vector<Found> result;
  for (Handle platform : platforms) {
    if (cl.devices(platform, kAllDevices, 0, nullptr, &count) != 0) continue;
    std::vector<Handle> devices(count);
    cl.devices(platform, kAllDevices, count, devices.data(), nullptr);
    for (Handle device : devices) {
      result.push_back({device,
                        {text(cl.device_value, device, kDeviceName),
                         text(cl.platform_text, platform, kPlatformName),
                         text(cl.device_value, device, kDeviceVersion),
                         (number<Flags>(cl, device, kDeviceType) & kGpu) != 0,
                         number<uint32_t>(cl, device, kComputeUnits),
                         static_cast<double>(number<uint32_t>(cl, device, kClockMhz)) * 1e6,
                         number<size_t>(cl, device, kGroupSize),
                         number<uint64_t>(cl, device, kLocalBytes),
                         number<uint64_t>(cl, device, kMemoryBytes)}});
    }
  }
  if (result.empty()) return Error("the OpenCL drivers of this machine have no device");
  std::stable_partition(
      result.begin(), result.end(), [](const Found& found) { return found.device.is_gpu; });
  return result;
}

int64_t bytes_of(const Artifact::Argument& argument) {
  int64_t bytes = dtype_bytes(argument.dtype);
  for (const int64_t extent : argument.shape) bytes *= extent;
  return bytes;
}

Result<Unit> check(Status status, const char* call) {
  if (status == 0) return Unit{};
  return Error("OpenCL: ", call, " failed with status ", status);
}

class Program12 : public OpenClProgram {
 public:
  explicit Program12(const OpenCl& cl) : cl_(cl) {}
  ~Program12() override {
    if (queue_ != nullptr) cl_.finish(queue_);
    for (Handle kernel : kernels_) cl_.release_kernel(kernel);
    for (Handle buffer : buffers_) cl_.release_buffer(buffer);
    if (program_ != nullptr) cl_.release_program(program_);
    if (queue_ != nullptr) cl_.release_queue(queue_);
    if (context_ != nullptr) cl_.release_context(context_);
  }

  Result<Unit> load(const Artifact& artifact, const Found& found) {
    launches_ = artifact.launches;
    for (const Artifact::Launch& launch : launches_) TRY(fits(launch, found.device));
    Status status = 0;
    context_ = cl_.context(nullptr, 1, &found.handle, nullptr, nullptr, &status);
    TRY(check(status, "clCreateContext"));
    queue_ = cl_.queue(context_, found.handle, kProfiling, &status);
    TRY(check(status, "clCreateCommandQueue"));
    TRY(build(artifact.object, found.handle));
    for (const Artifact::Argument& argument : artifact.arguments) {
      TRY(add_buffer(bytes_of(argument)));
    }
    TRY(add_buffer(artifact.workspace_bytes));
    for (const Artifact::Launch& launch : launches_) TRY(add_kernel(launch));
    return Unit{};
  }

  Result<Unit> write_argument(int i, const void* bytes) override {
    const auto at = static_cast<size_t>(i);
    return check(cl_.write(queue_, buffers_[at], 1, 0, sizes_[at], bytes, 0, nullptr, nullptr),
                 "clEnqueueWriteBuffer");
  }

  Result<Unit> read_argument(int i, void* bytes) override {
    const auto at = static_cast<size_t>(i);
    return check(cl_.read(queue_, buffers_[at], 1, 0, sizes_[at], bytes, 0, nullptr, nullptr),
                 "clEnqueueReadBuffer");
  }

  Result<double> run(int64_t times) override {
    Handle first = nullptr, last = nullptr;
    for (int64_t n = 0; n < times; ++n) {
      for (size_t i = 0; i < kernels_.size(); ++i) {
        const size_t threads = static_cast<size_t>(launches_[i].threads);
        const size_t all = threads * static_cast<size_t>(launches_[i].blocks);
        const bool begins = n == 0 && i == 0;
        const bool ends = n == times - 1 && i == kernels_.size() - 1;
        Handle event = nullptr;
        TRY(check(cl_.launch(queue_,
                             kernels_[i],
                             1,
                             nullptr,
                             &all,
                             &threads,
                             0,
                             nullptr,
                             begins || ends ? &event : nullptr),
                  "clEnqueueNDRangeKernel"));
        if (begins) first = event;
        if (ends) last = event;
      }
    }
    TRY(check(cl_.finish(queue_), "clFinish"));
    uint64_t start = 0, end = 0;
    const Status started = cl_.event_time(first, kCommandStart, sizeof start, &start, nullptr);
    const Status ended = cl_.event_time(last, kCommandEnd, sizeof end, &end, nullptr);
    if (first != last) cl_.release_event(first);
    cl_.release_event(last);
    TRY(check(started, "clGetEventProfilingInfo"));
    TRY(check(ended, "clGetEventProfilingInfo"));
    return static_cast<double>(end - start) * 1e-9 / static_cast<double>(times);
  }

 private:
  static Result<Unit> fits(const Artifact::Launch& launch, const OpenClDevice& device) {
    if (launch.threads > device.max_threads_per_block) {
      return Error(launch.kernel,
                   " has ",
                   launch.threads,
                   " threads a block, ",
                   device.name,
                   " runs at most ",
                   device.max_threads_per_block);
    }
    if (launch.shared_bytes > device.shared_bytes_per_block) {
      return Error(launch.kernel,
                   " takes ",
                   launch.shared_bytes,
                   " bytes of shared memory a block, ",
                   device.name,
                   " has ",
                   device.shared_bytes_per_block);
    }
    return Unit{};
  }

  Result<Unit> build(const std::string& source, Handle device) {
    const char* text = source.c_str();
    const size_t bytes = source.size();
    Status status = 0;
    program_ = cl_.program(context_, 1, &text, &bytes, &status);
    TRY(check(status, "clCreateProgramWithSource"));
    if (cl_.build(program_, 1, &device, "-cl-std=CL1.2", nullptr, nullptr) == 0) return Unit{};
    size_t log_bytes = 0;
    cl_.build_value(program_, device, kBuildLog, 0, nullptr, &log_bytes);
    std::string log(log_bytes, '\0');
    cl_.build_value(program_, device, kBuildLog, log_bytes, log.data(), nullptr);
    return Error("OpenCL compiler: ", log.c_str());
  }

  Result<Unit> add_buffer(int64_t bytes) {
    Status status = 0;
    sizes_.push_back(static_cast<size_t>(std::max<int64_t>(bytes, 1)));
    Handle buffer = cl_.buffer(context_, kReadWrite, sizes_.back(), nullptr, &status);
    TRY(check(status, "clCreateBuffer"));
    buffers_.push_back(buffer);
    return Unit{};
  }

  Result<Unit> add_kernel(const Artifact::Launch& launch) {
    Status status = 0;
    Handle kernel = cl_.kernel(program_, launch.kernel.c_str(), &status);
    TRY(check(status, "clCreateKernel"));
    kernels_.push_back(kernel);
    std::vector<int> arguments = launch.arguments;
    if (launch.workspace) arguments.push_back(static_cast<int>(buffers_.size()) - 1);
    for (size_t i = 0; i < arguments.size(); ++i) {
      Handle buffer = buffers_[static_cast<size_t>(arguments[i])];
      TRY(check(cl_.argument(kernel, static_cast<uint32_t>(i), sizeof buffer, &buffer),
                "clSetKernelArg"));
    }
    return Unit{};
  }

  const OpenCl& cl_;
  std::vector<Artifact::Launch> launches_;
  Handle context_ = nullptr, queue_ = nullptr, program_ = nullptr;
  std::vector<Handle> kernels_, buffers_;  // buffers: one an argument, then the workspace
  std::vector<size_t> sizes_;
};

}  // namespace

Result<std::vector<OpenClDevice>> list_opencl_devices() {
  TRY_ASSIGN(const std::vector<Found> found, find_devices());
  std::vector<OpenClDevice> devices;
  for (const Found& one : found) devices.push_back(one.device);
  return devices;
}

Result<std::unique_ptr<OpenClProgram>> load_opencl(const Artifact& artifact) {
  if (artifact.backend != Backend::kOpenCl) return Error(artifact.symbol, " is no OpenCL program");
  TRY_ASSIGN(const std::vector<Found> found, find_devices());
  auto program = std::make_unique<Program12>(*loader());
  TRY(program->load(artifact, found.front()));
  return std::unique_ptr<OpenClProgram>(std::move(program));
}

}  // namespace pruner
