/* CUDA's driver (libcuda.so.1): a device in its primary context, which a program shares with
   everything else that uses CUDA. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/module/fail.h"
#include "runtime/module/gpu_driver.h"

/* The used part of the driver's C interface, by its documentation. A status that is not 0 is an
   error. */
typedef int Status;
typedef struct {
  Status (*init)(unsigned flags);
  Status (*version)(int* version);
  Status (*error_text)(Status status, const char** text);
  Status (*count_devices)(int* count);
  Status (*device)(int* device, int number);
  Status (*device_name)(char* name, int size, int device);
  Status (*device_attribute)(int* value, int attribute, int device);
  Status (*device_memory)(size_t* bytes, int device);
  Status (*device_bus)(char* text, int size, int device);
  Status (*retain_context)(void** context, int device);
  Status (*release_context)(int device);
  Status (*push_context)(void* context);
  Status (*pop_context)(void** context);
  Status (*create_stream)(void** stream, unsigned flags);
  Status (*destroy_stream)(void* stream);
  Status (*wait_stream)(void* stream);
  Status (*stream_context)(void* stream, void** context);
  Status (*stream_captures)(void* stream, int* status);
  Status (*stream_waits)(void* stream, void* event, unsigned flags);
  Status (*allocate)(uint64_t* address, size_t bytes);
  Status (*release)(uint64_t address);
  Status (*allocate_host)(void** memory, size_t bytes, unsigned flags);
  Status (*release_host)(void* memory);
  Status (*load)(void** program, const void* image);
  Status (*unload)(void* program);
  Status (*kernel)(void** kernel, void* program, const char* name);
  Status (*set_attribute)(void* kernel, int attribute, int value);
  Status (*write)(uint64_t to, const void* from, size_t bytes, void* stream);
  Status (*read)(void* to, uint64_t from, size_t bytes, void* stream);
  Status (*copy)(uint64_t to, uint64_t from, size_t bytes, void* stream);
  Status (*fill)(uint64_t to, unsigned char value, size_t bytes, void* stream);
  Status (*address_attribute)(void* value, int attribute, uint64_t address);
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
  Status (*create_event)(void** event, unsigned flags);
  Status (*destroy_event)(void* event);
  Status (*record_event)(void* event, void* stream);
  Status (*wait_event)(void* event);
  Status (*event_milliseconds)(float* milliseconds, void* start, void* end);
  Status (*begin_capture)(void* stream, int mode);
  Status (*end_capture)(void* stream, void** graph);
  Status (*instantiate)(void** executable, void* graph, unsigned long long flags);
  Status (*destroy_graph)(void* graph);
  Status (*launch_graph)(void* executable, void* stream);
  Status (*destroy_executable)(void* executable);
} Cuda;

/* In the order of the members. */
static const char* const kCalls[] = {"cuInit",
                                     "cuDriverGetVersion",
                                     "cuGetErrorString",
                                     "cuDeviceGetCount",
                                     "cuDeviceGet",
                                     "cuDeviceGetName",
                                     "cuDeviceGetAttribute",
                                     "cuDeviceTotalMem_v2",
                                     "cuDeviceGetPCIBusId",
                                     "cuDevicePrimaryCtxRetain",
                                     "cuDevicePrimaryCtxRelease_v2",
                                     "cuCtxPushCurrent_v2",
                                     "cuCtxPopCurrent_v2",
                                     "cuStreamCreate",
                                     "cuStreamDestroy_v2",
                                     "cuStreamSynchronize",
                                     "cuStreamGetCtx",
                                     "cuStreamIsCapturing",
                                     "cuStreamWaitEvent",
                                     "cuMemAlloc_v2",
                                     "cuMemFree_v2",
                                     "cuMemHostAlloc",
                                     "cuMemFreeHost",
                                     "cuModuleLoadData",
                                     "cuModuleUnload",
                                     "cuModuleGetFunction",
                                     "cuFuncSetAttribute",
                                     "cuMemcpyHtoDAsync_v2",
                                     "cuMemcpyDtoHAsync_v2",
                                     "cuMemcpyDtoDAsync_v2",
                                     "cuMemsetD8Async",
                                     "cuPointerGetAttribute",
                                     "cuLaunchKernel",
                                     "cuEventCreate",
                                     "cuEventDestroy_v2",
                                     "cuEventRecord",
                                     "cuEventSynchronize",
                                     "cuEventElapsedTime",
                                     "cuStreamBeginCapture_v2",
                                     "cuStreamEndCapture",
                                     "cuGraphInstantiateWithFlags",
                                     "cuGraphDestroy",
                                     "cuGraphLaunch",
                                     "cuGraphExecDestroy"};
