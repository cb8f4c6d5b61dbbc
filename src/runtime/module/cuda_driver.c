/* CUDA's driver (libcuda.so.1): its first device, in its primary context, which a program shares
   with everything else that uses CUDA. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/module/executor.h"
#include "runtime/module/gpu_driver.h"

/* What is used of the driver's C interface, by its documentation. A status that is not 0 is an
   error. */
typedef int Status;
typedef struct {
  Status (*init)(unsigned flags);
  Status (*error_text)(Status status, const char** text);
  Status (*count_devices)(int* count);
  Status (*device)(int* device, int number);
  Status (*device_name)(char* name, int size, int device);
  Status (*device_attribute)(int* value, int attribute, int device);
  Status (*retain_context)(void** context, int device);
  Status (*release_context)(int device);
  Status (*push_context)(void* context);
  Status (*pop_context)(void** context);
  Status (*create_stream)(void** stream, unsigned flags);
  Status (*destroy_stream)(void* stream);
  Status (*wait_stream)(void* stream);
  Status (*allocate)(uint64_t* address, size_t bytes);
  Status (*release)(uint64_t address);
  Status (*load)(void** program, const void* image);
  Status (*unload)(void* program);
  Status (*kernel)(void** kernel, void* program, const char* name);
  Status (*write)(uint64_t to, const void* from, size_t bytes, void* stream);
  Status (*read)(void* to, uint64_t from, size_t bytes, void* stream);
  Status (*launch)(void* kernel,
                   unsigned blocks_x,
                   unsigned blocks_y,
                   unsigned blocks_z,
                   unsigned threads_x,
                   unsigned threads_y,
                   unsigned threads_z,
                   unsigned shared_bytes,
                   void* stream,
                   void** arguments,
                   void** extra);
} Cuda;

/* In the order of the members. */
static const char* const kCalls[] = {"cuInit",
                                     "cuGetErrorString",
                                     "cuDeviceGetCount",
                                     "cuDeviceGet",
                                     "cuDeviceGetName",
                                     "cuDeviceGetAttribute",
                                     "cuDevicePrimaryCtxRetain",
                                     "cuDevicePrimaryCtxRelease_v2",
                                     "cuCtxPushCurrent_v2",
                                     "cuCtxPopCurrent_v2",
                                     "cuStreamCreate",
                                     "cuStreamDestroy_v2",
                                     "cuStreamSynchronize",
                                     "cuMemAlloc_v2",
                                     "cuMemFree_v2",
                                     "cuModuleLoadData",
                                     "cuModuleUnload",
                                     "cuModuleGetFunction",
                                     "cuMemcpyHtoDAsync_v2",
                                     "cuMemcpyDtoHAsync_v2",
                                     "cuLaunchKernel"};
enum { kNumCalls = sizeof kCalls / sizeof *kCalls };
_Static_assert(sizeof(Cuda) == kNumCalls * sizeof(void*), "a name for every call");

enum { kMajor = 75, kMinor = 76, kNonBlocking = 1, kOutOfMemory = 2 };

struct GpuDevice {
  Cuda cuda;
  int device;
  void* context;
  void* stream;
  char name[128];
};

static int check(const Cuda* cuda, Status status, const char* call) {
  if (status == 0) return 1;
  const char* text = NULL;
  if (cuda->error_text(status, &text) != 0 || text == NULL) text = "no error that is known";
  return pruner_fail("CUDA: %s: %s (%d)", call, text, status);
}

/* "sm_80" runs where the major version is the same and the minor one not lower; "sm_90a" on that
   one alone. */
static int runs_here(const char* arch, int major, int minor) {
  int number = 0;
  char suffix = 0;
  if (sscanf(arch, "sm_%d%c", &number, &suffix) < 1) return 0;
  return number / 10 == major && (suffix == 'a' ? number % 10 == minor : number % 10 <= minor);
}

static int check_arch(GpuDevice* gpu) {
  const Cuda* cuda = &gpu->cuda;
  int major = 0, minor = 0;
  if (!check(cuda, cuda->device_attribute(&major, kMajor, gpu->device), "cuDeviceGetAttribute") ||
      !check(cuda, cuda->device_attribute(&minor, kMinor, gpu->device), "cuDeviceGetAttribute")) {
    return 0;
  }
  if (runs_here(pruner_plan.gpu_arch, major, minor)) return 1;
  return pruner_fail(
      "%s is sm_%d%d, the module was compiled for %s: compile it with --target \"cuda "
      "--arch=sm_%d%d\"",
      gpu->name,
      major,
      minor,
      pruner_plan.gpu_arch,
      major,
      minor);
}

