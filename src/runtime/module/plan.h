/* What build_module() writes into a module for its executor: which kernel runs when, on what.
   Made as assembly text by deploy/plan_text.cpp, so every member is 8 bytes wide. */
#ifndef PRUNER_RUNTIME_MODULE_PLAN_H_
#define PRUNER_RUNTIME_MODULE_PLAN_H_

#include "pruner/kernel.h"
#include "pruner/module.h"

enum { kPlanArena, kPlanWeight, kPlanInput, kPlanOutput };

/* What offsets in the arena and the weights of a GPU are multiples of: of OpenCL's sub-buffers,
   NVIDIA's devices ask the most. */
enum { kPlanGpuAlignment = 512 };

/* Where a tensor is. */
typedef struct {
  int64_t place;
  int64_t where; /* byte offset in the arena or the weights; number of the input or output */
} PlanAddress;

typedef struct {
  PlanAddress at;
  int64_t bytes;
} PlanRange;

/* A kernel of a GPU as it is started, in one dimension. */
typedef struct {
  const char* kernel;
  int64_t code; /* number of the plan's code that has it */
  int64_t blocks;
  int64_t threads;
  int64_t shared_bytes; /* that the kernel declares */
  const PlanRange* args;
  int64_t num_args;
} PlanLaunch;

typedef struct {
  PrunerKernelSpec spec;
  PrunerKernel kernel; /* of a CPU, with what it takes */
  const PlanAddress* args;
  int64_t num_args;
  int64_t workspace;          /* offset in the arena */
  const PlanLaunch* launches; /* of a GPU */
  int64_t num_launches;
} PlanStep;

/* An output that no kernel writes in place. */
typedef struct {
  PlanAddress from;
  int64_t output;
  int64_t bytes;
} PlanCopy;

/* A cubin, or OpenCL C. */
typedef struct {
  const char* bytes;
  int64_t size;
} PlanCode;

struct PlanExecutor;
struct GpuDriver;

typedef struct {
  int64_t abi;
  int64_t threads;
  const struct PlanExecutor* executor; /* who runs it */
  const struct GpuDriver* driver;      /* and through what, on a GPU */
  const char* cpu_features;            /* "avx512f fma ...": what the kernels need */
  const char* gpu_arch;                /* "sm_80", "": none */
  const unsigned char* weights;
  int64_t weight_bytes;
  int64_t arena_bytes;
  int64_t num_inputs;
  const PrunerTensorSpec* inputs;
  int64_t num_outputs;
  const PrunerTensorSpec* outputs;
  int64_t num_steps;
  const PlanStep* steps;
  int64_t num_copies;
  const PlanCopy* copies;
  int64_t num_codes;
  const PlanCode* codes;
} PrunerPlan;

extern const PrunerPlan pruner_plan __attribute__((visibility("hidden")));

#endif /* PRUNER_RUNTIME_MODULE_PLAN_H_ */
