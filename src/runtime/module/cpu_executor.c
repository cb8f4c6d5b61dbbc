/* Runs a plan on CPUs: one kernel after the other, on the threads of a pool. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/module/check_indices.h"
#include "runtime/module/executor.h"
#include "runtime/module/fail.h"
#include "runtime/module/float_mode.h"
#include "runtime/module/plan.h"
#include "support/cpu_budget.h"
#include "support/cpu_features.h"

enum { kAlignment = 64, kHugePage = 2 << 20, kCopiedBytes = 16 << 20 };

struct PrunerModule {
  PrunerPool* pool;
  const unsigned char* weights; /* the plan's, or their copy */
  unsigned char* arena;         /* plan's arena_bytes: activations and workspaces */
  void** args;                  /* arguments of the kernel that runs */
  int64_t* values;              /* the plan's num_values, at the shapes of the last run */
};

static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

/* Allocates memory; from 2 MiB on, asks for huge pages, which spare misses of the TLB. */
static void* allocate(int64_t bytes) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  void* memory = NULL;
  if (posix_memalign(&memory, alignment, (size_t)max(bytes, 1)) != 0) return NULL;
  if (alignment == kHugePage) madvise(memory, (size_t)bytes, MADV_HUGEPAGE);
  return memory;
}

/* Weights that do not stay in the caches are read from huge pages, where the system has any: the
   file's are small, and looking up their addresses took a tenth of such a network's time. All
   instances share the copy; the file's pages are given back. */
static struct {
  pthread_mutex_t lock;
  unsigned char* copy;
  int64_t users;
} huge_weights = {PTHREAD_MUTEX_INITIALIZER, NULL, 0};

static int has_huge_pages(void) {
  char modes[64] = "";
  FILE* file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
  if (file == NULL) return 0;
  const int known = fgets(modes, sizeof modes, file) != NULL;
  fclose(file);
  return known && strstr(modes, "[never]") == NULL;
}

/* Whole pages of the file, which is there to be read again. */
static void give_back_pages(const unsigned char* begin, int64_t bytes) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)begin;
  const uintptr_t from = (first + page - 1) / page * page;
  const uintptr_t to = (first + (uintptr_t)bytes) / page * page;
  if (from < to) madvise((void*)from, to - from, MADV_DONTNEED);
}

static const unsigned char* take_weights(void) {
  const int64_t bytes = pruner_plan.weight_bytes;
  if (bytes < kHugePage || !has_huge_pages()) return pruner_plan.weights;
  pthread_mutex_lock(&huge_weights.lock);
  if (huge_weights.users == 0 && (huge_weights.copy = allocate(bytes)) != NULL) {
    for (int64_t at = 0; at < bytes; at += kCopiedBytes) { /* never more of them are there twice */
      const int64_t size = bytes - at < kCopiedBytes ? bytes - at : kCopiedBytes;
      memcpy(huge_weights.copy + at, pruner_plan.weights + at, (size_t)size);
      give_back_pages(pruner_plan.weights + at, size);
    }
  }
  unsigned char* copy = huge_weights.copy;
  if (copy != NULL) huge_weights.users++;
  pthread_mutex_unlock(&huge_weights.lock);
  return copy != NULL ? copy : pruner_plan.weights;
}

static void give_back_weights(const unsigned char* weights) {
  if (weights == pruner_plan.weights) return;
  pthread_mutex_lock(&huge_weights.lock);
  if (--huge_weights.users == 0) {
    free(huge_weights.copy);
    huge_weights.copy = NULL;
  }
  pthread_mutex_unlock(&huge_weights.lock);
}

static int32_t threads_of(const PrunerModule* module) { return module->pool->threads; }

static void destroy(PrunerModule* module) {
  if (module->pool != NULL) pruner_pool_destroy(module->pool);
  if (module->weights != NULL) give_back_weights(module->weights);
  free(module->arena);
  free(module->args);
  free(module->values);
  free(module);
}

static PrunerModule* create(const PrunerOptions* options) {
  int32_t threads = options->threads;
  int length = 0;
  if (options->device != 0 || options->allocate != NULL) {
    pruner_fail(
        "the number of a device and a pool of memory are for modules for GPUs; this one is "
        "for CPUs");
    return NULL;
  }
  const char* missing = pruner_missing_cpu_feature(pruner_plan.cpu_features, &length);
  if (missing != NULL) {
    pruner_fail("this CPU lacks %.*s, which it was compiled for", length, missing);
    return NULL;
  }
  int64_t num_args = 0;
  for (int64_t p = 0; p < pruner_plan.num_phases; p++) {
    const PlanPhase* phase = &pruner_plan.phases[p];
    for (int64_t i = 0; i < phase->num_shapes; i++)
      for (int64_t s = 0; s < phase->shapes[i].num_steps; s++)
        num_args = max(num_args, phase->shapes[i].steps[s].num_args + 1);
  }
  const int64_t num_values = pruner_plan.num_values;
  if (threads <= 0) {
    const int32_t most = pruner_cpu_budget("", getenv("OMP_NUM_THREADS")).threads;
    threads = pruner_plan.threads < most ? (int32_t)pruner_plan.threads : most;
  }
  PrunerModule* module = calloc(1, sizeof *module);
  if (module != NULL) {
    module->args = calloc((size_t)max(num_args, 1), sizeof(void*));
    module->values = calloc((size_t)max(num_values, 1), sizeof *module->values);
    module->arena = allocate(pruner_plan.arena_bytes);
    module->pool = pruner_pool_create(threads, 0);
    if (module->args != NULL && module->values != NULL && module->arena != NULL &&
        module->pool != NULL) {
      module->weights = take_weights();
      memset(module->arena, 0, (size_t)pruner_plan.state_bytes);
      memset(module->values, -1, (size_t)max(num_values, 1) * sizeof *module->values);
      return module;
    }
    destroy(module);
  }
  pruner_fail("cannot have %lld bytes of memory and %d threads",
              (long long)pruner_plan.arena_bytes,
              (int)threads);
  return NULL;
}