enum { kNumCalls = sizeof kCalls / sizeof *kCalls };
_Static_assert(sizeof(Cuda) == kNumCalls * sizeof(void*), "a name for every call");

/* CU_STREAM_NON_BLOCKING: no waiting for the default stream of others in the process;
   CU_STREAM_CAPTURE_MODE_RELAXED: other threads may allocate during a capture; then three errors,
   CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY and CUDA_ERROR_NO_DEVICE. */
enum { kNonBlocking = 1, kRelaxed = 2, kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100 };
/* Attributes of devices. */
enum {
  kThreadsPerBlock = 1,
  kSharedBytes = 8,
  kClockKhz = 13,
  kUnits = 16,
  kL2Bytes = 38,
  kMajor = 75,
  kMinor = 76,
  kMostSharedBytes = 97 /* limit of functions that ask for them */
};
/* An attribute of functions. */
enum { kMostDynamicBytes = 8 };
/* Attributes of addresses, and the device's kind of memory. */
enum { kMemoryType = 2, kManaged = 8, kAddressDevice = 9, kDeviceMemory = 2 };
/* CU_EVENT_DISABLE_TIMING; streams up to CU_STREAM_PER_THREAD are CUDA's own, of any context, and
   those up to CU_STREAM_LEGACY are never captured; the status of a stream without a capture. */
enum { kNoTiming = 2, kLastOfCuda = 2, kLegacy = 1, kNoCapture = 0 };

/* CUlaunchAttribute and CUlaunchConfig. The one attribute says that the launch may begin before
   those before it in the stream have ended. */
typedef struct {
  int id, pad;
  union {
    int number;
    char bytes[64];
  } value;
} LaunchAttribute;
typedef struct {
  unsigned blocks[3], threads[3], shared_bytes;
  void* stream;
  const LaunchAttribute* attributes;
  unsigned num_attributes;
} LaunchConfig;
enum { kEarlyLaunch = 6 };
_Static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56, "as CUDA has them");
/* The first driver that records such launches in graphs. A driver without the call, or an older
   one, launches one kernel after the other. */
enum { kFirstWithEarly = 12030 };

struct GpuDevice {
  Cuda cuda;
  Status (*launch_with)(const LaunchConfig*, void* kernel, void** arguments, void** extra);
  GpuFacts facts;
  int device;
  void* context; /* the device's primary one; NULL until it is retained */
  void* stream;  /* the device's own queue */
  void* entered; /* `stream`, or the caller's from enter_stream() to leave_stream() */
  void* queue;   /* `entered`, or `stream` during a recording; launches and copies run in order */
  void* done;    /* an event behind the run that was last left in a stream of the caller's */
  int is_left;   /* whether the host has not waited for that event */
  void** marks;  /* events */
  int64_t num_marks;
};

static const char kLibrary[] = "libcuda.so.1";

static const char* text_of(const Cuda* cuda, Status status) {
  const char* text = NULL;
  const Status known = cuda->error_text(status, &text);
  return known == 0 && text != NULL ? text : "no error that is known";
}

/* 1 when a call succeeded; else its name and CUDA's text for the status are the error. */
static int check(const Cuda* cuda, Status status, const char* call) {
  if (status == 0) return 1;
  return pruner_fail("CUDA: %s: %s (%d)", call, text_of(cuda, status), status);
}

/* Opens the driver and returns the number of its devices. */
static int open_driver(Cuda* cuda) {
  if (!pruner_open_library(
          kLibrary, "the code is for NVIDIA GPUs; install their driver", kCalls, kNumCalls, cuda)) {
    return 0;
  }
  int count = 0;
  const Status started = cuda->init(0);
  if (started != kNoDevice && (!check(cuda, started, "cuInit") ||
                               !check(cuda, cuda->count_devices(&count), "cuDeviceGetCount"))) {
    return 0;
  }
  if (count > 0) return count;
  return pruner_fail("CUDA's driver sees no GPU: see nvidia-smi and CUDA_VISIBLE_DEVICES");
}

