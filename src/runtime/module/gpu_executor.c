/* Runs a plan on a GPU: the weights and an arena are in its memory, every value has its place there
   from the beginning, so a run is inputs in, launches, outputs out, on one queue. Where the driver
   has recordings that is recorded once, over a copy of the caller's tensors in pinned memory. */
#include <stdlib.h>
#include <string.h>

#include "runtime/module/check_indices.h"
#include "runtime/module/executor.h"
#include "runtime/module/fail.h"
#include "runtime/module/gpu_driver.h"

/* Something of the driver's to be released. */
typedef struct {
  int kind;
  GpuHandle handle;
} Made;

struct PrunerModule {
  GpuDevice* device; /* its queue is this instance's alone */
  GpuHandle weights, arena;
  GpuHandle* programs; /* one a code of the plan */
  GpuHandle* inputs;   /* one an input: the copy of the caller's tensor */
  GpuHandle* outputs;
  GpuHandle* results; /* sources of copies to the caller: outputs, or what the plan's copies say */
  GpuHandle* kernels; /* one a launch */
  GpuHandle* args;    /* arguments of all launches, one after the other */
  Made* made;         /* in the order they were made; destroy() goes backwards */
  int64_t num_made;
  void** staged_inputs; /* pinned */
  void** staged_outputs;
  GpuHandle recording;        /* 0: none */
  GpuHandle kernel_recording; /* recording of the kernels without the copies; 0: not timed yet */
  GpuHandle* step_recordings; /* one a step, with kTimedRuns runs of it; 0: not timed yet */
};

/* A mark and a launch take as long as short kernels do: so many runs of a step that takes less are
   timed as one. */
enum { kTimedRuns = 16 };
static const double kShort = 100e-6; /* seconds */

/* A module for a GPU has one phase, of one shape, and no states. */
static const PlanPhase* the_phase(void) { return &pruner_plan.phases[0]; }
static const PlanShapes* the_shapes(void) { return &the_phase()->shapes[0]; }

static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

/* A tensor is dense: its elements, by the sizes of pruner/dtype.h. */
static int64_t bytes_of(const PrunerTensorSpec* spec) {
#define BYTES(abi, cpp, text, kind, bits, fraction, onnx, numpy) ((bits) + 7) / 8,
  static const int64_t kBytes[] = {PRUNER_DTYPES(BYTES)};
#undef BYTES
  int64_t bytes = kBytes[spec->dtype];
  for (int32_t d = 0; d < spec->rank; d++) bytes *= spec->shape[d];
  return bytes;
}

/* Notes what is to be released with the module; a failed call's 0 is handed on. */
static GpuHandle keep(PrunerModule* module, int kind, GpuHandle handle) {
  if (handle != 0) module->made[module->num_made++] = (Made){kind, handle};
  return handle;
}

/* No driver allocates 0 bytes; an empty tensor gets one. */
static GpuHandle allocate(PrunerModule* module, int64_t bytes) {
  return keep(module, kGpuMemory, pruner_plan.driver->allocate(module->device, max(bytes, 1)));
}

static GpuHandle view(PrunerModule* module, GpuHandle memory, int64_t offset, int64_t bytes) {
  const GpuDriver* driver = pruner_plan.driver;
  return keep(module, kGpuView, driver->view(module->device, memory, offset, max(bytes, 1)));
}

/* The handle of an address: a view of arena or weights, or a tensor's own memory. */
static GpuHandle resolve(PrunerModule* module, const PlanAddress* at, int64_t bytes) {
  switch (at->place) {
    case kPlanArena: return view(module, module->arena, at->where, bytes);
    case kPlanInput: return module->inputs[at->where];
    case kPlanOutput: return module->outputs[at->where];
    default: return view(module, module->weights, at->where, bytes);
  }
}

/* Launches and their arguments, of all steps. */
typedef struct {
  int64_t launches, args;
  GpuNeeds needs;
} Totals;

