/* Runs a plan on a GPU: the weights and an arena are in its memory, every value has its place there
   from the beginning. gpu_schedule.c has the runs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/module/check_indices.h"
#include "runtime/module/executor.h"
#include "runtime/module/fail.h"
#include "runtime/module/gpu_driver.h"
#include "runtime/module/gpu_instance.h"

static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

GpuHandle pruner_gpu_keep(PrunerModule* module, int kind, GpuHandle handle) {
  if (handle == 0) return 0;
  if (module->num_made == module->room_made) {
    const int64_t room = 2 * module->room_made + 64;
    GpuMade* made = realloc(module->made, (size_t)room * sizeof *made);
    if (made == NULL) {
      pruner_plan.driver->release(module->device, kind, handle);
      return (GpuHandle)pruner_fail("out of memory");
    }
    module->made = made;
    module->room_made = room;
  }
  module->made[module->num_made++] = (GpuMade){kind, handle};
  return handle;
}

GpuHandle pruner_gpu_allocate(PrunerModule* module, int64_t bytes) {
  const GpuHandle made = pruner_plan.driver->allocate(module->device, max(bytes, 1));
  return pruner_gpu_keep(module, kGpuMemory, made);
}

/* Returns the largest thread block, shared memory and number of marks that any schedule needs. */
static GpuNeeds count_needs(const PrunerModule* module) {
  GpuNeeds needs = {pruner_plan.gpu_arch, 0, 0, 2};
  for (int64_t i = 0; i < module->num_schedules; i++) {
    const PlanShapes* shapes = module->schedules[i].shapes;
    needs.marks = max(needs.marks, shapes->num_steps + 1);
    for (int64_t s = 0; s < shapes->num_steps; s++) {
      for (int64_t l = 0; l < shapes->steps[s].num_launches; l++) {
        const PlanLaunch* launch = &shapes->steps[s].launches[l];
        needs.threads = max(needs.threads, launch->threads);
        needs.shared_bytes = max(needs.shared_bytes, launch->shared_bytes);
      }
    }
  }
  return needs;
}

/* All instances of this library, whose memory of a device is shared. */
static struct {
  pthread_mutex_t lock;
  GpuShared* first;
} shared_by_all = {PTHREAD_MUTEX_INITIALIZER, NULL};

static void release_shared(GpuDevice* device, GpuShared* shared) {
  for (int64_t c = 0; shared->programs != NULL && c < pruner_plan.num_codes; c++)
    if (shared->programs[c] != 0)
      pruner_plan.driver->release(device, kGpuProgram, shared->programs[c]);
  if (shared->weights != 0) pruner_plan.driver->release(device, kGpuMemory, shared->weights);
  free(shared->programs);
  free(shared);
}

static int fill_shared(GpuDevice* device, GpuShared* shared) {
  const GpuDriver* driver = pruner_plan.driver;
  const int64_t bytes = pruner_plan.weight_bytes;
  shared->programs = calloc((size_t)pruner_plan.num_codes + 1, sizeof *shared->programs);
  if (shared->programs == NULL) return pruner_fail("out of memory");
  if ((shared->weights = driver->allocate(device, max(bytes, 1))) == 0) return 0;
  if (bytes > 0 && !(driver->write(device, shared->weights, pruner_plan.weights, bytes) &&
                     driver->wait(device))) {
    return 0;
  }
  for (int64_t c = 0; c < pruner_plan.num_codes; c++)
    if ((shared->programs[c] = driver->load(device, &pruner_plan.codes[c])) == 0) return 0;
  return 1;
}

static GpuShared* make_shared(GpuDevice* device, int32_t number) {
  GpuShared* shared = calloc(1, sizeof *shared);
  if (shared == NULL) {
    pruner_fail("out of memory");
    return NULL;
  }
  shared->device = number;
  shared->users = 1;
  if (fill_shared(device, shared)) return shared;
  release_shared(device, shared);
  return NULL;
}

