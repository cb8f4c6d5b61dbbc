/* OpenCL 1.2 (libOpenCL.so.1): the first device, GPUs before CPUs, in a context of its own. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/module/executor.h"
#include "runtime/module/gpu_driver.h"

/* What is used of OpenCL's C interface, by its specification. Handles are opaque, and a status
   that is not 0 is an error. */
typedef void* Handle;
typedef int32_t Status;
typedef struct {
  Status (*platforms)(uint32_t, Handle*, uint32_t*);
  Status (*devices)(Handle, uint64_t, uint32_t, Handle*, uint32_t*);
  Status (*device_value)(Handle, uint32_t, size_t, void*, size_t*);
  Handle (*context)(const intptr_t*, uint32_t, const Handle*, void*, void*, Status*);
  Handle (*queue)(Handle, Handle, uint64_t, Status*);
  Handle (*buffer)(Handle, uint64_t, size_t, void*, Status*);
  Handle (*sub_buffer)(Handle, uint64_t, uint32_t, const void*, Status*);
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
  Status (*release_kernel)(Handle);
  Status (*release_program)(Handle);
  Status (*release_buffer)(Handle);
  Status (*release_queue)(Handle);
  Status (*release_context)(Handle);
} OpenCl;

/* In the order of the members. */
static const char* const kCalls[] = {"clGetPlatformIDs",       "clGetDeviceIDs",
                                     "clGetDeviceInfo",        "clCreateContext",
                                     "clCreateCommandQueue",   "clCreateBuffer",
                                     "clCreateSubBuffer",      "clCreateProgramWithSource",
                                     "clBuildProgram",         "clGetProgramBuildInfo",
                                     "clCreateKernel",         "clSetKernelArg",
                                     "clEnqueueNDRangeKernel", "clEnqueueWriteBuffer",
                                     "clEnqueueReadBuffer",    "clFinish",
                                     "clReleaseKernel",        "clReleaseProgram",
                                     "clReleaseMemObject",     "clReleaseCommandQueue",
                                     "clReleaseContext"};
enum { kNumCalls = sizeof kCalls / sizeof *kCalls };
_Static_assert(sizeof(OpenCl) == kNumCalls * sizeof(void*), "a name for every call");

enum { kMaxPlatforms = 16 };
enum { kMaxGroupSize = 0x1004, kBaseAlignment = 0x1019, kLocalBytes = 0x1023, kName = 0x102B };
enum { kBuildLog = 0x1183, kRegion = 0x1220 };
static const uint64_t kGpu = 1 << 2, kAllDevices = 0xFFFFFFFF, kReadWrite = 1;

struct GpuDevice {
  OpenCl cl;
  Handle device, context, queue;
  char name[128];
};

static int check(const GpuDevice* gpu, Status status, const char* call) {
  (void)gpu;
  if (status == 0) return 1;
  const int no_memory = status == -4 || status == -5;
  return pruner_fail("OpenCL: %s failed with status %d%s",
                     call,
                     (int)status,
                     no_memory ? " (the device is out of memory)" : "");
}

/* The first device of a kind; NULL: there is none. */
static Handle first_device(const OpenCl* cl, uint64_t kind) {
  Handle platforms[kMaxPlatforms];
  uint32_t count = 0;
  if (cl->platforms(kMaxPlatforms, platforms, &count) != 0) return NULL;
  for (uint32_t i = 0; i < count && i < kMaxPlatforms; i++) {
    Handle device = NULL;
    if (cl->devices(platforms[i], kind, 1, &device, NULL) == 0) return device;
  }
  return NULL;
}