static Totals count(void) {
  Totals totals = {0, 0, {pruner_plan.gpu_arch, 0, 0, the_phase()->spec.num_kernels + 1}};
  for (int64_t s = 0; s < the_phase()->spec.num_kernels; s++) {
    const PlanStep* step = &the_shapes()->steps[s];
    for (int64_t i = 0; i < step->num_launches; i++) {
      const PlanLaunch* launch = &step->launches[i];
      totals.launches++;
      totals.args += launch->num_args;
      totals.needs.threads = max(totals.needs.threads, launch->threads);
      totals.needs.shared_bytes = max(totals.needs.shared_bytes, launch->shared_bytes);
    }
  }
  return totals;
}

static int make_tables(PrunerModule* module, const Totals* totals) {
  const int64_t inputs = the_phase()->spec.num_inputs, outputs = the_phase()->spec.num_outputs;
  const int64_t codes = pruner_plan.num_codes;
  const int64_t steps = the_phase()->spec.num_kernels;
  /* Weights, arena and two recordings; programs; an input's memory and pinned memory; an output's,
     and a view if it is copied from elsewhere; kernels; a view for each argument; a recording a
     step. */
  const int64_t made =
      4 + codes + 2 * inputs + 3 * outputs + totals->launches + totals->args + steps;
  module->programs = calloc((size_t)codes + 1, sizeof(GpuHandle));
  module->inputs = calloc((size_t)inputs + 1, sizeof(GpuHandle));
  module->outputs = calloc((size_t)outputs + 1, sizeof(GpuHandle));
  module->results = calloc((size_t)outputs + 1, sizeof(GpuHandle));
  module->kernels = calloc((size_t)totals->launches + 1, sizeof(GpuHandle));
  module->args = calloc((size_t)totals->args + 1, sizeof(GpuHandle));
  module->staged_inputs = calloc((size_t)inputs + 1, sizeof(void*));
  module->staged_outputs = calloc((size_t)outputs + 1, sizeof(void*));
  module->step_recordings = calloc((size_t)steps + 1, sizeof(GpuHandle));
  module->made = calloc((size_t)made, sizeof(Made));
  if (module->programs != NULL && module->inputs != NULL && module->outputs != NULL &&
      module->results != NULL && module->kernels != NULL && module->args != NULL &&
      module->staged_inputs != NULL && module->staged_outputs != NULL &&
      module->step_recordings != NULL && module->made != NULL) {
    return 1;
  }
  return pruner_fail("out of memory");
}

static int make_memory(PrunerModule* module) {
  const int64_t weight_bytes = pruner_plan.weight_bytes;
  if ((module->weights = allocate(module, weight_bytes)) == 0) return 0;
  if ((module->arena = allocate(module, pruner_plan.arena_bytes)) == 0) return 0;
  for (int64_t i = 0; i < the_phase()->spec.num_inputs; i++) {
    module->inputs[i] = allocate(module, bytes_of(&the_phase()->spec.inputs[i]));
    if (module->inputs[i] == 0) return 0;
  }
  for (int64_t o = 0; o < the_phase()->spec.num_outputs; o++) {
    module->outputs[o] = allocate(module, bytes_of(&the_phase()->spec.outputs[o]));
    if (module->outputs[o] == 0) return 0;
    module->results[o] = module->outputs[o];
  }
  for (int64_t c = 0; c < the_shapes()->num_copies; c++) {
    const PlanCopy* copy = &the_shapes()->copies[c];
    module->results[copy->to.where] = resolve(module, &copy->from, copy->bytes);
    if (module->results[copy->to.where] == 0) return 0;
  }
  const GpuDriver* driver = pruner_plan.driver;
  if (weight_bytes == 0) return 1;
  return driver->write(module->device, module->weights, pruner_plan.weights, weight_bytes) &&
         driver->wait(module->device);
}

static int make_launches(PrunerModule* module) {
  const GpuDriver* driver = pruner_plan.driver;
  for (int64_t c = 0; c < pruner_plan.num_codes; c++) {
    module->programs[c] =
        keep(module, kGpuProgram, driver->load(module->device, &pruner_plan.codes[c]));
    if (module->programs[c] == 0) return 0;
  }
  GpuHandle* kernel = module->kernels;
  GpuHandle* arg = module->args;
  for (int64_t s = 0; s < the_phase()->spec.num_kernels; s++) {
    const PlanStep* step = &the_shapes()->steps[s];
    for (int64_t i = 0; i < step->num_launches; i++) {
      const PlanLaunch* launch = &step->launches[i];
      const GpuHandle program = module->programs[launch->code];
      *kernel = keep(module, kGpuKernel, driver->kernel(module->device, program, launch));
      if (*kernel++ == 0) return 0;
      for (int64_t a = 0; a < launch->num_args; a++) {
        *arg = resolve(module, &launch->args[a].at, launch->args[a].bytes);
        if (*arg++ == 0) return 0;
      }
    }
  }
  return 1;
}

