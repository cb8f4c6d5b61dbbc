/* What build_module() writes into a module for module_runtime.c: which kernel runs when, on what.
   Made as assembly text by deploy/plan_text.cpp, so every member is 8 bytes wide. */
#ifndef PRUNER_RUNTIME_MODULE_PLAN_H_
#define PRUNER_RUNTIME_MODULE_PLAN_H_

#include "pruner/kernel.h"
#include "pruner/module.h"

enum { kPlanArena, kPlanWeight, kPlanInput, kPlanOutput };

/* Where a tensor is. */
typedef struct {
  int64_t place;
  int64_t where; /* byte offset in the arena or the weights; number of the input or output */
} PlanAddress;

typedef struct {
  PrunerKernelSpec spec;
  PrunerKernel kernel;
  const PlanAddress* args;
  int64_t num_args;
  int64_t workspace; /* offset in the arena */
} PlanStep;

/* An output that no kernel writes in place. */
typedef struct {
  PlanAddress from;
  int64_t output;
  int64_t bytes;
} PlanCopy;

typedef struct {
  int64_t abi;
  int64_t threads;
  const char* cpu_features; /* "avx512f fma ...": what the kernels need */
  const unsigned char* weights;
  int64_t arena_bytes;
  int64_t num_inputs;
  const PrunerTensorSpec* inputs;
  int64_t num_outputs;
  const PrunerTensorSpec* outputs;
  int64_t num_steps;
  const PlanStep* steps;
  int64_t num_copies;
  const PlanCopy* copies;
} PrunerPlan;

extern const PrunerPlan pruner_plan __attribute__((visibility("hidden")));

#endif /* PRUNER_RUNTIME_MODULE_PLAN_H_ */