/* Whether the device has room for the kernels, and for values at the places of the plan. */
static int fits(const GpuDevice* gpu, const GpuNeeds* needs) {
  size_t threads = 0;
  uint64_t shared_bytes = 0;
  uint32_t alignment_bits = 0;
  const OpenCl* cl = &gpu->cl;
  cl->device_value(gpu->device, kMaxGroupSize, sizeof threads, &threads, NULL);
  cl->device_value(gpu->device, kLocalBytes, sizeof shared_bytes, &shared_bytes, NULL);
  cl->device_value(gpu->device, kBaseAlignment, sizeof alignment_bits, &alignment_bits, NULL);
  if ((uint64_t)needs->threads > threads) {
    return pruner_fail(
        "the module has kernels of %lld threads a block, %s runs at most %zu: compile it with "
        "--target \"opencl --max_threads_per_block=%zu\"",
        (long long)needs->threads,
        gpu->name,
        threads,
        threads);
  }
  if ((uint64_t)needs->shared_bytes > shared_bytes) {
    return pruner_fail(
        "the module has kernels with %lld bytes of shared memory a block, %s has %llu: compile it "
        "with --target \"opencl --shared_memory_per_block=%llu\"",
        (long long)needs->shared_bytes,
        gpu->name,
        (unsigned long long)shared_bytes,
        (unsigned long long)shared_bytes);
  }
  if (alignment_bits > 8 * kPlanGpuAlignment) {
    return pruner_fail("%s has buffers begin at multiples of %u bytes, a module's do at %d",
                       gpu->name,
                       alignment_bits / 8,
                       (int)kPlanGpuAlignment);
  }
  return 1;
}

static int open_device(GpuDevice* gpu, const GpuNeeds* needs) {
  OpenCl* cl = &gpu->cl;
  if (!pruner_open_library(
          "libOpenCL.so.1", "install ocl-icd-libopencl1 and a driver", kCalls, kNumCalls, cl)) {
    return 0;
  }
  gpu->device = first_device(cl, kGpu);
  if (gpu->device == NULL) gpu->device = first_device(cl, kAllDevices);
  if (gpu->device == NULL) {
    return pruner_fail(
        "no OpenCL device: install a driver for this machine's GPU, or pocl-opencl-icd to run on "
        "the CPU");
  }
  cl->device_value(gpu->device, kName, sizeof gpu->name - 1, gpu->name, NULL);
  if (gpu->name[0] == 0) snprintf(gpu->name, sizeof gpu->name, "the OpenCL device");
  if (!fits(gpu, needs)) return 0;
  Status status = 0;
  gpu->context = cl->context(NULL, 1, &gpu->device, NULL, NULL, &status);
  if (!check(gpu, status, "clCreateContext")) return 0;
  gpu->queue = cl->queue(gpu->context, gpu->device, 0, &status);
  return check(gpu, status, "clCreateCommandQueue");
}

static void close(GpuDevice* gpu) {
  if (gpu->queue != NULL) gpu->cl.release_queue(gpu->queue);
  if (gpu->context != NULL) gpu->cl.release_context(gpu->context);
  free(gpu);
}

static GpuDevice* open(const GpuNeeds* needs) {
  GpuDevice* gpu = calloc(1, sizeof *gpu);
  if (gpu == NULL) pruner_fail("out of memory");
  if (gpu == NULL || open_device(gpu, needs)) return gpu;
  close(gpu);
  return NULL;
}

static int enter(GpuDevice* gpu) {
  (void)gpu;
  return 1;
}

static void leave(GpuDevice* gpu) { (void)gpu; }

static GpuHandle to_handle(Handle handle) { return (GpuHandle)(uintptr_t)handle; }
static Handle from_handle(GpuHandle handle) { return (Handle)(uintptr_t)handle; }

static GpuHandle allocate(GpuDevice* gpu, int64_t bytes) {
  Status status = 0;
  Handle buffer = gpu->cl.buffer(gpu->context, kReadWrite, (size_t)bytes, NULL, &status);
  if (status == 0) return to_handle(buffer);
  return (GpuHandle)pruner_fail(
      "%s has no %lld bytes of memory for one buffer (clCreateBuffer: status %d): end what else "
      "uses it, or compile for a smaller batch",
      gpu->name,
      (long long)bytes,
      (int)status);
}

