/* Networks with extents that the data decide (graph/pipeline.h): one stage after the other. */
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

/* In module_runtime.c: the dims of a stage's inputs at extents of its symbols, one tensor after the
   other; 0: it has no plan there, as has been said. */
int pruner_stage_inputs(PrunerModule* module, int64_t stage, const int64_t* extents, int64_t* dims);

/* In module_runtime.c: one stage at extents of its symbols. `output_dims`: where to write the dims
   of its outputs, one tensor after the other. `seconds`: NULL, or a number for each kernel of the
   module. */
int32_t pruner_run_stage(PrunerModule* module,
                         int64_t stage,
                         const int64_t* extents,
                         const void* const* inputs,
                         void* const* outputs,
                         double* seconds,
                         int64_t* output_dims);

#endif /* PRUNER_RUNTIME_MODULE_PIPELINE_H_ */