static int write_inputs(PrunerModule* module, const void* const* inputs) {
  for (int64_t i = 0; i < the_phase()->spec.num_inputs; i++) {
    const int64_t bytes = bytes_of(&the_phase()->spec.inputs[i]);
    if (bytes == 0) continue;
    if (!pruner_plan.driver->write(module->device, module->inputs[i], inputs[i], bytes)) return 0;
  }
  return 1;
}

/* `kernel` and `args` go on by what the step has: launches lie in the order of the steps. */
static int launch_step(PrunerModule* module,
                       const PlanStep* step,
                       const GpuHandle** kernel,
                       const GpuHandle** args) {
  for (int64_t i = 0; i < step->num_launches; i++) {
    const PlanLaunch* launch = &step->launches[i];
    if (!pruner_plan.driver->launch(module->device, *(*kernel)++, launch, *args)) return 0;
    *args += launch->num_args;
  }
  return 1;
}

/* With a mark before each step and after the last, if `marked`. */
static int run_steps(PrunerModule* module, int marked) {
  const GpuDriver* driver = pruner_plan.driver;
  const GpuHandle* kernel = module->kernels;
  const GpuHandle* args = module->args;
  for (int64_t s = 0; s < the_phase()->spec.num_kernels; s++) {
    if (marked && !driver->mark(module->device, s)) return 0;
    if (!launch_step(module, &the_shapes()->steps[s], &kernel, &args)) return 0;
  }
  return !marked || driver->mark(module->device, the_phase()->spec.num_kernels);
}

/* The time that each step takes on the device, of a run that follows another one at once: when it
   begins all of it is in the queue, and no step waits for its launch. */
static int time_run(PrunerModule* module, double* seconds) {
  const GpuDriver* driver = pruner_plan.driver;
  if (!run_steps(module, 0) || !run_steps(module, 1) || !driver->wait(module->device)) return 0;
  for (int64_t s = 0; s < the_phase()->spec.num_kernels; s++) {
    if (!driver->elapsed(module->device, s, &seconds[s])) return 0;
  }
  return 1;
}

static GpuHandle end_recording(PrunerModule* module, int recorded) {
  const GpuHandle made = pruner_end_recording(pruner_plan.driver, module->device, recorded);
  return keep(module, kGpuRecording, made);
}

static GpuHandle record_step(PrunerModule* module,
                             const PlanStep* step,
                             const GpuHandle* kernel,
                             const GpuHandle* args) {
  if (!pruner_plan.driver->begin_recording(module->device)) return 0;
  int recorded = 1;
  for (int i = 0; recorded && i < kTimedRuns; i++) {
    const GpuHandle* kernels = kernel;
    const GpuHandle* places = args;
    recorded = launch_step(module, step, &kernels, &places);
  }
  const GpuHandle recording = end_recording(module, recorded);
  /* The first time it has to be brought to the device. */
  return recording != 0 && pruner_plan.driver->replay(module->device, recording) ? recording : 0;
}

static int time_launches(PrunerModule* module,
                         const PlanStep* step,
                         const GpuHandle* kernel,
                         const GpuHandle* args,
                         double* seconds) {
  const GpuDriver* driver = pruner_plan.driver;
  GpuDevice* device = module->device;
  return driver->mark(device, 0) && launch_step(module, step, &kernel, &args) &&
         driver->mark(device, 1) && driver->wait(device) && driver->elapsed(device, 0, seconds);
}

static int time_recording(PrunerModule* module, GpuHandle recording, double* seconds) {
  const GpuDriver* driver = pruner_plan.driver;
  GpuDevice* device = module->device;
  const int timed = driver->mark(device, 0) && driver->replay(device, recording) &&
                    driver->mark(device, 1) && driver->wait(device) &&
                    driver->elapsed(device, 0, seconds);
  *seconds /= kTimedRuns;
  return timed;
}