/* NULL for a failure. OpenCL's objects are of one context, which each opened device has. */
static GpuShared* take_shared(GpuDevice* device, int32_t number) {
  if (!pruner_plan.driver->is_cuda) return make_shared(device, number);
  pthread_mutex_lock(&shared_by_all.lock);
  GpuShared* shared = shared_by_all.first;
  while (shared != NULL && shared->device != number) shared = shared->next;
  if (shared != NULL) {
    shared->users++;
  } else if ((shared = make_shared(device, number)) != NULL) {
    shared->next = shared_by_all.first;
    shared_by_all.first = shared;
  }
  pthread_mutex_unlock(&shared_by_all.lock);
  return shared;
}

/* `device` is NULL if the device can no longer be entered: its memory cannot be released then. */
static void give_back_shared(GpuDevice* device, GpuShared* shared) {
  pthread_mutex_lock(&shared_by_all.lock);
  const int is_last = --shared->users == 0;
  GpuShared** at = &shared_by_all.first;
  while (is_last && *at != NULL && *at != shared) at = &(*at)->next;
  if (is_last && *at == shared) *at = shared->next; /* OpenCL's is in no list */
  if (is_last && device != NULL) release_shared(device, shared);
  pthread_mutex_unlock(&shared_by_all.lock);
}

static int64_t count_words(const PrunerModule* module) {
  int64_t words = 0;
  for (int64_t i = 0; i < module->num_schedules; i++)
    for (int64_t s = 0; s < module->schedules[i].shapes->num_steps; s++)
      words += module->schedules[i].shapes->steps[s].num_indices;
  return words;
}

/* CUDA's kernels write into pinned memory of the host; OpenCL's words are read from the device. */
static int make_words(PrunerModule* module) {
  const GpuDriver* driver = pruner_plan.driver;
  const int64_t bytes = module->num_words * kPlanGpuAlignment;
  if (bytes == 0) return 1;
  if (driver->is_cuda) {
    void* memory = driver->pin(module->device, bytes);
    module->words = pruner_gpu_keep(module, kGpuPinned, (GpuHandle)(uintptr_t)memory);
    if (module->words == 0) return 0;
    module->read = memory;
    memset(memory, 0, (size_t)bytes);
    return 1;
  }
  module->read = calloc((size_t)module->num_words, kPlanGpuAlignment);
  if (module->read == NULL) return pruner_fail("out of memory");
  module->words = pruner_gpu_allocate(module, bytes);
  return module->words != 0 && driver->fill(module->device, module->words, 0, bytes) &&
         driver->wait(module->device);
}

static int make_arena(PrunerModule* module) {
  const GpuDriver* driver = pruner_plan.driver;
  const PrunerOptions* options = &module->options;
  const int64_t bytes = max(pruner_plan.arena_bytes, 1);
  if (options->allocate == NULL) {
    module->arena = pruner_gpu_allocate(module, bytes);
  } else {
    module->arena = (GpuHandle)(uintptr_t)options->allocate(options->pool, bytes);
    if (module->arena == 0)
      return pruner_fail("the caller's pool has no %lld bytes for the activations",
                         (long long)bytes);
  }
  if (module->arena == 0) return 0;
  if (module->arena % 16 != 0 && driver->is_cuda)
    return pruner_fail("the caller's pool gave memory at no multiple of 16");
  if (pruner_plan.state_bytes == 0) return 1;
  return driver->fill(module->device, module->arena, 0, pruner_plan.state_bytes) &&
         driver->wait(module->device);
}