static int describe(const Cuda* cuda, int device, GpuFacts* facts) {
  *facts = (GpuFacts){.is_gpu = 1, .alignment = kPlanGpuAlignment};
  static const int kAsked[] = {kMajor,
                               kMinor,
                               kUnits,
                               kClockKhz,
                               kThreadsPerBlock,
                               kSharedBytes,
                               kL2Bytes,
                               kMostSharedBytes};
  enum { kCount = sizeof kAsked / sizeof *kAsked };
  int values[kCount] = {0}, version = 0;
  for (int i = 0; i < kCount; i++) {
    const Status status = cuda->device_attribute(&values[i], kAsked[i], device);
    if (!check(cuda, status, "cuDeviceGetAttribute")) return 0;
  }
  size_t memory_bytes = 0;
  if (!check(cuda, cuda->device_name(facts->name, sizeof facts->name, device), "cuDeviceGetName") ||
      !check(
          cuda, cuda->device_bus(facts->bus, sizeof facts->bus, device), "cuDeviceGetPCIBusId") ||
      !check(cuda, cuda->device_memory(&memory_bytes, device), "cuDeviceTotalMem") ||
      !check(cuda, cuda->version(&version), "cuDriverGetVersion")) {
    return 0;
  }
  snprintf(facts->arch, sizeof facts->arch, "sm_%d%d", values[0], values[1]);
  /* CUDA writes version 12.4 as 12040. */
  snprintf(facts->driver, sizeof facts->driver, "CUDA %d.%d", version / 1000, version % 1000 / 10);
  facts->units = values[2];
  facts->clock_hz = 1e3 * (double)values[3];
  facts->threads_per_block = values[4];
  facts->shared_bytes_per_block = values[5];
  facts->l2_bytes = values[6];
  facts->most_shared_bytes = values[7];
  facts->memory_bytes = (int64_t)memory_bytes;
  return 1;
}

static int list(GpuFacts* facts, int most) {
  Cuda cuda;
  const int count = open_driver(&cuda);
  for (int i = 0; i < count && i < most; i++) {
    int device = 0;
    if (!check(&cuda, cuda.device(&device, i), "cuDeviceGet") ||
        !describe(&cuda, device, &facts[i])) {
      return 0;
    }
  }
  return count;
}

int pruner_cuda_runs(const char* code, const char* device) {
  int number = 0, here = 0;
  char suffix = 0;
  if (sscanf(code, "sm_%d%c", &number, &suffix) < 1 || sscanf(device, "sm_%d", &here) < 1) return 0;
  return number / 10 == here / 10 && (suffix == 'a' ? number == here : number <= here);
}

static int check_arch(const GpuDevice* gpu, const char* arch) {
  if (arch == NULL || pruner_cuda_runs(arch, gpu->facts.arch)) return 1;
  return pruner_fail(
      "%s is %s, the code was compiled for %s: compile it with --target \"cuda --arch=%s\"",
      gpu->facts.name,
      gpu->facts.arch,
      arch,
      gpu->facts.arch);
}

/* PRUNER_EARLY_LAUNCH=0 launches one kernel after the other: for comparisons, and where a driver is
   suspected. */
static int find_early_launch(GpuDevice* gpu) {
  const char* wanted = getenv("PRUNER_EARLY_LAUNCH");
  if (wanted != NULL && strcmp(wanted, "0") == 0) return 1;
  int version = 0;
  if (!check(&gpu->cuda, gpu->cuda.version(&version), "cuDriverGetVersion")) return 0;
  void* const found =
      version < kFirstWithEarly ? NULL : pruner_find_function(kLibrary, "cuLaunchKernelEx");
  /* Bytes are copied: C converts no pointer to an object into one to a function. */
  memcpy(&gpu->launch_with, &found, sizeof found);
  return 1;
}

/* Events of flags 0 keep time. One more place is there, as calloc() of 0 may give NULL. */
static int make_marks(GpuDevice* gpu, int64_t count) {
  gpu->marks = calloc((size_t)count + 1, sizeof *gpu->marks);
  if (gpu->marks == NULL) return pruner_fail("out of memory");
  for (; gpu->num_marks < count; gpu->num_marks++) {
    const Status status = gpu->cuda.create_event(&gpu->marks[gpu->num_marks], 0);
    if (!check(&gpu->cuda, status, "cuEventCreate")) return 0;
  }
  return 1;
}

