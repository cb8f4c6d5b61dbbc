/* Looks at what a step reads at before its kernel does, which would read anywhere. */
#ifndef PRUNER_RUNTIME_MODULE_CHECK_INDICES_H_
#define PRUNER_RUNTIME_MODULE_CHECK_INDICES_H_

#include "runtime/module/plan.h"

/* Whether all elements of `data`, which are the step's `indices`, lie in their extents; 0 after
   pruner_fail(). `values`: of plan_number(). */
int pruner_check_indices(const PlanStep* step,
                         const PlanIndices* indices,
                         const int64_t* values,
                         const void* data);

#endif /* PRUNER_RUNTIME_MODULE_CHECK_INDICES_H_ */