/* Makes the tables of the host's, by the plan alone; the schedules get their phase and shapes. */
static int make_tables(PrunerModule* module) {
  /* One more of each, as calloc() of 0 may give NULL. */
  int64_t most_key = 1;
  for (int64_t p = 0; p < pruner_plan.num_phases; p++) {
    const PlanPhase* phase = &pruner_plan.phases[p];
    module->num_schedules += phase->num_shapes;
    most_key = max(most_key, phase->num_symbols + pruner_num_tensors(phase) + 1);
  }
  const size_t values = (size_t)max(pruner_plan.num_values, 1);
  module->schedules = calloc((size_t)module->num_schedules + 1, sizeof *module->schedules);
  module->staging = calloc((size_t)pruner_plan.num_phases + 1, sizeof *module->staging);
  module->values = malloc(values * sizeof *module->values);
  module->key = malloc((size_t)most_key * sizeof *module->key);
  if (module->schedules == NULL || module->staging == NULL || module->values == NULL ||
      module->key == NULL)
    return pruner_fail("out of memory");
  memset(module->values, -1, values * sizeof *module->values);
  GpuSchedule* schedule = module->schedules;
  for (int64_t p = 0; p < pruner_plan.num_phases; p++) {
    const PlanPhase* phase = &pruner_plan.phases[p];
    const size_t tensors = (size_t)pruner_num_tensors(phase) + 1;
    GpuStaging* staging = &module->staging[p];
    staging->places = calloc(tensors, sizeof *staging->places);
    staging->pinned = calloc(tensors, sizeof *staging->pinned);
    if (staging->places == NULL || staging->pinned == NULL) return pruner_fail("out of memory");
    for (int64_t i = 0; i < phase->num_shapes; i++, schedule++) {
      schedule->phase = phase;
      schedule->shapes = &phase->shapes[i];
    }
  }
  module->num_words = count_words(module);
  return 1;
}

static int make_schedules(PrunerModule* module) {
  for (int64_t i = 0; i < module->num_schedules; i++)
    if (!pruner_gpu_make_schedule(module, &module->schedules[i])) return 0;
  return 1;
}

static void release_all(PrunerModule* module) {
  const GpuDriver* driver = pruner_plan.driver;
  /* Work in streams of the caller's may still use what is released here. */
  pruner_hold_failure(1);
  driver->wait_for_streams(module->device);
  pruner_hold_failure(0);
  for (int64_t s = 0; module->schedules != NULL && s < module->num_schedules; s++)
    pruner_gpu_forget_recordings(module, &module->schedules[s]);
  /* Backwards: views go before their memory. */
  while (module->num_made > 0) {
    const GpuMade* last = &module->made[--module->num_made];
    driver->release(module->device, last->kind, last->handle);
  }
  if (module->options.release != NULL && module->arena != 0)
    module->options.release(module->options.pool, (void*)(uintptr_t)module->arena);
  if (module->shared != NULL) give_back_shared(module->device, module->shared);
}

static void destroy(PrunerModule* module) {
  const GpuDriver* driver = pruner_plan.driver;
  if (module->device != NULL) {
    if (driver->enter(module->device)) {
      release_all(module);
      driver->leave(module->device);
    } else if (module->shared != NULL) {
      give_back_shared(NULL, module->shared);
    }
    driver->close(module->device);
  }
  for (int64_t s = 0; module->schedules != NULL && s < module->num_schedules; s++)
    pruner_gpu_free_schedule(&module->schedules[s]);
  for (int64_t p = 0; module->staging != NULL && p < pruner_plan.num_phases; p++) {
    free(module->staging[p].places);
    free(module->staging[p].pinned);
  }
  if (!driver->is_cuda) free((void*)module->read);
  free(module->schedules);
  free(module->staging);
  free(module->values);
  free(module->key);
  free(module->made);
  free(module);
}

static int prepare(PrunerModule* module) {
  const GpuDriver* driver = pruner_plan.driver;
  if (module->options.allocate != NULL && !driver->is_cuda)
    return pruner_fail("a pool of the caller's is for modules for CUDA");
  if (!make_tables(module)) return 0;
  const GpuNeeds needs = count_needs(module);
  if ((module->device = driver->open(module->options.device, &needs)) == NULL) return 0;
  if (!driver->enter(module->device)) return 0;
  module->shared = take_shared(module->device, module->options.device);
  const int ready =
      module->shared != NULL && make_arena(module) && make_words(module) && make_schedules(module);
  driver->leave(module->device);
  return ready;
}

static PrunerModule* create(const PrunerOptions* options) {
  PrunerModule* module = calloc(1, sizeof *module);
  if (module == NULL) {
    pruner_fail("out of memory");
    return NULL;
  }
  module->options = *options;
  if (prepare(module)) return module;
  destroy(module);
  return NULL;
}

static int32_t threads_of(const PrunerModule* module) {
  (void)module;
  return 0;
}

