/* PlanExecutor runs a module's plan: cpu_executor.c or gpu_executor.c. The plan names one, so that
   the linker leaves the other out. */
#ifndef PRUNER_RUNTIME_MODULE_EXECUTOR_H_
#define PRUNER_RUNTIME_MODULE_EXECUTOR_H_

#include "runtime/module/plan.h"

/* RunTensor says where the caller has a tensor of a run. */
typedef struct {
  const PrunerTensorSpec* spec;
  void* data; /* an input is only read */
  int64_t bytes;
  int on_device; /* 0: in the host's memory */
} RunTensor;

/* One run. `values` are plan_number()'s, NULL if there are no symbols; they stay as they are until
   the next run begins. Of `asked` the extents and the phase's number are not read. `tensors` are
   the inputs, then the outputs; a stage of a pipeline, which CPUs alone run, has NULL. */
typedef struct {
  const PlanPhase* phase;
  const PlanShapes* shapes;
  const int64_t* values;
  const PrunerRun* asked;
  const RunTensor* tensors;
} PlanRun;

/* The functions of pruner/module.h that the executors do differently. A function that returns an
   int32_t returns 0 when it is done; else pruner_fail() says why. */
typedef struct PlanExecutor {
  PrunerModule* (*create)(const PrunerOptions* options); /* NULL: pruner_fail() says why */
  void (*destroy)(PrunerModule* module);
  int32_t (*threads)(const PrunerModule* module); /* threads of a CPU's pool; 0 on a GPU */
  int32_t (*device)(const PrunerModule* module);  /* number of the device; 0 on a CPU */
  int32_t (*run)(PrunerModule* module, const PlanRun* run);
  int32_t (*wait)(PrunerModule* module); /* pruner_module_wait() */
  /* Copy `bytes` of the arena, where the states are, from and to the host's memory. For `from`,
     NULL stands for zeros. */
  int32_t (*read_arena)(const PrunerModule* module, int64_t offset, void* to, int64_t bytes);
  int32_t (*write_arena)(PrunerModule* module, int64_t offset, const void* from, int64_t bytes);
  /* Returns a CPU's arena; NULL on a GPU, where it is not the host's to read. */
  unsigned char* (*arena)(const PrunerModule* module);
  int64_t* (*values)(const PrunerModule* module); /* the plan's num_values, no extents at first */
  /* Runs pruner_module_time_kernels() on a GPU; NULL on a CPU. */
  int32_t (*time_kernels)(PrunerModule* module, double* seconds);
} PlanExecutor;

extern const PlanExecutor pruner_cpu_executor, pruner_gpu_executor;

/* Seconds of a clock that only goes on. */
double pruner_now(void);

#endif /* PRUNER_RUNTIME_MODULE_EXECUTOR_H_ */