static int open_device(GpuDevice* gpu, int number, const GpuNeeds* needs) {
  Cuda* cuda = &gpu->cuda;
  const int count = open_driver(cuda);
  if (count == 0) return 0;
  if (number < 0 || number >= count) {
    return pruner_fail("there is no device cuda:%d, the last one is cuda:%d", number, count - 1);
  }
  if (!check(cuda, cuda->device(&gpu->device, number), "cuDeviceGet") ||
      !describe(cuda, gpu->device, &gpu->facts) || !check_arch(gpu, needs->arch)) {
    return 0;
  }
  if (!find_early_launch(gpu)) return 0;
  void* context = NULL;
  if (!check(cuda, cuda->retain_context(&context, gpu->device), "cuDevicePrimaryCtxRetain")) {
    return 0;
  }
  gpu->context = context;
  void* left = NULL;
  if (!check(cuda, cuda->push_context(context), "cuCtxPushCurrent")) return 0;
  const int made = check(cuda, cuda->create_stream(&gpu->stream, kNonBlocking), "cuStreamCreate") &&
                   make_marks(gpu, needs->marks) &&
                   check(cuda, cuda->create_event(&gpu->done, kNoTiming), "cuEventCreate");
  gpu->entered = gpu->queue = gpu->stream;
  cuda->pop_context(&left);
  return made;
}