static int32_t device_of(const PrunerModule* module) { return module->options.device; }

/* Checks indices that the caller has in the host's memory, before the run begins. */
static int check_inputs(const PlanRun* run) {
  for (int64_t s = 0; s < run->shapes->num_steps; s++) {
    const PlanStep* step = &run->shapes->steps[s];
    for (int64_t i = 0; i < step->num_indices; i++) {
      const PlanAddress* at = &step->indices[i].range.at;
      if (at->place != kPlanInput || run->tensors[at->where].on_device) continue;
      const void* data = run->tensors[at->where].data;
      if (!pruner_check_indices(step, &step->indices[i], run->values, data)) return 0;
    }
  }
  return 1;
}

/* The words are in the order of the schedules, their steps, and the indices of these. */
static void describe_word(const PrunerModule* module, int64_t word, int64_t index) {
  for (int64_t i = 0; i < module->num_schedules; i++) {
    const PlanShapes* shapes = module->schedules[i].shapes;
    for (int64_t s = 0; s < shapes->num_steps; word -= shapes->steps[s++].num_indices) {
      const PlanStep* step = &shapes->steps[s];
      if (word >= step->num_indices) continue;
      pruner_fail("%s: \"%s\" holds the index %lld, which is out of range",
                  step->spec.name,
                  step->indices[word].name,
                  (long long)index);
      return;
    }
  }
}

/* Whether all indices of the runs that have ended were in range; the words are 0 again. */
static int check_words(PrunerModule* module) {
  const GpuDriver* driver = pruner_plan.driver;
  const int64_t bytes = module->num_words * kPlanGpuAlignment;
  if (bytes == 0) return 1;
  if (!driver->is_cuda &&
      !(driver->read(module->device, (void*)module->read, module->words, bytes) &&
        driver->wait(module->device))) {
    return 0;
  }
  int right = 1;
  for (int64_t w = 0; w < module->num_words; w++) {
    volatile int64_t* word = &module->read[w * kPlanGpuAlignment / (int64_t)sizeof *module->read];
    if (*word == 0) continue;
    if (right) describe_word(module, w, *word);
    *word = right = 0;
  }
  if (!right && !driver->is_cuda) {
    pruner_hold_failure(1);
    driver->fill(module->device, module->words, 0, bytes);
    driver->wait(module->device);
    pruner_hold_failure(0);
  }
  return right;
}

static GpuSchedule* schedule_of(PrunerModule* module, const PlanRun* run) {
  GpuSchedule* schedule = module->schedules;
  while (schedule->shapes != run->shapes) schedule++;
  return schedule;
}

/* Waits also after a failure: what is in the queue may still touch the caller's tensors. */
static int wait_for_run(PrunerModule* module, const PlanRun* run, int given) {
  pruner_hold_failure(!given);
  const int done = pruner_plan.driver->wait(module->device) && given;
  pruner_hold_failure(0);
  if (!done || !check_words(module)) return 0;
  pruner_gpu_take_outputs(module, run);
  return 1;
}

/* An earlier run that nobody waited for may have found an index out of range. */
static int check_earlier(PrunerModule* module) {
  if (!pruner_plan.driver->is_cuda || check_words(module)) return 1;
  char first[1024];
  snprintf(first, sizeof first, "%s", pruner_failure());
  return pruner_fail("an earlier run: %s", first);
}

/* In the instance's own queue a run has ended when its call returns. */
static int run_here(PrunerModule* module, const PlanRun* run) {
  const GpuDriver* driver = pruner_plan.driver;
  if (!driver->wait_for_streams(module->device)) return 0;
  if (!check_earlier(module)) return 0;
  const int given = pruner_gpu_enqueue(module, schedule_of(module, run), run, 0);
  return wait_for_run(module, run, given);
}