static int open_device(GpuDevice* gpu) {
  Cuda* cuda = &gpu->cuda;
  if (!pruner_open_library("libcuda.so.1",
                           "the module runs on NVIDIA GPUs; install their driver",
                           kCalls,
                           kNumCalls,
                           cuda)) {
    return 0;
  }
  int count = 0;
  if (!check(cuda, cuda->init(0), "cuInit") ||
      !check(cuda, cuda->count_devices(&count), "cuDeviceGetCount")) {
    return 0;
  }
  if (count == 0) {
    return pruner_fail("CUDA's driver sees no GPU: see nvidia-smi and CUDA_VISIBLE_DEVICES");
  }
  if (!check(cuda, cuda->device(&gpu->device, 0), "cuDeviceGet") ||
      !check(
          cuda, cuda->device_name(gpu->name, sizeof gpu->name, gpu->device), "cuDeviceGetName") ||
      !check_arch(gpu)) {
    return 0;
  }
  void* context = NULL;
  if (!check(cuda, cuda->retain_context(&context, gpu->device), "cuDevicePrimaryCtxRetain")) {
    return 0;
  }
  gpu->context = context;
  void* left = NULL;
  if (!check(cuda, cuda->push_context(context), "cuCtxPushCurrent")) return 0;
  const int made = check(cuda, cuda->create_stream(&gpu->stream, kNonBlocking), "cuStreamCreate");
  cuda->pop_context(&left);
  return made;
}

static void close(GpuDevice* gpu) {
  const Cuda* cuda = &gpu->cuda;
  void* left = NULL;
  if (gpu->stream != NULL && cuda->push_context(gpu->context) == 0) {
    cuda->destroy_stream(gpu->stream);
    cuda->pop_context(&left);
  }
  if (gpu->context != NULL) cuda->release_context(gpu->device);
  free(gpu);
}

static GpuDevice* open(const GpuNeeds* needs) {
  (void)needs; /* every device of the arch allows what the target does */
  GpuDevice* gpu = calloc(1, sizeof *gpu);
  if (gpu == NULL) pruner_fail("out of memory");
  if (gpu == NULL || open_device(gpu)) return gpu;
  close(gpu);
  return NULL;
}

static int enter(GpuDevice* gpu) {
  return check(&gpu->cuda, gpu->cuda.push_context(gpu->context), "cuCtxPushCurrent");
}

static void leave(GpuDevice* gpu) {
  void* left = NULL;
  gpu->cuda.pop_context(&left);
}

static GpuHandle allocate(GpuDevice* gpu, int64_t bytes) {
  uint64_t address = 0;
  const Status status = gpu->cuda.allocate(&address, (size_t)bytes);
  if (status == kOutOfMemory) {
    return (GpuHandle)pruner_fail(
        "%s has no %lld bytes of memory left: end what else uses it (nvidia-smi), or compile for a "
        "smaller batch",
        gpu->name,
        (long long)bytes);
  }
  return check(&gpu->cuda, status, "cuMemAlloc") ? address : 0;
}

static GpuHandle view(GpuDevice* gpu, GpuHandle memory, int64_t offset, int64_t bytes) {
  (void)gpu;
  (void)bytes;
  return memory + (GpuHandle)offset;
}

static GpuHandle load(GpuDevice* gpu, const PlanCode* code) {
  void* program = NULL;
  const Status status = gpu->cuda.load(&program, code->bytes);
  return check(&gpu->cuda, status, "cuModuleLoadData") ? (GpuHandle)(uintptr_t)program : 0;
}

static GpuHandle kernel(GpuDevice* gpu, GpuHandle program, const char* name) {
  void* found = NULL;
  const Status status = gpu->cuda.kernel(&found, (void*)(uintptr_t)program, name);
  return check(&gpu->cuda, status, "cuModuleGetFunction") ? (GpuHandle)(uintptr_t)found : 0;
}

static void release(GpuDevice* gpu, int kind, GpuHandle handle) {
  if (kind == kGpuMemory) gpu->cuda.release(handle);
  if (kind == kGpuProgram) gpu->cuda.unload((void*)(uintptr_t)handle);
}

static int write(GpuDevice* gpu, GpuHandle to, const void* from, int64_t bytes) {
  const Status status = gpu->cuda.write(to, from, (size_t)bytes, gpu->stream);
  return check(&gpu->cuda, status, "cuMemcpyHtoDAsync");
}

static int read(GpuDevice* gpu, void* to, GpuHandle from, int64_t bytes) {
  const Status status = gpu->cuda.read(to, from, (size_t)bytes, gpu->stream);
  return check(&gpu->cuda, status, "cuMemcpyDtoHAsync");
}

static int launch(GpuDevice* gpu,
                  GpuHandle kernel_handle,
                  const PlanLaunch* plan,
                  const GpuHandle* args) {
  void* places[plan->num_args + 1];
  for (int64_t a = 0; a < plan->num_args; a++) places[a] = (void*)&args[a];
  const Status status = gpu->cuda.launch((void*)(uintptr_t)kernel_handle,
                                         (unsigned)plan->blocks,
                                         1,
                                         1,
                                         (unsigned)plan->threads,
                                         1,
                                         1,
                                         0,
                                         gpu->stream,
                                         places,
                                         NULL);
  return check(&gpu->cuda, status, "cuLaunchKernel");
}

static int wait(GpuDevice* gpu) {
  return check(&gpu->cuda, gpu->cuda.wait_stream(gpu->stream), "cuStreamSynchronize");
}

const GpuDriver pruner_cuda_driver = {
    open, close, enter, leave, allocate, view, load, kernel, release, write, read, launch, wait};