/* One run: the instance, the numbers of its shapes and the caller's tensors. */
typedef struct {
  PrunerModule* module;
  int64_t num_symbols;
  const int64_t* values;
  const void* const* inputs;
  void* const* outputs;
} Run;

static void* resolve(const Run* run, const PlanAddress* address) {
  switch (address->place) {
    case kPlanArena: return run->module->arena + address->where;
    case kPlanInput: return (void*)run->inputs[address->where];
    case kPlanOutput: return run->outputs[address->where];
    case kPlanNumbers: return (void*)(run->values + address->where);
    default: return (void*)(run->module->weights + address->where);
  }
}

static int check_indices(const Run* run, const PlanStep* step) {
  for (int64_t i = 0; i < step->num_indices; i++) {
    const PlanIndices* indices = &step->indices[i];
    if (!pruner_check_indices(step, indices, run->values, resolve(run, &indices->range.at)))
      return 0;
  }
  return 1;
}

/* There is one for each shape that the step is run at. */
static PrunerKernel kernel_for(const PlanStep* step, const int64_t* values, int64_t symbols) {
  const PlanKernel* kernel = step->kernels;
  if (symbols == 1) {
    /* Without a branch that depends on the extent: none is foreseen wrongly. */
    for (int64_t left = step->num_kernels; left > 1;) {
      const int64_t half = left / 2;
      kernel += half * (kernel[half].box[0] <= values[0]);
      left -= half;
    }
    return kernel->kernel;
  }
  while (!pruner_in_box(kernel->box, values, symbols)) kernel++;
  return kernel->kernel;
}

/* Arguments are resolved anew each time: the caller's tensors may be others. */
static void run_step(const Run* run, const PlanStep* step) {
  PrunerModule* module = run->module;
  for (int64_t a = 0; a < step->num_args; a++) module->args[a] = resolve(run, &step->args[a]);
  module->args[step->num_args] = (void*)run->values;
  kernel_for(step, run->values, run->num_symbols)(
      module->args, module->arena + step->workspace, module->pool);
}

static int32_t run_steps(const Run* run, const PlanShapes* shapes, double* seconds) {
  double start = seconds != NULL ? pruner_now() : 0;
  for (int64_t s = 0; s < shapes->num_steps; s++) {
    if (!check_indices(run, &shapes->steps[s])) return 1;
    run_step(run, &shapes->steps[s]);
    if (seconds == NULL) continue;
    const double end = pruner_now();
    seconds[s] = end - start;
    start = end;
  }
  for (int64_t c = 0; c < shapes->num_copies; c++) {
    const PlanCopy* copy = &shapes->copies[c];
    const int64_t bytes = plan_number(run->values, copy->bytes);
    memcpy(resolve(run, &copy->to), resolve(run, &copy->from), (size_t)bytes);
  }
  return 0;
}

/* The pool's threads take the mode of the calling one, which gets its own back in any case. */
static int32_t run_plan(PrunerModule* module, const PlanRun* plan) {
  const PrunerRun* asked = plan->asked;
  const Run run = {module, plan->phase->num_symbols, plan->values, asked->inputs, asked->outputs};
  if (!pruner_plan.flushes_denormals) return run_steps(&run, plan->shapes, asked->seconds);
  const uint64_t callers = pruner_float_mode();
  pruner_set_float_mode(pruner_flushing(callers));
  const int32_t failed = run_steps(&run, plan->shapes, asked->seconds);
  pruner_set_float_mode(callers);
  return failed;
}

static int32_t device_of(const PrunerModule* module) {
  (void)module;
  return 0;
}

/* A run has ended when its call returns. */
static int32_t wait_for_runs(PrunerModule* module) {
  (void)module;
  return 0;
}

static int32_t read_arena(const PrunerModule* module, int64_t offset, void* to, int64_t bytes) {
  memcpy(to, module->arena + offset, (size_t)bytes);
  return 0;
}

static int32_t write_arena(PrunerModule* module, int64_t offset, const void* from, int64_t bytes) {
  if (from != NULL) memcpy(module->arena + offset, from, (size_t)bytes);
  if (from == NULL) memset(module->arena + offset, 0, (size_t)bytes);
  return 0;
}

static unsigned char* arena_of(const PrunerModule* module) { return module->arena; }
static int64_t* values_of(const PrunerModule* module) { return module->values; }

const PlanExecutor pruner_cpu_executor = {create,
                                          destroy,
                                          threads_of,
                                          device_of,
                                          run_plan,
                                          wait_for_runs,
                                          read_arena,
                                          write_arena,
                                          arena_of,
                                          values_of,
                                          NULL};