/* The time of each step alone. One that writes over what it reads leaves nothing of use then, so
   all of them run once more. */
static int time_each(PrunerModule* module, double* seconds) {
  const GpuHandle* kernel = module->kernels;
  const GpuHandle* args = module->args;
  for (int64_t s = 0; s < the_phase()->spec.num_kernels; s++) {
    const PlanStep* step = &the_shapes()->steps[s];
    GpuHandle* recording = &module->step_recordings[s];
    if (*recording == 0) {
      if (!time_launches(module, step, kernel, args, &seconds[s])) return 0;
      if (seconds[s] < kShort && (*recording = record_step(module, step, kernel, args)) == 0)
        return 0;
    }
    if (*recording != 0 && !time_recording(module, *recording, &seconds[s])) return 0;
    kernel += step->num_launches;
    for (int64_t i = 0; i < step->num_launches; i++) args += step->launches[i].num_args;
  }
  return run_steps(module, 0);
}

static int time_steps(PrunerModule* module, double* seconds) {
  return pruner_plan.driver->begin_recording != NULL ? time_each(module, seconds)
                                                     : time_run(module, seconds);
}

static int read_outputs(PrunerModule* module, void* const* outputs) {
  for (int64_t o = 0; o < the_phase()->spec.num_outputs; o++) {
    const int64_t bytes = bytes_of(&the_phase()->spec.outputs[o]);
    if (bytes == 0) continue;
    if (!pruner_plan.driver->read(module->device, outputs[o], module->results[o], bytes)) return 0;
  }
  return 1;
}

static int record_run(PrunerModule* module) {
  if (!pruner_plan.driver->begin_recording(module->device)) return 0;
  module->recording =
      end_recording(module,
                    write_inputs(module, (const void* const*)module->staged_inputs) &&
                        run_steps(module, 0) && read_outputs(module, module->staged_outputs));
  return module->recording != 0;
}

/* Pinned memory for each of `count` tensors. */
static int pin_all(PrunerModule* module,
                   const PrunerTensorSpec* specs,
                   int64_t count,
                   void** pinned) {
  for (int64_t i = 0; i < count; i++) {
    pinned[i] = pruner_plan.driver->pin(module->device, max(bytes_of(&specs[i]), 1));
    if (keep(module, kGpuPinned, (GpuHandle)(uintptr_t)pinned[i]) == 0) return 0;
  }
  return 1;
}

/* A driver without recordings (pin is NULL) launches each step of each run. */
static int make_recording(PrunerModule* module) {
  if (pruner_plan.driver->pin == NULL) return 1;
  return pin_all(module,
                 the_phase()->spec.inputs,
                 the_phase()->spec.num_inputs,
                 module->staged_inputs) &&
         pin_all(module,
                 the_phase()->spec.outputs,
                 the_phase()->spec.num_outputs,
                 module->staged_outputs) &&
         record_run(module);
}

static void destroy(PrunerModule* module) {
  const GpuDriver* driver = pruner_plan.driver;
  if (module->device != NULL) {
    if (driver->enter(module->device)) {
      /* Backwards: views go before their memory, kernels before their programs. */
      while (module->num_made > 0) {
        const Made* last = &module->made[--module->num_made];
        driver->release(module->device, last->kind, last->handle);
      }
      driver->leave(module->device);
    }
    driver->close(module->device);
  }
  free(module->programs);
  free(module->inputs);
  free(module->outputs);
  free(module->results);
  free(module->kernels);
  free(module->args);
  free(module->staged_inputs);
  free(module->staged_outputs);
  free(module->step_recordings);
  free(module->made);
  free(module);
}

/* Takes the first device that the driver lists: CUDA_VISIBLE_DEVICES may say which it is. */
static int prepare(PrunerModule* module) {
  const GpuDriver* driver = pruner_plan.driver;
  const Totals totals = count();
  if (!make_tables(module, &totals)) return 0;
  if ((module->device = driver->open(0, &totals.needs)) == NULL) return 0;
  if (!driver->enter(module->device)) return 0;
  const int ready = make_memory(module) && make_launches(module) && make_recording(module);
  driver->leave(module->device);
  return ready;
}

