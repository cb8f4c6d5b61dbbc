/* GpuDriver is what a GPU's executor (gpu_executor.c) and the tuner (runtime/gpu_context.h) ask of
   a driver: a table for CUDA's (cuda_driver.c) and one for OpenCL (opencl_driver.c). Each driver
   finds its library when it is needed; nothing is linked. A call that fails returns 0 and has said
   why by pruner_fail(). */
#ifndef PRUNER_RUNTIME_MODULE_GPU_DRIVER_H_
#define PRUNER_RUNTIME_MODULE_GPU_DRIVER_H_

#include "runtime/module/fail.h"
#include "runtime/module/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An address, or an object of the driver. */
typedef uint64_t GpuHandle;

/* Each driver's own: a device with one queue, where things run in the order they were given. */
typedef struct GpuDevice GpuDevice;

/* GpuFacts is what a driver says of a device; 0 and "" stand for what the driver does not say. */
typedef struct {
  char name[128];
  char driver[128]; /* "CUDA 12.4", "Portable Computing Language" */
  char arch[16];    /* "sm_80" */
  char bus[32];     /* place on PCI, as NVML asks for it */
  int32_t is_gpu;
  int64_t units;   /* streaming multiprocessors, compute units */
  double clock_hz; /* the peak, by the driver */
  int64_t threads_per_block;
  int64_t shared_bytes_per_block; /* most that a kernel can declare */
  int64_t most_shared_bytes;      /* most of a block whose launch gives them */
  int64_t memory_bytes;
  int64_t l2_bytes;  /* OpenCL: of the cache before global memory */
  int64_t alignment; /* alignment of a view's beginning, in bytes */
} GpuFacts;

/* GpuNeeds has the arch of the code, which CUDA's open() checks; the most that a launch asks of a
   block, which OpenCL's open() checks; and the number of marks. */
typedef struct {
  const char* arch; /* NULL: any */
  int64_t threads;
  int64_t shared_bytes;
  int64_t marks;
} GpuNeeds;

/* The kinds of handles tell release() what made a handle. */
enum { kGpuMemory, kGpuView, kGpuProgram, kGpuKernel, kGpuPinned, kGpuRecording };

typedef struct GpuDriver {
  /* Describes the first `most` devices, GPUs first, and returns how many there are: none is a
     failure. */
  int (*list)(GpuFacts* facts, int most);
  /* Opens a device by its place in the list. */
  GpuDevice* (*open)(int number, const GpuNeeds* needs);
  void (*close)(GpuDevice* device);
  /* Returns what list() says of the device. */
  const GpuFacts* (*facts)(const GpuDevice* device);
  /* Around all calls below: enter() makes the device the calling thread's, leave() undoes this. */
  int (*enter)(GpuDevice* device);
  void (*leave)(GpuDevice* device);

  /* Things made on the device, each to be given to release() with its kind before close(). */
  GpuHandle (*allocate)(GpuDevice* device, int64_t bytes);
  /* Part of what was allocated; `offset` is a multiple of kPlanGpuAlignment. */
  GpuHandle (*view)(GpuDevice* device, GpuHandle memory, int64_t offset, int64_t bytes);
  /* A cubin (CUDA), or source that the driver compiles (OpenCL): its complaints are the error. */
  GpuHandle (*load)(GpuDevice* device, const PlanCode* code);
  /* The kernel of a launch, of which only the name and the bytes of shared memory are read. */
  GpuHandle (*kernel)(GpuDevice* device, GpuHandle program, const PlanLaunch* launch);
  void (*release)(GpuDevice* device, int kind, GpuHandle handle);

  /* The calls below go into the queue: the caller's memory stays until wait() returns. */
  int (*write)(GpuDevice* device, GpuHandle to, const void* from, int64_t bytes);
  int (*read)(GpuDevice* device, void* to, GpuHandle from, int64_t bytes);
  int (*fill)(GpuDevice* device, GpuHandle memory, uint8_t value, int64_t bytes);
  /* `args`: one handle of memory or a view for each of `launch`'s arguments, in order; of the plan
     only blocks, threads, dynamic_bytes, early and num_args are read. */
  int (*launch)(GpuDevice* device,
                GpuHandle kernel,
                const PlanLaunch* launch,
                const GpuHandle* args);
  int (*wait)(GpuDevice* device);

  /* Time on the device: marks 0, 1, 2, ... among launches, wait(), then the seconds from one mark
     to the next. */
  int (*mark)(GpuDevice* device, int64_t which);
  int (*elapsed)(GpuDevice* device, int64_t from, double* seconds);

  /* Copies and launches that were recorded once run again at the cost of one launch. The host's
     side of a recorded copy is in pinned memory. NULL where a driver has no such thing. */
  void* (*pin)(GpuDevice* device, int64_t bytes);
  int (*begin_recording)(GpuDevice* device);
  GpuHandle (*end_recording)(GpuDevice* device);
  int (*replay)(GpuDevice* device, GpuHandle recording);

  /* Waits for what the caller's streams still hold of this instance. */
  int (*wait_for_streams)(GpuDevice* device);
  /* Whether a tensor lies where it is said to lie, on the device or in the host's memory; `name` is
     the tensor's, for the error. */
  int (*check_address)(GpuDevice* device, GpuHandle address, int on_device, const char* name);

  /* The calls below are for tensors and streams that the caller has on the device. Only CUDA has
     them: its handles of memory are addresses, pinned memory is the device's to write, and all that
     opened a device share its memory and its programs. NULL elsewhere, as is_cuda is 0. */
  int is_cuda;
  /* Copies on the device, in the queue. */
  int (*copy)(GpuDevice* device, GpuHandle to, GpuHandle from, int64_t bytes);
  /* Makes a stream of the caller's the queue, until leave_stream() makes the device's own one the
     queue again. What the instance has left in another stream comes before. `captured` says whether
     the stream records a graph of the caller's; then nothing is waited for. */
  int (*enter_stream)(GpuDevice* device, void* stream, int* captured);
  int (*leave_stream)(GpuDevice* device, int captured);
} GpuDriver;

extern const GpuDriver pruner_cuda_driver, pruner_opencl_driver;

/* Ends a recording in any case, or the queue would stay in capture mode. Returns 0 unless all was
   `recorded`: then the first failure is the one that counts. */
static inline GpuHandle pruner_end_recording(const GpuDriver* driver,
                                             GpuDevice* device,
                                             int recorded) {
  pruner_hold_failure(!recorded);
  GpuHandle made = driver->end_recording(device);
  if (made != 0 && !recorded) {
    driver->release(device, kGpuRecording, made);
    made = 0;
  }
  pruner_hold_failure(0);
  return made;
}

/* Whether a CUDA device runs code of an arch: "sm_80" where the major version is the same and the
   minor one not lower, "sm_90a" on that one alone. */
int pruner_cuda_runs(const char* code, const char* device);

/* Opens a library and writes the addresses of `count` functions to `calls`, a struct of as many
   pointers. `advice`: what to do when it is not there. */
int pruner_open_library(
    const char* file, const char* advice, const char* const* names, int count, void* calls);
/* Returns the address of a function that newer versions of an open library have; NULL: it is not
   there. */
void* pruner_find_function(const char* file, const char* name);

#ifdef __cplusplus
}
#endif

#endif /* PRUNER_RUNTIME_MODULE_GPU_DRIVER_H_ */