static GpuHandle view(GpuDevice* gpu, GpuHandle memory, int64_t offset, int64_t bytes) {
  const size_t region[2] = {(size_t)offset, (size_t)bytes};
  Status status = 0;
  Handle part = gpu->cl.sub_buffer(from_handle(memory), 0, kRegion, region, &status);
  return check(gpu, status, "clCreateSubBuffer") ? to_handle(part) : 0;
}

static GpuHandle load(GpuDevice* gpu, const PlanCode* code) {
  const OpenCl* cl = &gpu->cl;
  const char* text = code->bytes;
  const size_t bytes = (size_t)code->size;
  Status status = 0;
  Handle program = cl->program(gpu->context, 1, &text, &bytes, &status);
  if (!check(gpu, status, "clCreateProgramWithSource")) return 0;
  if (cl->build(program, 1, &gpu->device, "-cl-std=CL1.2", NULL, NULL) == 0) {
    return to_handle(program);
  }
  size_t log_bytes = 0;
  cl->build_value(program, gpu->device, kBuildLog, 0, NULL, &log_bytes);
  char* log = calloc(1, log_bytes + 1);
  if (log != NULL) cl->build_value(program, gpu->device, kBuildLog, log_bytes, log, NULL);
  pruner_fail("OpenCL compiler of %s: %s", gpu->name, log != NULL ? log : "");
  free(log);
  cl->release_program(program);
  return 0;
}

static GpuHandle kernel(GpuDevice* gpu, GpuHandle program, const char* name) {
  Status status = 0;
  Handle found = gpu->cl.kernel(from_handle(program), name, &status);
  return check(gpu, status, "clCreateKernel") ? to_handle(found) : 0;
}

static void release(GpuDevice* gpu, int kind, GpuHandle handle) {
  switch (kind) {
    case kGpuProgram: gpu->cl.release_program(from_handle(handle)); break;
    case kGpuKernel: gpu->cl.release_kernel(from_handle(handle)); break;
    default: gpu->cl.release_buffer(from_handle(handle));
  }
}

static int write(GpuDevice* gpu, GpuHandle to, const void* from, int64_t bytes) {
  const Status status =
      gpu->cl.write(gpu->queue, from_handle(to), 0, 0, (size_t)bytes, from, 0, NULL, NULL);
  return check(gpu, status, "clEnqueueWriteBuffer");
}

static int read(GpuDevice* gpu, void* to, GpuHandle from, int64_t bytes) {
  const Status status =
      gpu->cl.read(gpu->queue, from_handle(from), 0, 0, (size_t)bytes, to, 0, NULL, NULL);
  return check(gpu, status, "clEnqueueReadBuffer");
}

static int launch(GpuDevice* gpu,
                  GpuHandle kernel_handle,
                  const PlanLaunch* plan,
                  const GpuHandle* args) {
  const OpenCl* cl = &gpu->cl;
  for (int64_t a = 0; a < plan->num_args; a++) {
    const Handle buffer = from_handle(args[a]);
    const Status status =
        cl->argument(from_handle(kernel_handle), (uint32_t)a, sizeof buffer, &buffer);
    if (!check(gpu, status, "clSetKernelArg")) return 0;
  }
  const size_t threads = (size_t)plan->threads;
  const size_t all = threads * (size_t)plan->blocks;
  const Status status =
      cl->launch(gpu->queue, from_handle(kernel_handle), 1, NULL, &all, &threads, 0, NULL, NULL);
  return check(gpu, status, "clEnqueueNDRangeKernel");
}

static int wait(GpuDevice* gpu) { return check(gpu, gpu->cl.finish(gpu->queue), "clFinish"); }

const GpuDriver pruner_opencl_driver = {
    open, close, enter, leave, allocate, view, load, kernel, release, write, read, launch, wait};