static PrunerModule* create(int32_t threads) {
  (void)threads;
  PrunerModule* module = calloc(1, sizeof *module);
  if (module == NULL) {
    pruner_fail("out of memory");
    return NULL;
  }
  if (prepare(module)) return module;
  destroy(module);
  return NULL;
}

static int32_t threads_of(const PrunerModule* module) {
  (void)module;
  return 0;
}

/* Also after a failure: what is in the queue may still touch the caller's tensors. */
static int wait_for_all(PrunerModule* module, int given) {
  pruner_hold_failure(!given);
  const int done = pruner_plan.driver->wait(module->device) && given;
  pruner_hold_failure(0);
  return done;
}

/* A recording has fixed addresses: the caller's tensors go through pinned memory. */
static int run_recorded(PrunerModule* module, const void* const* inputs, void* const* outputs) {
  const GpuDriver* driver = pruner_plan.driver;
  for (int64_t i = 0; i < the_phase()->spec.num_inputs; i++)
    memcpy(module->staged_inputs[i], inputs[i], (size_t)bytes_of(&the_phase()->spec.inputs[i]));
  const int given = driver->replay(module->device, module->recording);
  const int done = wait_for_all(module, given);
  for (int64_t o = 0; done && o < the_phase()->spec.num_outputs; o++)
    memcpy(outputs[o], module->staged_outputs[o], (size_t)bytes_of(&the_phase()->spec.outputs[o]));
  return done;
}

/* Without a recording, or where the time of each step is asked. */
static int run_each(PrunerModule* module,
                    const void* const* inputs,
                    void* const* outputs,
                    double* seconds) {
  const int given = write_inputs(module, inputs) &&
                    (seconds != NULL ? time_steps(module, seconds) : run_steps(module, 0)) &&
                    read_outputs(module, outputs);
  return wait_for_all(module, given);
}

/* Checks indices in the caller's tensors. Tensors that a kernel makes stay on the device. */
static int check_inputs(const void* const* inputs) {
  for (int64_t s = 0; s < the_phase()->spec.num_kernels; s++) {
    const PlanStep* step = &the_shapes()->steps[s];
    for (int64_t i = 0; i < step->num_indices; i++) {
      const PlanAddress* at = &step->indices[i].range.at;
      if (at->place != kPlanInput) continue;
      if (!pruner_check_indices(step, &step->indices[i], NULL, inputs[at->where])) return 0;
    }
  }
  return 1;
}

static int32_t run_shapes(PrunerModule* module,
                          const PlanPhase* phase,
                          const PlanShapes* shapes,
                          const int64_t* values,
                          const void* const* inputs,
                          void* const* outputs,
                          double* seconds) {
  (void)shapes; /* those that were recorded */
  (void)phase, (void)values;
  const GpuDriver* driver = pruner_plan.driver;
  if (!check_inputs(inputs)) return 1;
  if (!driver->enter(module->device)) return 1;
  const int recorded = module->recording != 0 && seconds == NULL;
  const int done =
      recorded ? run_recorded(module, inputs, outputs) : run_each(module, inputs, outputs, seconds);
  driver->leave(module->device);
  return done ? 0 : 1;
}

static int record_kernels(PrunerModule* module) {
  const GpuDriver* driver = pruner_plan.driver;
  if (module->kernel_recording != 0) return 1;
  if (!driver->begin_recording(module->device)) return 0;
  module->kernel_recording = end_recording(module, run_steps(module, 0));
  /* The first time it has to be brought to the device. */
  return module->kernel_recording != 0 && driver->replay(module->device, module->kernel_recording);
}

static int32_t time_kernels(PrunerModule* module, double* seconds) {
  const GpuDriver* driver = pruner_plan.driver;
  GpuDevice* device = module->device;
  if (driver->begin_recording == NULL) {
    pruner_fail("this device's driver records no runs");
    return 1;
  }
  if (!driver->enter(device)) return 1;
  const int timed = record_kernels(module) && driver->mark(device, 0) &&
                    driver->replay(device, module->kernel_recording) && driver->mark(device, 1) &&
                    driver->wait(device) && driver->elapsed(device, 0, seconds);
  driver->leave(device);
  return timed ? 0 : 1;
}

const PlanExecutor pruner_gpu_executor = {
    create, destroy, threads_of, run_shapes, NULL, NULL, time_kernels};
