/* The executor that every module carries: include/pruner/module.h over the module's own plan. C11
 * and libc only. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "runtime/module/plan.h"

enum { kAlignment = 64, kHugePage = 2 << 20 };

struct PrunerModule {
  PrunerPool* pool;
  unsigned char* arena;
  void** args;         /* of the kernel that runs */
  const void** inputs; /* of this run: the caller's tensors or their copies */
  void** outputs;
  void** copies; /* one an input, then one an output; made when first needed */
};

static _Thread_local char error[160];

static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t tensor_bytes(const PrunerTensorSpec* spec) {
  static const int8_t kBytes[] = {4, 2, 8, 4, 1, 1};
  int64_t bytes = kBytes[spec->dtype];
  for (int32_t d = 0; d < spec->rank; d++) bytes *= spec->shape[d];
  return bytes;
}

static void* allocate(int64_t bytes) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  void* memory = NULL;
  if (posix_memalign(&memory, alignment, (size_t)max(bytes, 1)) != 0) return NULL;
  if (alignment == kHugePage) madvise(memory, (size_t)bytes, MADV_HUGEPAGE);
  return memory;
}

int32_t pruner_module_abi(void) { return (int32_t)pruner_plan.abi; }
const char* pruner_module_error(void) { return error; }
int32_t pruner_module_num_inputs(void) { return (int32_t)pruner_plan.num_inputs; }
int32_t pruner_module_num_outputs(void) { return (int32_t)pruner_plan.num_outputs; }
int32_t pruner_module_num_kernels(void) { return (int32_t)pruner_plan.num_steps; }
int32_t pruner_module_threads(const PrunerModule* module) { return module->pool->threads; }

const PrunerTensorSpec* pruner_module_input(int32_t index) {
  return index >= 0 && index < pruner_plan.num_inputs ? &pruner_plan.inputs[index] : NULL;
}

const PrunerTensorSpec* pruner_module_output(int32_t index) {
  return index >= 0 && index < pruner_plan.num_outputs ? &pruner_plan.outputs[index] : NULL;
}

const char* pruner_module_kernel_name(int32_t index) {
  return index >= 0 && index < pruner_plan.num_steps ? pruner_plan.steps[index].name : NULL;
}

PrunerModule* pruner_module_create(int32_t threads) {
  int length = 0;
  const char* missing = pruner_missing_cpu_feature(pruner_plan.cpu_features, &length);
  if (missing != NULL) {
    snprintf(error,
             sizeof error,
             "this CPU lacks %.*s, which the module was compiled for",
             length,
             missing);
    return NULL;
  }
  int64_t num_args = 1;
  for (int64_t s = 0; s < pruner_plan.num_steps; s++)
    num_args = max(num_args, pruner_plan.steps[s].num_args);
  const size_t num_tensors = (size_t)(pruner_plan.num_inputs + pruner_plan.num_outputs);
  PrunerModule* module = calloc(1, sizeof *module);
  if (module != NULL) {
    module->args = calloc((size_t)num_args + 2 * num_tensors, sizeof(void*));
    module->arena = allocate(pruner_plan.arena_bytes);
    module->pool = pruner_pool_create(threads > 0 ? threads : (int32_t)pruner_plan.threads, 0);
  }
  if (module == NULL || module->args == NULL || module->arena == NULL || module->pool == NULL) {
    snprintf(error,
             sizeof error,
             "cannot make %lld bytes of activations and the threads",
             (long long)pruner_plan.arena_bytes);
    pruner_module_destroy(module);
    return NULL;
  }
  module->inputs = (const void**)module->args + num_args;
  module->outputs = module->args + num_args + pruner_plan.num_inputs;
  module->copies = module->args + num_args + num_tensors;
  return module;
}

void pruner_module_destroy(PrunerModule* module) {
  if (module == NULL) return;
  for (int64_t i = 0;
       module->copies != NULL && i < pruner_plan.num_inputs + pruner_plan.num_outputs;
       i++) {
    free(module->copies[i]);
  }
  if (module->pool != NULL) pruner_pool_destroy(module->pool);
  free(module->arena);
  free(module->args);
  free(module);
}

static int is_aligned(const void* tensor) { return (uintptr_t)tensor % kAlignment == 0; }

/* The memory that stands in for tensor `index` when the caller's is not aligned. */
static void* copy_of(PrunerModule* module, int64_t index, const PrunerTensorSpec* spec) {
  void** copy = &module->copies[index];
  if (*copy == NULL) *copy = allocate(tensor_bytes(spec));
  return *copy;
}

static int bind(PrunerModule* module, const void* const* inputs, void* const* outputs) {
  for (int64_t i = 0; i < pruner_plan.num_inputs; i++) {
    const PrunerTensorSpec* spec = &pruner_plan.inputs[i];
    module->inputs[i] = inputs[i];
    if (is_aligned(inputs[i])) continue;
    void* copy = copy_of(module, i, spec);
    if (copy == NULL) return 0;
    module->inputs[i] = memcpy(copy, inputs[i], (size_t)tensor_bytes(spec));
  }
  for (int64_t i = 0; i < pruner_plan.num_outputs; i++) {
    const int64_t index = pruner_plan.num_inputs + i;
    module->outputs[i] =
        is_aligned(outputs[i]) ? outputs[i] : copy_of(module, index, &pruner_plan.outputs[i]);
    if (module->outputs[i] == NULL) return 0;
  }
  return 1;
}

static void* resolve(const PrunerModule* module, const PlanAddress* address) {
  switch (address->place) {
    case kPlanArena:
      return module->arena + address->where;
    case kPlanInput:
      return (void*)module->inputs[address->where];
    case kPlanOutput:
      return module->outputs[address->where];
    default:
      return (void*)(pruner_plan.weights + address->where);
  }
}

static void run_step(PrunerModule* module, const PlanStep* step) {
  for (int64_t a = 0; a < step->num_args; a++) module->args[a] = resolve(module, &step->args[a]);
  step->kernel(module->args, module->arena + step->workspace, module->pool);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int32_t pruner_module_run_profiled(PrunerModule* module,
                                   const void* const* inputs,
                                   void* const* outputs,
                                   double* seconds) {
  if (!bind(module, inputs, outputs)) return 1;
  double start = seconds != NULL ? now() : 0;
  for (int64_t s = 0; s < pruner_plan.num_steps; s++) {
    run_step(module, &pruner_plan.steps[s]);
    if (seconds == NULL) continue;
    const double end = now();
    seconds[s] = end - start;
    start = end;
  }
  for (int64_t c = 0; c < pruner_plan.num_copies; c++) {
    const PlanCopy* copy = &pruner_plan.copies[c];
    memcpy(module->outputs[copy->output], resolve(module, &copy->from), (size_t)copy->bytes);
  }
  for (int64_t i = 0; i < pruner_plan.num_outputs; i++) {
    if (module->outputs[i] == outputs[i]) continue;
    memcpy(outputs[i], module->outputs[i], (size_t)tensor_bytes(&pruner_plan.outputs[i]));
  }
  return 0;
}

int32_t pruner_module_run(PrunerModule* module, const void* const* inputs, void* const* outputs) {
  return pruner_module_run_profiled(module, inputs, outputs, NULL);
}
