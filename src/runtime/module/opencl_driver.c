/* OpenCL 1.2 (libOpenCL.so.1): a device in a context of its own. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/module/fail.h"
#include "runtime/module/gpu_driver.h"

/* The used part of OpenCL's C interface, by its specification. Handles are opaque, and a status
   that is not 0 is an error. */
typedef void* Handle;
typedef int32_t Status;
typedef struct {
  Status (*platforms)(uint32_t, Handle*, uint32_t*);
  Status (*platform_value)(Handle, uint32_t, size_t, void*, size_t*);
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
  Status (*fill)(
      Handle, Handle, const void*, size_t, size_t, size_t, uint32_t, const Handle*, Handle*);
  Status (*finish)(Handle);
  Status (*event_time)(Handle, uint32_t, size_t, void*, size_t*);
  Status (*release_event)(Handle);
  Status (*release_kernel)(Handle);
  Status (*release_program)(Handle);
  Status (*release_buffer)(Handle);
  Status (*release_queue)(Handle);
  Status (*release_context)(Handle);
} OpenCl;

/* In the order of the members. */
static const char* const kCalls[] = {
    "clGetPlatformIDs",        "clGetPlatformInfo",      "clGetDeviceIDs",
    "clGetDeviceInfo",         "clCreateContext",        "clCreateCommandQueue",
    "clCreateBuffer",          "clCreateSubBuffer",      "clCreateProgramWithSource",
    "clBuildProgram",          "clGetProgramBuildInfo",  "clCreateKernel",
    "clSetKernelArg",          "clEnqueueNDRangeKernel", "clEnqueueWriteBuffer",
    "clEnqueueReadBuffer",     "clEnqueueFillBuffer",    "clFinish",
    "clGetEventProfilingInfo", "clReleaseEvent",         "clReleaseKernel",
    "clReleaseProgram",        "clReleaseMemObject",     "clReleaseCommandQueue",
    "clReleaseContext"};
enum { kNumCalls = sizeof kCalls / sizeof *kCalls };
_Static_assert(sizeof(OpenCl) == kNumCalls * sizeof(void*), "a name for every call");

/* Devices beyond the 64th of all platforms are not listed. */
enum { kMaxPlatforms = 16, kMaxDevices = 64 };
/* Queries of devices, platforms, programs and events. */
enum {
  kDeviceType = 0x1000,    /* CL_DEVICE_TYPE */
  kComputeUnits = 0x1002,  /* CL_DEVICE_MAX_COMPUTE_UNITS */
  kGroupSize = 0x1004,     /* CL_DEVICE_MAX_WORK_GROUP_SIZE */
  kClockMhz = 0x100C,      /* CL_DEVICE_MAX_CLOCK_FREQUENCY */
  kBaseAlignment = 0x1019, /* CL_DEVICE_MEM_BASE_ADDR_ALIGN, in bits */
  kCacheBytes = 0x101E,    /* CL_DEVICE_GLOBAL_MEM_CACHE_SIZE */
  kMemoryBytes = 0x101F,   /* CL_DEVICE_GLOBAL_MEM_SIZE */
  kLocalBytes = 0x1023,    /* CL_DEVICE_LOCAL_MEM_SIZE */
  kDeviceName = 0x102B,    /* CL_DEVICE_NAME */
  kPlatformName = 0x0902,  /* CL_PLATFORM_NAME */
  kBuildLog = 0x1183,      /* CL_PROGRAM_BUILD_LOG */
  kRegion = 0x1220,        /* CL_BUFFER_CREATE_TYPE_REGION, of sub-buffers */
  kCommandStart = 0x1282,  /* CL_PROFILING_COMMAND_START, in nanoseconds */
  kCommandEnd = 0x1283     /* CL_PROFILING_COMMAND_END */
};
/* CL_DEVICE_TYPE_GPU and _ALL, CL_MEM_READ_WRITE, CL_QUEUE_PROFILING_ENABLE. */
static const uint64_t kGpu = 1 << 2, kAllDevices = 0xFFFFFFFF, kReadWrite = 1, kProfiling = 2;

/* Events of the first and the last launch between two marks. */
typedef struct {
  Handle first, last;
} Span;

struct GpuDevice {
  OpenCl cl;
  GpuFacts facts;
  Handle device, context, queue;
  Span* spans; /* one from each mark on */
  int64_t num_marks;
  int64_t span; /* the one at hand; num_marks - 1 and more: none */
};