static int run_in_stream(PrunerModule* module, const PlanRun* run) {
  const GpuDriver* driver = pruner_plan.driver;
  const int on_host = !pruner_gpu_all_lie(run, 1);
  const int waits =
      on_host || run->asked->seconds != NULL || (run->asked->flags & PRUNER_RUN_WAIT) != 0;
  int captured = 0;
  if (!driver->enter_stream(module->device, run->asked->stream, &captured)) return 0;
  int done = !(captured && waits);
  if (done) {
    done = pruner_gpu_enqueue(module, schedule_of(module, run), run, captured);
    if (waits) done = wait_for_run(module, run, done);
  } else {
    pruner_fail("the stream is being captured: %s",
                on_host ? "all tensors of the run have to lie on the device"
                        : "a run there cannot be waited for");
  }
  pruner_hold_failure(!done);
  const int left = driver->leave_stream(module->device, captured);
  pruner_hold_failure(0);
  return left && done;
}

static int32_t run_plan(PrunerModule* module, const PlanRun* run) {
  const GpuDriver* driver = pruner_plan.driver;
  if (!driver->enter(module->device)) return 1;
  const int in_stream = (run->asked->flags & PRUNER_RUN_STREAM) != 0;
  const int done = pruner_gpu_check_addresses(module, run, 0) && check_inputs(run) &&
                   check_earlier(module) &&
                   (in_stream ? run_in_stream(module, run) : run_here(module, run));
  driver->leave(module->device);
  return done ? 0 : 1;
}

static int32_t wait_for_runs(PrunerModule* module) {
  const GpuDriver* driver = pruner_plan.driver;
  if (!driver->enter(module->device)) return 1;
  const int done = driver->wait_for_streams(module->device) && driver->wait(module->device) &&
                   check_words(module);
  driver->leave(module->device);
  return done ? 0 : 1;
}

/* Copies a part of the arena once all runs have ended. */
static int move_arena(
    PrunerModule* module, int64_t offset, void* to, const void* from, int64_t bytes) {
  const GpuDriver* driver = pruner_plan.driver;
  GpuDevice* device = module->device;
  if (!driver->wait_for_streams(device)) return 0;
  const GpuHandle at = driver->view(device, module->arena, offset, max(bytes, 1));
  if (at == 0) return 0;
  int moved = 0;
  if (to != NULL) {
    moved = driver->read(device, to, at, bytes);
  } else if (from != NULL) {
    moved = driver->write(device, at, from, bytes);
  } else {
    moved = driver->fill(device, at, 0, bytes);
  }
  moved = moved && driver->wait(device);
  driver->release(device, kGpuView, at);
  return moved;
}

static int32_t read_arena(const PrunerModule* module, int64_t offset, void* to, int64_t bytes) {
  PrunerModule* const instance = (PrunerModule*)module; /* its queue is no part of its content */
  if (!pruner_plan.driver->enter(module->device)) return 1;
  const int done = move_arena(instance, offset, to, NULL, bytes);
  pruner_plan.driver->leave(module->device);
  return done ? 0 : 1;
}

static int32_t write_arena(PrunerModule* module, int64_t offset, const void* from, int64_t bytes) {
  if (!pruner_plan.driver->enter(module->device)) return 1;
  const int done = move_arena(module, offset, NULL, from, bytes);
  pruner_plan.driver->leave(module->device);
  return done ? 0 : 1;
}

static unsigned char* arena_of(const PrunerModule* module) {
  (void)module;
  return NULL;
}

static int64_t* values_of(const PrunerModule* module) { return module->values; }

static int32_t time_kernels(PrunerModule* module, double* seconds) {
  const GpuDriver* driver = pruner_plan.driver;
  if (driver->begin_recording == NULL) {
    pruner_fail("this device's driver records no runs");
    return 1;
  }
  if (!driver->enter(module->device)) return 1;
  const int timed = driver->wait_for_streams(module->device) &&
                    pruner_gpu_time_kernels(module, &module->schedules[0], seconds);
  /* Indices that no run has written may be anything. */
  pruner_hold_failure(1);
  check_words(module);
  pruner_hold_failure(0);
  driver->leave(module->device);
  return timed ? 0 : 1;
}

const PlanExecutor pruner_gpu_executor = {create,
                                          destroy,
                                          threads_of,
                                          device_of,
                                          run_plan,
                                          wait_for_runs,
                                          read_arena,
                                          write_arena,
                                          arena_of,
                                          values_of,
                                          time_kernels};
