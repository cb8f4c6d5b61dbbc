/* PlanExecutor runs a module's plan: cpu_executor.c or gpu_executor.c. The plan names one, so that
   the linker leaves the other out. */
#ifndef PRUNER_RUNTIME_MODULE_EXECUTOR_H_
#define PRUNER_RUNTIME_MODULE_EXECUTOR_H_

#include "runtime/module/plan.h"

/* The functions of pruner/module.h that the executors do differently. */
typedef struct PlanExecutor {
  PrunerModule* (*create)(int32_t threads); /* NULL: pruner_fail() says why */
  void (*destroy)(PrunerModule* module);
  int32_t (*threads)(const PrunerModule* module); /* threads of a CPU's pool; 0 on a GPU */
  /* Returns 0 when done. `values` are plan_number()'s, NULL if there are no symbols. `seconds` is
     NULL, or gets one number per step in a profiled run. */
  int32_t (*run)(PrunerModule* module,
                 const PlanPhase* phase,
                 const PlanShapes* shapes,
                 const int64_t* values,
                 const void* const* inputs,
                 void* const* outputs,
                 double* seconds);
  /* Returns a CPU's arena, whose first bytes hold the states; NULL on a GPU, which has none. */
  unsigned char* (*arena)(const PrunerModule* module);
  /* Returns a CPU's room for the plan's num_values, no extents at first; NULL on a GPU. */
  int64_t* (*values)(const PrunerModule* module);
  /* Runs pruner_module_time_kernels() on a GPU; NULL on a CPU. */
  int32_t (*time_kernels)(PrunerModule* module, double* seconds);
} PlanExecutor;

extern const PlanExecutor pruner_cpu_executor, pruner_gpu_executor;

/* Seconds of a clock that only goes on. */
double pruner_now(void);

#endif /* PRUNER_RUNTIME_MODULE_EXECUTOR_H_ */