static void close(GpuDevice* gpu) {
  const Cuda* cuda = &gpu->cuda;
  void* left = NULL;
  if (gpu->stream != NULL && cuda->push_context(gpu->context) == 0) {
    for (int64_t i = 0; i < gpu->num_marks; i++) cuda->destroy_event(gpu->marks[i]);
    if (gpu->done != NULL) cuda->destroy_event(gpu->done);
    cuda->destroy_stream(gpu->stream);
    cuda->pop_context(&left);
  }
  if (gpu->context != NULL) cuda->release_context(gpu->device);
  free(gpu->marks);
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

static int enter(GpuDevice* gpu) {
  return check(&gpu->cuda, gpu->cuda.push_context(gpu->context), "cuCtxPushCurrent");
}

static void leave(GpuDevice* gpu) {
  void* left = NULL;
  gpu->cuda.pop_context(&left);
}

static GpuHandle to_handle(const void* p) { return (GpuHandle)(uintptr_t)p; }
static void* pointer(GpuHandle handle) { return (void*)(uintptr_t)handle; }

static GpuHandle allocate(GpuDevice* gpu, int64_t bytes) {
  uint64_t address = 0;
  const Status status = gpu->cuda.allocate(&address, (size_t)bytes);
  if (status == kOutOfMemory) {
    return (GpuHandle)pruner_fail(
        "%s has no %lld bytes of memory left: end what else uses it (nvidia-smi), or compile for a "
        "smaller batch",
        gpu->facts.name,
        (long long)bytes);
  }
  return check(&gpu->cuda, status, "cuMemAlloc") ? address : 0;
}

/* Device memory is plain addresses: a part needs no object and release() has nothing to do. */
static GpuHandle view(GpuDevice* gpu, GpuHandle memory, int64_t offset, int64_t bytes) {
  (void)gpu;
  (void)bytes;
  return memory + (GpuHandle)offset;
}

/* A cubin says its own size: only its beginning is passed. */
static GpuHandle load(GpuDevice* gpu, const PlanCode* code) {
  void* program = NULL;
  const Status status = gpu->cuda.load(&program, code->bytes);
  return check(&gpu->cuda, status, "cuModuleLoadData") ? to_handle(program) : 0;
}

static GpuHandle kernel(GpuDevice* gpu, GpuHandle program, const PlanLaunch* launch) {
  const Cuda* cuda = &gpu->cuda;
  if (launch->shared_bytes > gpu->facts.most_shared_bytes) {
    return (GpuHandle)pruner_fail(
        "%s takes %lld bytes of shared memory a block, %s has %lld: compile it with --target "
        "\"cuda --arch=%s\"",
        launch->kernel,
        (long long)launch->shared_bytes,
        gpu->facts.name,
        (long long)gpu->facts.most_shared_bytes,
        gpu->facts.arch);
  }
  void* found = NULL;
  Status status = cuda->kernel(&found, pointer(program), launch->kernel);
  if (!check(cuda, status, "cuModuleGetFunction")) return 0;
  if (launch->dynamic_bytes == 0) return to_handle(found);
  status = cuda->set_attribute(found, kMostDynamicBytes, (int)launch->dynamic_bytes);
  if (status == 0) return to_handle(found);
  return (GpuHandle)pruner_fail(
      "CUDA: cuFuncSetAttribute: %s (%d): %s takes %lld bytes of shared memory a block, %s has "
      "%lld",
      text_of(cuda, status),
      status,
      launch->kernel,
      (long long)launch->shared_bytes,
      gpu->facts.name,
      (long long)gpu->facts.most_shared_bytes);
}

static void release(GpuDevice* gpu, int kind, GpuHandle handle) {
  if (kind == kGpuMemory) gpu->cuda.release(handle);
  if (kind == kGpuProgram) gpu->cuda.unload(pointer(handle));
  if (kind == kGpuPinned) gpu->cuda.release_host(pointer(handle));
  if (kind == kGpuRecording) gpu->cuda.destroy_executable(pointer(handle));
}

static int write(GpuDevice* gpu, GpuHandle to, const void* from, int64_t bytes) {
  const Status status = gpu->cuda.write(to, from, (size_t)bytes, gpu->queue);
  return check(&gpu->cuda, status, "cuMemcpyHtoDAsync");
}

static int read(GpuDevice* gpu, void* to, GpuHandle from, int64_t bytes) {
  const Status status = gpu->cuda.read(to, from, (size_t)bytes, gpu->queue);
  return check(&gpu->cuda, status, "cuMemcpyDtoHAsync");
}

static int fill(GpuDevice* gpu, GpuHandle memory, uint8_t value, int64_t bytes) {
  const Status status = gpu->cuda.fill(memory, value, (size_t)bytes, gpu->queue);
  return check(&gpu->cuda, status, "cuMemsetD8Async");
}

static int launch(GpuDevice* gpu,
                  GpuHandle kernel_handle,
                  const PlanLaunch* plan,
                  const GpuHandle* args) {
  /* cuLaunchKernel takes an address for each parameter's value; one more, as no array of C has 0
     elements. */
  void* places[plan->num_args + 1];
  for (int64_t a = 0; a < plan->num_args; a++) places[a] = (void*)&args[a];
  if (plan->early && gpu->launch_with != NULL) {
    const LaunchAttribute early = {.id = kEarlyLaunch, .value = {.number = 1}};
    const LaunchConfig config = {.blocks = {(unsigned)plan->blocks, 1, 1},
                                 .threads = {(unsigned)plan->threads, 1, 1},
                                 .shared_bytes = (unsigned)plan->dynamic_bytes,
                                 .stream = gpu->queue,
                                 .attributes = &early,
                                 .num_attributes = 1};
    const Status status = gpu->launch_with(&config, pointer(kernel_handle), places, NULL);
    return check(&gpu->cuda, status, "cuLaunchKernelEx");
  }
  const Status status = gpu->cuda.launch(pointer(kernel_handle),
                                         (unsigned)plan->blocks,
                                         1,
                                         1,
                                         (unsigned)plan->threads,
                                         1,
                                         1,
                                         (unsigned)plan->dynamic_bytes,
                                         gpu->queue,
                                         places,
                                         NULL);
  return check(&gpu->cuda, status, "cuLaunchKernel");
}

static int wait(GpuDevice* gpu) {
  return check(&gpu->cuda, gpu->cuda.wait_stream(gpu->queue), "cuStreamSynchronize");
}

static int mark(GpuDevice* gpu, int64_t which) {
  return check(&gpu->cuda, gpu->cuda.record_event(gpu->marks[which], gpu->queue), "cuEventRecord");
}

static int elapsed(GpuDevice* gpu, int64_t from, double* seconds) {
  float milliseconds = 0;
  const Status status =
      gpu->cuda.event_milliseconds(&milliseconds, gpu->marks[from], gpu->marks[from + 1]);
  *seconds = 1e-3 * (double)milliseconds;
  return check(&gpu->cuda, status, "cuEventElapsedTime");
}

static void* pin(GpuDevice* gpu, int64_t bytes) {
  void* memory = NULL;
  const Status status = gpu->cuda.allocate_host(&memory, (size_t)bytes, 0);
  return check(&gpu->cuda, status, "cuMemHostAlloc") ? memory : NULL;
}

/* A recording is made in the device's own stream, whatever the queue is. */
static int begin_recording(GpuDevice* gpu) {
  const Status status = gpu->cuda.begin_capture(gpu->stream, kRelaxed);
  if (!check(&gpu->cuda, status, "cuStreamBeginCapture")) return 0;
  gpu->queue = gpu->stream;
  return 1;
}

/* The executable graph is independent of the graph that it was made of. */
static GpuHandle end_recording(GpuDevice* gpu) {
  const Cuda* cuda = &gpu->cuda;
  void* graph = NULL;
  void* executable = NULL;
  gpu->queue = gpu->entered;
  if (!check(cuda, cuda->end_capture(gpu->stream, &graph), "cuStreamEndCapture")) return 0;
  const Status status = cuda->instantiate(&executable, graph, 0);
  cuda->destroy_graph(graph);
  return check(cuda, status, "cuGraphInstantiateWithFlags") ? to_handle(executable) : 0;
}

static int replay(GpuDevice* gpu, GpuHandle recording) {
  const Status status = gpu->cuda.launch_graph(pointer(recording), gpu->queue);
  return check(&gpu->cuda, status, "cuGraphLaunch");
}

static int copy(GpuDevice* gpu, GpuHandle to, GpuHandle from, int64_t bytes) {
  const Status status = gpu->cuda.copy(to, from, (size_t)bytes, gpu->queue);
  return check(&gpu->cuda, status, "cuMemcpyDtoDAsync");
}

/* Returns 1 if a tensor lies where the run says, on the device or in the host's memory.
   cuPointerGetAttribute() fails for pageable memory of the host. Managed memory counts as both. */
static int check_address(GpuDevice* gpu, GpuHandle address, int on_device, const char* name) {
  const Cuda* cuda = &gpu->cuda;
  unsigned type = 0, managed = 0;
  int device = gpu->device;
  Status status = cuda->address_attribute(&type, kMemoryType, address);
  const int is_host = status == kInvalidValue || (status == 0 && type != kDeviceMemory);
  if (status == 0) status = cuda->address_attribute(&managed, kManaged, address);
  if (!is_host && status == 0) status = cuda->address_attribute(&device, kAddressDevice, address);
  if (!is_host && !check(cuda, status, "cuPointerGetAttribute")) return 0;
  if (managed || (is_host && !on_device) || (!is_host && on_device && device == gpu->device))
    return 1;
  if (is_host || !on_device)
    return pruner_fail("\"%s\" lies in the memory of %s, the run says that it lies in that of %s",
                       name,
                       is_host ? "the host" : "a device",
                       is_host ? "the device" : "the host");
  return pruner_fail(
      "\"%s\" lies on cuda:%d, the module runs on cuda:%d", name, device, gpu->device);
}

/* A stream waits on the device for the last run, which was left in the same or another one: a
   stream that was destroyed and a new one may have one handle. */
static int wait_for_left(GpuDevice* gpu, void* stream) {
  if (!gpu->is_left) return 1;
  return check(&gpu->cuda, gpu->cuda.stream_waits(stream, gpu->done, 0), "cuStreamWaitEvent");
}

static int enter_stream(GpuDevice* gpu, void* stream, int* captured) {
  const Cuda* cuda = &gpu->cuda;
  int status = kNoCapture;
  void* context = gpu->context;
  const int is_cudas = (uintptr_t)stream <= kLastOfCuda, is_legacy = (uintptr_t)stream <= kLegacy;
  if (!is_cudas && !check(cuda, cuda->stream_context(stream, &context), "cuStreamGetCtx")) return 0;
  if (context != gpu->context)
    return pruner_fail(
        "the stream is of another device or context than cuda:%d, where the module "
        "runs",
        gpu->device);
  if (!is_legacy && !check(cuda, cuda->stream_captures(stream, &status), "cuStreamIsCapturing"))
    return 0;
  *captured = status != kNoCapture;
  if (!*captured && !wait_for_left(gpu, stream)) return 0;
  gpu->entered = gpu->queue = stream;
  return 1;
}

static int leave_stream(GpuDevice* gpu, int captured) {
  void* const stream = gpu->entered;
  gpu->entered = gpu->queue = gpu->stream;
  if (captured) return 1;
  if (!check(&gpu->cuda, gpu->cuda.record_event(gpu->done, stream), "cuEventRecord")) {
    gpu->cuda.wait_stream(stream); /* nothing may be left there unseen */
    return 0;
  }
  gpu->is_left = 1;
  return 1;
}

static int wait_for_streams(GpuDevice* gpu) {
  if (!gpu->is_left) return 1;
  if (!check(&gpu->cuda, gpu->cuda.wait_event(gpu->done), "cuEventSynchronize")) return 0;
  gpu->is_left = 0;
  return 1;
}

const GpuDriver pruner_cuda_driver = {.list = list,
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
                                      .pin = pin,
                                      .begin_recording = begin_recording,
                                      .end_recording = end_recording,
                                      .replay = replay,
                                      .is_cuda = 1,
                                      .copy = copy,
                                      .check_address = check_address,
                                      .enter_stream = enter_stream,
                                      .leave_stream = leave_stream,
                                      .wait_for_streams = wait_for_streams};