static int check(Status status, const char* call) {
  if (status == 0) return 1;
  /* CL_MEM_OBJECT_ALLOCATION_FAILURE and CL_OUT_OF_RESOURCES. */
  const int no_memory = status == -4 || status == -5;
  return pruner_fail("OpenCL: %s failed with status %d%s",
                     call,
                     (int)status,
                     no_memory ? " (the device is out of memory)" : "");
}

typedef struct {
  Handle platform, device;
} Found;

static int is_gpu(const OpenCl* cl, Handle device) {
  uint64_t type = 0;
  cl->device_value(device, kDeviceType, sizeof type, &type, NULL);
  return (type & kGpu) != 0;
}

/* Opens the loader and returns the number of devices, GPUs first. */
static int find_devices(OpenCl* cl, Found* found) {
  if (!pruner_open_library(
          "libOpenCL.so.1", "install ocl-icd-libopencl1 and a driver", kCalls, kNumCalls, cl)) {
    return 0;
  }
  Handle platforms[kMaxPlatforms];
  uint32_t num_platforms = 0;
  if (cl->platforms(kMaxPlatforms, platforms, &num_platforms) != 0) num_platforms = 0;
  int count = 0;
  for (int gpus = 1; gpus >= 0; gpus--) {
    for (uint32_t p = 0; p < num_platforms && p < kMaxPlatforms; p++) {
      Handle devices[kMaxDevices];
      uint32_t here = 0;
      if (cl->devices(platforms[p], kAllDevices, kMaxDevices, devices, &here) != 0) continue;
      for (uint32_t d = 0; d < here && d < kMaxDevices && count < kMaxDevices; d++) {
        if (is_gpu(cl, devices[d]) == gpus) found[count++] = (Found){platforms[p], devices[d]};
      }
    }
  }
  if (count > 0) return count;
  return pruner_fail(
      "no OpenCL device: install a driver for this machine's GPU, or pocl-opencl-icd to run on "
      "the CPU");
}

/* Describes a device. Facts that the device does not tell stay 0 or ""; that is no error. */
static void describe(const OpenCl* cl, const Found* found, GpuFacts* facts) {
  *facts = (GpuFacts){.is_gpu = is_gpu(cl, found->device)};
  uint32_t units = 0, clock_mhz = 0, alignment_bits = 0;
  size_t group_size = 0;
  uint64_t local_bytes = 0, memory_bytes = 0, cache_bytes = 0;
  cl->device_value(found->device, kDeviceName, sizeof facts->name - 1, facts->name, NULL);
  cl->platform_value(found->platform, kPlatformName, sizeof facts->driver - 1, facts->driver, NULL);
  cl->device_value(found->device, kComputeUnits, sizeof units, &units, NULL);
  cl->device_value(found->device, kClockMhz, sizeof clock_mhz, &clock_mhz, NULL);
  cl->device_value(found->device, kGroupSize, sizeof group_size, &group_size, NULL);
  cl->device_value(found->device, kBaseAlignment, sizeof alignment_bits, &alignment_bits, NULL);
  cl->device_value(found->device, kLocalBytes, sizeof local_bytes, &local_bytes, NULL);
  cl->device_value(found->device, kMemoryBytes, sizeof memory_bytes, &memory_bytes, NULL);
  cl->device_value(found->device, kCacheBytes, sizeof cache_bytes, &cache_bytes, NULL);
  if (facts->name[0] == 0) snprintf(facts->name, sizeof facts->name, "the OpenCL device");
  facts->units = units;
  facts->clock_hz = 1e6 * (double)clock_mhz;
  facts->threads_per_block = (int64_t)group_size;
  facts->shared_bytes_per_block = facts->most_shared_bytes = (int64_t)local_bytes;
  facts->memory_bytes = (int64_t)memory_bytes;
  facts->l2_bytes = (int64_t)cache_bytes;
  facts->alignment = alignment_bits / 8;
}

static int list(GpuFacts* facts, int most) {
  OpenCl cl;
  Found found[kMaxDevices];
  const int count = find_devices(&cl, found);
  for (int i = 0; i < count && i < most; i++) describe(&cl, &found[i], &facts[i]);
  return count;
}

