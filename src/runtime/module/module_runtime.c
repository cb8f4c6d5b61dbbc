/* include/pruner/module.h over the plan that a module carries. C11 and libc only, as all of the
 * executors. */
#include <time.h>

#include "runtime/module/executor.h"
#include "runtime/module/fail.h"
#include "runtime/module/plan.h"

double pruner_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int32_t pruner_module_abi(void) { return (int32_t)pruner_plan.abi; }
const char* pruner_module_error(void) { return pruner_failure(); }
int32_t pruner_module_num_inputs(void) { return (int32_t)pruner_plan.num_inputs; }
int32_t pruner_module_num_outputs(void) { return (int32_t)pruner_plan.num_outputs; }
int32_t pruner_module_num_kernels(void) { return (int32_t)pruner_plan.num_steps; }

const PrunerTensorSpec* pruner_module_input(int32_t index) {
  return index >= 0 && index < pruner_plan.num_inputs ? &pruner_plan.inputs[index] : NULL;
}

const PrunerTensorSpec* pruner_module_output(int32_t index) {
  return index >= 0 && index < pruner_plan.num_outputs ? &pruner_plan.outputs[index] : NULL;
}

const PrunerKernelSpec* pruner_module_kernel(int32_t index) {
  return index >= 0 && index < pruner_plan.num_steps ? &pruner_plan.steps[index].spec : NULL;
}

const char* pruner_module_kernel_precision(int32_t index) {
  return index >= 0 && index < pruner_plan.num_steps ? pruner_plan.steps[index].precision : NULL;
}

PrunerModule* pruner_module_create(int32_t threads) {
  return pruner_plan.executor->create(threads);
}

void pruner_module_destroy(PrunerModule* module) {
  if (module != NULL) pruner_plan.executor->destroy(module);
}

int32_t pruner_module_threads(const PrunerModule* module) {
  return pruner_plan.executor->threads(module);
}

int32_t pruner_module_run_profiled(PrunerModule* module,
                                   const void* const* inputs,
                                   void* const* outputs,
                                   double* seconds) {
  return pruner_plan.executor->run(module, inputs, outputs, seconds);
}

int32_t pruner_module_run(PrunerModule* module, const void* const* inputs, void* const* outputs) {
  return pruner_module_run_profiled(module, inputs, outputs, NULL);
}
