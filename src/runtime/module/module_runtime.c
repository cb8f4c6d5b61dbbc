/* include/pruner/module.h over the plan that a module carries. C11 and libc only, as all of the
 * executors. */
#include <string.h>
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

int32_t pruner_module_num_phases(void) { return (int32_t)pruner_plan.num_phases; }

const PrunerPhase* pruner_module_phase(int32_t index) {
  return index >= 0 && index < pruner_plan.num_phases ? &pruner_plan.phases[index].spec : NULL;
}

/* There is always one. */
static const PrunerPhase* first_phase(void) { return &pruner_plan.phases[0].spec; }

int32_t pruner_module_num_inputs(void) { return (int32_t)first_phase()->num_inputs; }
int32_t pruner_module_num_outputs(void) { return (int32_t)first_phase()->num_outputs; }
int32_t pruner_module_num_kernels(void) { return (int32_t)pruner_plan.num_kernels; }

const PrunerTensorSpec* pruner_module_input(int32_t index) {
  return index >= 0 && index < first_phase()->num_inputs ? &first_phase()->inputs[index] : NULL;
}

const PrunerTensorSpec* pruner_module_output(int32_t index) {
  return index >= 0 && index < first_phase()->num_outputs ? &first_phase()->outputs[index] : NULL;
}

static const PlanStep* step_of(int32_t kernel) {
  if (kernel < 0 || kernel >= pruner_plan.num_kernels) return NULL;
  const PlanPhase* phase = pruner_plan.phases;
  while (kernel >= phase->spec.first_kernel + phase->spec.num_kernels) phase++;
  return &phase->steps[kernel - phase->spec.first_kernel];
}

const PrunerKernelSpec* pruner_module_kernel(int32_t index) {
  const PlanStep* step = step_of(index);
  return step != NULL ? &step->spec : NULL;
}

const char* pruner_module_kernel_precision(int32_t index) {
  const PlanStep* step = step_of(index);
  return step != NULL ? step->precision : NULL;
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

int32_t pruner_module_run_phase(PrunerModule* module,
                                int32_t phase,
                                const void* const* inputs,
                                void* const* outputs,
                                double* seconds) {
  if (phase < 0 || phase >= pruner_plan.num_phases) {
    pruner_fail("there is no phase %d; the module has %d", phase, (int)pruner_plan.num_phases);
    return 1;
  }
  return pruner_plan.executor->run(module, &pruner_plan.phases[phase], inputs, outputs, seconds);
}

int32_t pruner_module_run_profiled(PrunerModule* module,
                                   const void* const* inputs,
                                   void* const* outputs,
                                   double* seconds) {
  return pruner_module_run_phase(module, 0, inputs, outputs, seconds);
}

int32_t pruner_module_run(PrunerModule* module, const void* const* inputs, void* const* outputs) {
  return pruner_module_run_profiled(module, inputs, outputs, NULL);
}

int32_t pruner_module_num_states(void) { return (int32_t)pruner_plan.num_states; }

const PrunerTensorSpec* pruner_module_state(int32_t index) {
  return index >= 0 && index < pruner_plan.num_states ? &pruner_plan.states[index] : NULL;
}

/* NULL: there is no such state, as has been said. */
static unsigned char* bytes_of_state(const PrunerModule* module, int32_t index) {
  if (index >= 0 && index < pruner_plan.num_states)
    return pruner_plan.executor->arena(module) + pruner_plan.state_places[index].offset;
  pruner_fail("there is no state %d; the module has %d", index, (int)pruner_plan.num_states);
  return NULL;
}

int32_t pruner_module_read_state(const PrunerModule* module, int32_t index, void* to) {
  const unsigned char* from = bytes_of_state(module, index);
  if (from == NULL) return 1;
  memcpy(to, from, (size_t)pruner_plan.state_places[index].bytes);
  return 0;
}

int32_t pruner_module_write_state(PrunerModule* module, int32_t index, const void* from) {
  unsigned char* to = bytes_of_state(module, index);
  if (to == NULL) return 1;
  memcpy(to, from, (size_t)pruner_plan.state_places[index].bytes);
  return 0;
}

int32_t pruner_module_reset(PrunerModule* module) {
  if (pruner_plan.state_bytes > 0)
    memset(pruner_plan.executor->arena(module), 0, (size_t)pruner_plan.state_bytes);
  return 0;
}