/* Whether the device has room for the kernels, and for values at the places of the plan. */
static int fits(const GpuFacts* facts, const GpuNeeds* needs) {
  if (needs->threads > facts->threads_per_block) {
    return pruner_fail(
        "there are kernels of %lld threads a block, %s runs at most %lld: compile for "
        "--target \"opencl --max_threads_per_block=%lld\"",
        (long long)needs->threads,
        facts->name,
        (long long)facts->threads_per_block,
        (long long)facts->threads_per_block);
  }
  if (needs->shared_bytes > facts->shared_bytes_per_block) {
    return pruner_fail(
        "there are kernels with %lld bytes of shared memory a block, %s has %lld: compile for "
        "--target \"opencl --shared_memory_per_block=%lld\"",
        (long long)needs->shared_bytes,
        facts->name,
        (long long)facts->shared_bytes_per_block,
        (long long)facts->shared_bytes_per_block);
  }
  if (facts->alignment > kPlanGpuAlignment) {
    return pruner_fail("%s has buffers begin at multiples of %lld bytes, ours do at %d",
                       facts->name,
                       (long long)facts->alignment,
                       (int)kPlanGpuAlignment);
  }
  return 1;
}

static int open_device(GpuDevice* gpu, int number, const GpuNeeds* needs) {
  OpenCl* cl = &gpu->cl;
  Found found[kMaxDevices];
  const int count = find_devices(cl, found);
  if (count == 0) return 0;
  if (number < 0 || number >= count) {
    return pruner_fail(
        "there is no device opencl:%d, the last one is opencl:%d", number, count - 1);
  }
  gpu->spans = calloc((size_t)needs->marks + 1, sizeof *gpu->spans);
  if (gpu->spans == NULL) return pruner_fail("out of memory");
  gpu->num_marks = gpu->span = needs->marks;
  gpu->device = found[number].device;
  describe(cl, &found[number], &gpu->facts);
  if (!fits(&gpu->facts, needs)) return 0;
  Status status = 0;
  gpu->context = cl->context(NULL, 1, &gpu->device, NULL, NULL, &status);
  if (!check(status, "clCreateContext")) return 0;
  /* Without CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE commands run in the order they are given. */
  gpu->queue = cl->queue(gpu->context, gpu->device, kProfiling, &status);
  return check(status, "clCreateCommandQueue");
}

static void forget(GpuDevice* gpu, Span* span) {
  if (span->first != NULL) gpu->cl.release_event(span->first);
  if (span->last != NULL) gpu->cl.release_event(span->last);
  *span = (Span){NULL, NULL};
}

static void close(GpuDevice* gpu) {
  for (int64_t i = 0; i < gpu->num_marks; i++) forget(gpu, &gpu->spans[i]);
  free(gpu->spans);
  if (gpu->queue != NULL) gpu->cl.release_queue(gpu->queue);
  if (gpu->context != NULL) gpu->cl.release_context(gpu->context);
  free(gpu);
}

static GpuDevice* open(int number, const GpuNeeds* needs) {
  GpuDevice* gpu = calloc(1, sizeof *gpu);
  if (gpu == NULL) pruner_fail("out of memory");
  if (gpu == NULL || open_device(gpu, number, needs)) return gpu;
  close(gpu);
  return NULL;
}

static const GpuFacts* facts_of(const GpuDevice* gpu) { return &gpu->facts; }

/* OpenCL has no current context: each call names its objects. */
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
      gpu->facts.name,
      (long long)bytes,
      (int)status);
}

/* A sub-buffer; its offset must be a multiple of the device's alignment, see fits(). */
static GpuHandle view(GpuDevice* gpu, GpuHandle memory, int64_t offset, int64_t bytes) {
  const size_t region[2] = {(size_t)offset, (size_t)bytes};
  Status status = 0;
  Handle part = gpu->cl.sub_buffer(from_handle(memory), 0, kRegion, region, &status);
  return check(status, "clCreateSubBuffer") ? to_handle(part) : 0;
}

static GpuHandle load(GpuDevice* gpu, const PlanCode* code) {
  const OpenCl* cl = &gpu->cl;
  const char* text = code->bytes;
  const size_t bytes = (size_t)code->size;
  Status status = 0;
  Handle program = cl->program(gpu->context, 1, &text, &bytes, &status);
  if (!check(status, "clCreateProgramWithSource")) return 0;
  if (cl->build(program, 1, &gpu->device, "-cl-std=CL1.2", NULL, NULL) == 0) {
    return to_handle(program);
  }
  size_t log_bytes = 0;
  cl->build_value(program, gpu->device, kBuildLog, 0, NULL, &log_bytes);
  char* log = calloc(1, log_bytes + 1);
  if (log != NULL) cl->build_value(program, gpu->device, kBuildLog, log_bytes, log, NULL);
  pruner_fail("OpenCL compiler of %s: %s", gpu->facts.name, log != NULL ? log : "");
  free(log);
  cl->release_program(program);
  return 0;
}

static GpuHandle kernel(GpuDevice* gpu, GpuHandle program, const PlanLaunch* launch) {
  Status status = 0;
  Handle found = gpu->cl.kernel(from_handle(program), launch->kernel, &status);
  return check(status, "clCreateKernel") ? to_handle(found) : 0;
}

