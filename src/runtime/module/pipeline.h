/* Networks with extents that the data decide (graph/pipeline): one stage after the other. */
#ifndef PRUNER_RUNTIME_MODULE_PIPELINE_H_
#define PRUNER_RUNTIME_MODULE_PIPELINE_H_

#include "runtime/module/plan.h"

/* All stages of the plan's pipeline; as pruner_module_run_phase(). */
int32_t pruner_run_pipeline(PrunerModule* module,
                            const void* const* inputs,
                            void* const* outputs,
                            double* seconds);

/* The dims of all outputs of the last run, one tensor after the other. */
void pruner_pipeline_output_dims(const PrunerModule* module, int64_t* dims);

/* One run of a stage. Dims stand one tensor after the other. */
typedef struct {
  const int64_t* extents; /* extents of the stage's symbols */
  const void* const* inputs;
  const int64_t* input_dims;
  void* const* outputs;
  int64_t* output_dims; /* dims of the outputs, to be written */
  double* seconds;      /* NULL, or a number for each kernel of the module */
} PipelineStage;

/* In module_runtime.c. 1: it failed, or was compiled for inputs of other dims at these extents. */
int32_t pruner_run_stage(PrunerModule* module, int64_t stage, const PipelineStage* run);

#endif /* PRUNER_RUNTIME_MODULE_PIPELINE_H_ */
