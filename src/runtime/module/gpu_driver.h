/* What gpu_executor.c asks of a driver: a table for CUDA's (cuda_driver.c) and one for OpenCL
   (opencl_driver.c). Each finds its library when a device is opened; nothing is linked. A call that
   fails returns 0 and has said why by pruner_fail(). */
#ifndef PRUNER_RUNTIME_MODULE_GPU_DRIVER_H_
#define PRUNER_RUNTIME_MODULE_GPU_DRIVER_H_

#include "runtime/module/plan.h"

/* An address, or an object of the driver. */
typedef uint64_t GpuHandle;

/* Each driver's own: a device with one queue, where things run in the order they were given. */
typedef struct GpuDevice GpuDevice;

/* The most that a launch of the plan asks of a block. */
typedef struct {
  int64_t threads;
  int64_t shared_bytes;
} GpuNeeds;

enum { kGpuMemory, kGpuView, kGpuProgram, kGpuKernel };

typedef struct GpuDriver {
  GpuDevice* (*open)(const GpuNeeds* needs);
  void (*close)(GpuDevice* device);
  /* Around all calls below: makes the device the calling thread's, and the one before it again. */
  int (*enter)(GpuDevice* device);
  void (*leave)(GpuDevice* device);

  GpuHandle (*allocate)(GpuDevice* device, int64_t bytes);
  /* Part of what was allocated; `offset` is a multiple of kPlanGpuAlignment. */
  GpuHandle (*view)(GpuDevice* device, GpuHandle memory, int64_t offset, int64_t bytes);
  GpuHandle (*load)(GpuDevice* device, const PlanCode* code);
  GpuHandle (*kernel)(GpuDevice* device, GpuHandle program, const char* name);
  void (*release)(GpuDevice* device, int kind, GpuHandle handle);

  /* Into the queue: the caller's memory stays until wait() returns. */
  int (*write)(GpuDevice* device, GpuHandle to, const void* from, int64_t bytes);
  int (*read)(GpuDevice* device, void* to, GpuHandle from, int64_t bytes);
  int (*launch)(GpuDevice* device,
                GpuHandle kernel,
                const PlanLaunch* launch,
                const GpuHandle* args);
  int (*wait)(GpuDevice* device);
} GpuDriver;

extern const GpuDriver pruner_cuda_driver, pruner_opencl_driver;

/* Opens a library and writes the addresses of `count` functions to `calls`, a struct of as many
   pointers. `advice`: what to do when it is not there. */
int pruner_open_library(
    const char* file, const char* advice, const char* const* names, int count, void* calls);

#endif /* PRUNER_RUNTIME_MODULE_GPU_DRIVER_H_ */