static void release(GpuDevice* gpu, int kind, GpuHandle handle) {
  switch (kind) {
    case kGpuProgram: gpu->cl.release_program(from_handle(handle)); break;
    case kGpuKernel: gpu->cl.release_kernel(from_handle(handle)); break;
    default: gpu->cl.release_buffer(from_handle(handle));
  }
}

/* The third argument of write and read, 0: the call does not wait for the copy. */
static int write(GpuDevice* gpu, GpuHandle to, const void* from, int64_t bytes) {
  const Status status =
      gpu->cl.write(gpu->queue, from_handle(to), 0, 0, (size_t)bytes, from, 0, NULL, NULL);
  return check(status, "clEnqueueWriteBuffer");
}

static int read(GpuDevice* gpu, void* to, GpuHandle from, int64_t bytes) {
  const Status status =
      gpu->cl.read(gpu->queue, from_handle(from), 0, 0, (size_t)bytes, to, 0, NULL, NULL);
  return check(status, "clEnqueueReadBuffer");
}

static int fill(GpuDevice* gpu, GpuHandle memory, uint8_t value, int64_t bytes) {
  const Status status =
      gpu->cl.fill(gpu->queue, from_handle(memory), &value, 1, 0, (size_t)bytes, 0, NULL, NULL);
  return check(status, "clEnqueueFillBuffer");
}

/* Owns the event: the first of a span stays, another takes the place of the last. */
static void note(GpuDevice* gpu, Span* span, Handle event) {
  if (span->first == NULL) {
    span->first = event;
    return;
  }
  if (span->last != NULL) gpu->cl.release_event(span->last);
  span->last = event;
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
    if (!check(status, "clSetKernelArg")) return 0;
  }
  const size_t threads = (size_t)plan->threads;
  /* OpenCL counts work items of all groups, not groups. */
  const size_t all = threads * (size_t)plan->blocks;
  const int timed = gpu->span + 1 < gpu->num_marks;
  Handle event = NULL;
  const Status status = cl->launch(gpu->queue,
                                   from_handle(kernel_handle),
                                   1,
                                   NULL,
                                   &all,
                                   &threads,
                                   0,
                                   NULL,
                                   timed ? &event : NULL);
  if (!check(status, "clEnqueueNDRangeKernel")) return 0;
  if (timed) note(gpu, &gpu->spans[gpu->span], event);
  return 1;
}

static int wait(GpuDevice* gpu) { return check(gpu->cl.finish(gpu->queue), "clFinish"); }

static int mark(GpuDevice* gpu, int64_t which) {
  gpu->span = which;
  forget(gpu, &gpu->spans[which]);
  return 1;
}

/* A span without a launch takes 0 seconds. */
static int elapsed(GpuDevice* gpu, int64_t from, double* seconds) {
  *seconds = 0;
  const Span span = gpu->spans[from];
  if (span.first == NULL) return 1;
  const Handle last = span.last != NULL ? span.last : span.first;
  uint64_t start = 0, end = 0;
  if (!check(gpu->cl.event_time(span.first, kCommandStart, sizeof start, &start, NULL),
             "clGetEventProfilingInfo") ||
      !check(gpu->cl.event_time(last, kCommandEnd, sizeof end, &end, NULL),
             "clGetEventProfilingInfo")) {
    return 0;
  }
  *seconds = 1e-9 * (double)(end - start);
  return 1;
}

/* The caller has no streams of OpenCL. */
static int wait_for_streams(GpuDevice* gpu) {
  (void)gpu;
  return 1;
}

/* No caller's tensors lie on a device of OpenCL, and other memory is the host's. */
static int check_address(GpuDevice* gpu, GpuHandle address, int on_device, const char* name) {
  (void)gpu, (void)address, (void)on_device, (void)name;
  return 1;
}

/* OpenCL 1.2 has no recordings. */
const GpuDriver pruner_opencl_driver = {.list = list,
                                        .open = open,
                                        .close = close,
                                        .facts = facts_of,
                                        .enter = enter,
                                        .leave = leave,
                                        .allocate = allocate,
                                        .view = view,
                                        .load = load,
                                        .kernel = kernel,
                                        .release = release,
                                        .write = write,
                                        .read = read,
                                        .fill = fill,
                                        .launch = launch,
                                        .wait = wait,
                                        .mark = mark,
                                        .elapsed = elapsed,
                                        .wait_for_streams = wait_for_streams,
                                        .check_address = check_address};
