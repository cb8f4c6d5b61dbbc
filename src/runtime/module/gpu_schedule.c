/* The launches of a module on a GPU: each run is inputs in, launches, outputs out, on one queue.
   Tensors on the device are arguments of the kernels as they are; others have a copy there. Where
   the driver has recordings, a run that comes a second time with the same tensors is recorded. */
#include <stdlib.h>
#include <string.h>

#include "runtime/module/fail.h"
#include "runtime/module/gpu_instance.h"

/* Kernels read and write up to so many bytes at a time. */
enum { kTensorAlignment = 16 };
/* A mark and a launch take about as long as a short kernel. `kTimedRuns` runs of a step below
   `kShort` seconds are therefore timed as one. */
enum { kTimedRuns = 16 };
static const double kShort = 100e-6; /* seconds */

static const GpuDriver* the_driver(void) { return pruner_plan.driver; }

static GpuStaging* staging_of(PrunerModule* module, const PlanPhase* phase) {
  return &module->staging[phase - pruner_plan.phases];
}

/* The handle of an address that no run changes; 0 for the caller's tensors and for numbers. */
static GpuHandle fixed_handle(PrunerModule* module, const PlanAddress* at, int64_t bytes) {
  const GpuDriver* driver = the_driver();
  GpuHandle memory = 0;
  if (at->place == kPlanArena) memory = module->arena;
  if (at->place == kPlanWeight) memory = module->shared->weights;
  if (at->place == kPlanFailures) memory = module->words;
  const int64_t some = bytes > 0 ? bytes : 1;
  return pruner_gpu_keep(module, kGpuView, driver->view(module->device, memory, at->where, some));
}

static int is_fixed(const PlanAddress* at) {
  return at->place == kPlanArena || at->place == kPlanWeight || at->place == kPlanFailures;
}

static int64_t count_launches(const GpuSchedule* schedule, int64_t* args) {
  int64_t launches = 0;
  *args = 0;
  for (int64_t s = 0; s < schedule->shapes->num_steps; s++) {
    const PlanStep* step = &schedule->shapes->steps[s];
    launches += step->num_launches;
    for (int64_t i = 0; i < step->num_launches; i++) *args += step->launches[i].num_args;
  }
  return launches;
}

static int make_launches(PrunerModule* module, GpuSchedule* schedule) {
  const GpuDriver* driver = the_driver();
  const PlanShapes* shapes = schedule->shapes;
  GpuHandle* kernel = schedule->kernels;
  int64_t a = 0;
  for (int64_t s = 0; s < shapes->num_steps; s++) {
    for (int64_t i = 0; i < shapes->steps[s].num_launches; i++) {
      const PlanLaunch* launch = &shapes->steps[s].launches[i];
      const GpuHandle program = module->shared->programs[launch->code];
      *kernel =
          pruner_gpu_keep(module, kGpuKernel, driver->kernel(module->device, program, launch));
      if (*kernel++ == 0) return 0;
      for (int64_t n = 0; n < launch->num_args; n++, a++) {
        schedule->arg_at[a] = &launch->args[n].at;
        if (!is_fixed(&launch->args[n].at)) continue;
        schedule->args[a] = fixed_handle(module, &launch->args[n].at, launch->args[n].bytes);
        if (schedule->args[a] == 0) return 0;
      }
    }
  }
  return 1;
}

/* The ends of the plan's copies that no run changes. */
static int make_copies(PrunerModule* module, GpuSchedule* schedule) {
  const PlanShapes* shapes = schedule->shapes;
  for (int64_t c = 0; c < shapes->num_copies; c++) {
    const PlanCopy* copy = &shapes->copies[c];
    GpuCopy* ends = &schedule->copies[c];
    const int64_t bytes = copy->bytes > 0 ? copy->bytes : 1;
    if (is_fixed(&copy->from) && (ends->from = fixed_handle(module, &copy->from, bytes)) == 0)
      return 0;
    if (is_fixed(&copy->to) && (ends->to = fixed_handle(module, &copy->to, bytes)) == 0) return 0;
    if (copy->to.place == kPlanOutput) schedule->is_copied[copy->to.where] = 1;
  }
  return 1;
}

int pruner_gpu_make_schedule(PrunerModule* module, GpuSchedule* schedule) {
  const PlanShapes* shapes = schedule->shapes;
  const int64_t launches = count_launches(schedule, &schedule->num_args);
  /* One more of each, as calloc() of 0 may give NULL. */
  schedule->kernels = calloc((size_t)launches + 1, sizeof *schedule->kernels);
  schedule->args = calloc((size_t)schedule->num_args + 1, sizeof *schedule->args);
  schedule->arg_at = calloc((size_t)schedule->num_args + 1, sizeof *schedule->arg_at);
  schedule->step_recordings =
      calloc((size_t)shapes->num_steps + 1, sizeof *schedule->step_recordings);
  schedule->is_copied = calloc((size_t)schedule->phase->spec.num_outputs + 1, 1);
  schedule->copies = calloc((size_t)shapes->num_copies + 1, sizeof *schedule->copies);
  if (schedule->kernels == NULL || schedule->args == NULL || schedule->arg_at == NULL ||
      schedule->step_recordings == NULL || schedule->is_copied == NULL || schedule->copies == NULL)
    return pruner_fail("out of memory");
  return make_launches(module, schedule) && make_copies(module, schedule);
}

void pruner_gpu_free_schedule(GpuSchedule* schedule) {
  free(schedule->kernels);
  free(schedule->args);
  free(schedule->arg_at);
  free(schedule->step_recordings);
  free(schedule->is_copied);
  free(schedule->copies);
  for (int i = 0; i < kMostRecordings; i++) free(schedule->recordings[i].key);
}

/* The run of a schedule. `tensors` and `places`, where kernels find them, have inputs before
 * outputs.
 */
typedef struct {
  PrunerModule* module;
  GpuSchedule* schedule;
  const RunTensor* tensors;
  const int64_t* values;
  int captured;
  GpuHandle* places;
} Run;

static GpuHandle handle_of(const void* data) { return (GpuHandle)(uintptr_t)data; }

/* Whether kernels take a tensor where the caller has it. */
static int is_read_there(const RunTensor* tensor) {
  return tensor->on_device && tensor->data != NULL &&
         handle_of(tensor->data) % kTensorAlignment == 0;
}

/* The instance's own place for a tensor of a phase, as large as the greatest shape's. */
static GpuHandle stage(const Run* run, const PrunerTensorSpec* spec, GpuHandle* place) {
  if (*place != 0) return *place;
  if (run->captured) {
    return (GpuHandle)pruner_fail(
        "the address of \"%s\" is no multiple of %d, and a copy of it needs "
        "memory: run the module once before the capture",
        spec->name,
        (int)kTensorAlignment);
  }
  *place = pruner_gpu_allocate(run->module, pruner_spec_bytes(spec));
  return *place;
}

static int find_places(Run* run) {
  const PlanPhase* phase = run->schedule->phase;
  GpuHandle* staged = staging_of(run->module, phase)->places;
  for (int64_t t = 0; t < pruner_num_tensors(phase); t++) {
    const RunTensor* tensor = &run->tensors[t];
    if (tensor->bytes == 0) {
      /* Nobody reads or writes it, and it may have no address: any handle will do. */
      run->places[t] = run->module->arena;
    } else if (is_read_there(tensor)) {
      run->places[t] = handle_of(tensor->data);
    } else {
      run->places[t] = stage(run, tensor->spec, &staged[t]);
    }
    if (run->places[t] == 0) return 0;
  }
  return 1;
}

/* The place of an address that is a tensor of the caller's. */
static GpuHandle place_of(const Run* run, const PlanAddress* at) {
  const int64_t first = at->place == kPlanInput ? 0 : run->schedule->phase->spec.num_inputs;
  return run->places[first + at->where];
}

/* Arguments that are numbers are given by their value, which a driver's handle has room for. */
static void bind_arguments(const Run* run) {
  GpuSchedule* schedule = run->schedule;
  for (int64_t a = 0; a < schedule->num_args; a++) {
    const PlanAddress* at = schedule->arg_at[a];
    if (at->place == kPlanNumbers) {
      schedule->args[a] = (GpuHandle)run->values[at->where];
    } else if (!is_fixed(at)) {
      schedule->args[a] = place_of(run, at);
    }
  }
}

static int move_inputs(const Run* run) {
  const GpuDriver* driver = the_driver();
  GpuDevice* device = run->module->device;
  for (int64_t i = 0; i < run->schedule->phase->spec.num_inputs; i++) {
    const RunTensor* from = &run->tensors[i];
    const GpuHandle to = run->places[i];
    if (from->bytes == 0 || to == handle_of(from->data)) continue;
    const int moved = from->on_device ? driver->copy(device, to, handle_of(from->data), from->bytes)
                                      : driver->write(device, to, from->data, from->bytes);
    if (!moved) return 0;
  }
  return 1;
}

static GpuHandle source_of(const Run* run, int64_t copy) {
  const PlanAddress* from = &run->schedule->shapes->copies[copy].from;
  return is_fixed(from) ? run->schedule->copies[copy].from : place_of(run, from);
}

/* Copies an output from memory of the device to where the caller has it. */
static int give_output(const Run* run, int64_t output, GpuHandle from) {
  const GpuDriver* driver = the_driver();
  const RunTensor* to = &run->tensors[run->schedule->phase->spec.num_inputs + output];
  if (to->bytes == 0 || from == handle_of(to->data)) return 1;
  if (!to->on_device) return driver->read(run->module->device, to->data, from, to->bytes);
  return driver->copy(run->module->device, handle_of(to->data), from, to->bytes);
}

static int move_outputs(const Run* run) {
  const PlanShapes* shapes = run->schedule->shapes;
  const PrunerPhase* spec = &run->schedule->phase->spec;
  for (int64_t o = 0; o < spec->num_outputs; o++) {
    if (run->schedule->is_copied[o]) continue;
    if (!give_output(run, o, run->places[spec->num_inputs + o])) return 0;
  }
  for (int64_t c = 0; c < shapes->num_copies; c++) {
    const PlanCopy* copy = &shapes->copies[c];
    const int64_t bytes = plan_number(run->values, copy->bytes);
    if (bytes == 0) continue;
    const GpuHandle from = source_of(run, c), to = run->schedule->copies[c].to;
    const int moved = copy->to.place == kPlanOutput
                          ? give_output(run, copy->to.where, from)
                          : the_driver()->copy(run->module->device, to, from, bytes);
    if (!moved) return 0;
  }
  return 1;
}

/* `kernel` and `args` go on by what the step has: launches lie in the order of the steps. A step
   that is timed alone begins when the one before it has ended. */
static int launch_step(const Run* run,
                       const PlanStep* step,
                       int is_timed,
                       const GpuHandle** kernel,
                       const GpuHandle** args) {
  for (int64_t i = 0; i < step->num_launches; i++) {
    PlanLaunch launch = step->launches[i];
    launch.blocks = plan_number(run->values, launch.blocks);
    launch.early = launch.early && !is_timed;
    if (!the_driver()->launch(run->module->device, *(*kernel)++, &launch, *args)) return 0;
    *args += launch.num_args;
  }
  return 1;
}

/* Runs all steps. If `marked`, puts a mark before each step and behind the last one. */
static int run_steps(const Run* run, int marked) {
  const GpuDriver* driver = the_driver();
  const PlanShapes* shapes = run->schedule->shapes;
  const GpuHandle* kernel = run->schedule->kernels;
  const GpuHandle* args = run->schedule->args;
  for (int64_t s = 0; s < shapes->num_steps; s++) {
    if (marked && !driver->mark(run->module->device, s)) return 0;
    if (!launch_step(run, &shapes->steps[s], marked, &kernel, &args)) return 0;
  }
  return !marked || driver->mark(run->module->device, shapes->num_steps);
}

static GpuHandle end_recording(const Run* run, int recorded) {
  const GpuHandle made = pruner_end_recording(the_driver(), run->module->device, recorded);
  return pruner_gpu_keep(run->module, kGpuRecording, made);
}

/* Copies the states, which steps may write in place, aside (`restores` 0) or back: steps that are
   timed run more than once. */
static int keep_states(PrunerModule* module, int restores) {
  const int64_t bytes = pruner_plan.state_bytes;
  if (bytes == 0) return 1;
  if (module->saved == 0 && (module->saved = pruner_gpu_allocate(module, bytes)) == 0) return 0;
  const GpuHandle to = restores ? module->arena : module->saved;
  const GpuHandle from = restores ? module->saved : module->arena;
  return the_driver()->copy(module->device, to, from, bytes);
}

/* The time that each step takes on the device, of a run that follows another one at once: when it
   begins all of it is in the queue, and no step waits for its launch. */
static int time_run(const Run* run, double* seconds) {
  const GpuDriver* driver = the_driver();
  GpuDevice* device = run->module->device;
  if (!keep_states(run->module, 0) || !run_steps(run, 0) || !keep_states(run->module, 1) ||
      !run_steps(run, 1) || !driver->wait(device))
    return 0;
  for (int64_t s = 0; s < run->schedule->shapes->num_steps; s++) {
    if (!driver->elapsed(device, s, &seconds[s])) return 0;
  }
  return 1;
}

static GpuHandle record_step(const Run* run,
                             const PlanStep* step,
                             const GpuHandle* kernel,
                             const GpuHandle* args) {
  if (!the_driver()->begin_recording(run->module->device)) return 0;
  int recorded = 1;
  for (int i = 0; recorded && i < kTimedRuns; i++) {
    const GpuHandle* kernels = kernel;
    const GpuHandle* places = args;
    recorded = launch_step(run, step, 1, &kernels, &places);
  }
  const GpuHandle recording = end_recording(run, recorded);
  /* The first time it has to be brought to the device. */
  return recording != 0 && the_driver()->replay(run->module->device, recording) ? recording : 0;
}

static int time_launches(const Run* run,
                         const PlanStep* step,
                         const GpuHandle* kernel,
                         const GpuHandle* args,
                         double* seconds) {
  const GpuDriver* driver = the_driver();
  GpuDevice* device = run->module->device;
  return driver->mark(device, 0) && launch_step(run, step, 1, &kernel, &args) &&
         driver->mark(device, 1) && driver->wait(device) && driver->elapsed(device, 0, seconds);
}

static int time_recording(const Run* run, GpuHandle recording, double* seconds) {
  const GpuDriver* driver = the_driver();
  GpuDevice* device = run->module->device;
  const int timed = driver->mark(device, 0) && driver->replay(device, recording) &&
                    driver->mark(device, 1) && driver->wait(device) &&
                    driver->elapsed(device, 0, seconds);
  *seconds /= kTimedRuns;
  return timed;
}

/* Times each step alone. A repeated step may destroy its own input, so all steps run once more at
   the end. */
static int time_each(const Run* run, double* seconds) {
  const PlanShapes* shapes = run->schedule->shapes;
  const GpuHandle* kernel = run->schedule->kernels;
  const GpuHandle* args = run->schedule->args;
  if (!keep_states(run->module, 0)) return 0;
  for (int64_t s = 0; s < shapes->num_steps; s++) {
    const PlanStep* step = &shapes->steps[s];
    GpuHandle* recording = &run->schedule->step_recordings[s];
    if (*recording == 0) {
      if (!time_launches(run, step, kernel, args, &seconds[s])) return 0;
      if (seconds[s] < kShort && (*recording = record_step(run, step, kernel, args)) == 0) return 0;
    }
    if (*recording != 0 && !time_recording(run, *recording, &seconds[s])) return 0;
    kernel += step->num_launches;
    for (int64_t i = 0; i < step->num_launches; i++) args += step->launches[i].num_args;
  }
  return keep_states(run->module, 1) && run_steps(run, 0);
}

int pruner_gpu_all_lie(const PlanRun* run, int on_device) {
  for (int64_t t = 0; t < pruner_num_tensors(run->phase); t++)
    if (run->tensors[t].on_device != on_device) return 0;
  return 1;
}

/* A recording of a step has the addresses of the instance's own places and no numbers. */
static int time_steps(const Run* run, double* seconds, int on_host) {
  const int records =
      the_driver()->begin_recording != NULL && run->schedule->phase->num_symbols == 0;
  return records && on_host ? time_each(run, seconds) : time_run(run, seconds);
}

static int run_each(const Run* run, double* seconds, int on_host) {
  bind_arguments(run);
  return move_inputs(run) &&
         (seconds != NULL ? time_steps(run, seconds, on_host) : run_steps(run, 0)) &&
         move_outputs(run);
}

/* A key says all that a recording has in it: the extents and the addresses. The host's tensors go
   through pinned memory, whose address is always the same. */
static int64_t make_key(const PlanRun* run, int64_t* key, int on_host) {
  int64_t count = 0;
  for (int64_t s = 0; s < run->phase->num_symbols; s++) key[count++] = run->values[s];
  key[count++] = on_host;
  for (int64_t t = 0; t < pruner_num_tensors(run->phase); t++)
    key[count++] = on_host ? 0 : (int64_t)(uintptr_t)run->tensors[t].data;
  return count;
}

static void forget_recording(PrunerModule* module, GpuRecording* entry) {
  if (entry->recording != 0) the_driver()->release(module->device, kGpuRecording, entry->recording);
  free(entry->key);
  *entry = (GpuRecording){NULL, 0, 0};
}

void pruner_gpu_forget_recordings(PrunerModule* module, GpuSchedule* schedule) {
  for (int i = 0; i < kMostRecordings; i++) forget_recording(module, &schedule->recordings[i]);
}

/* Returns the entry with the key. If there is none, frees the least recently used entry and returns
   that entry. */
static GpuRecording* find_recording(PrunerModule* module,
                                    GpuSchedule* schedule,
                                    const int64_t* key,
                                    int64_t count) {
  const size_t bytes = (size_t)count * sizeof *key;
  GpuRecording* oldest = &schedule->recordings[0];
  for (int i = 0; i < kMostRecordings; i++) {
    GpuRecording* entry = &schedule->recordings[i];
    if (entry->key != NULL && memcmp(entry->key, key, bytes) == 0) return entry;
    if (entry->last_used < oldest->last_used) oldest = entry;
  }
  forget_recording(module, oldest);
  return oldest;
}

/* Writes the tensors of a run to `pinned`, with pinned memory in the place of the host's. */
static int pin_all(const Run* run, RunTensor* pinned) {
  void** memory = staging_of(run->module, run->schedule->phase)->pinned;
  for (int64_t t = 0; t < pruner_num_tensors(run->schedule->phase); t++) {
    pinned[t] = run->tensors[t];
    if (memory[t] == NULL) {
      const int64_t bytes = pruner_spec_bytes(pinned[t].spec);
      void* made = the_driver()->pin(run->module->device, bytes > 0 ? bytes : 1);
      if (pruner_gpu_keep(run->module, kGpuPinned, handle_of(made)) == 0) return 0;
      memory[t] = made;
    }
    pinned[t].data = memory[t];
  }
  return 1;
}

/* Records `run`, with `tensors` in place of the caller's. */
static int record_run(const Run* run, const RunTensor* tensors, GpuRecording* entry) {
  Run recorded = *run;
  recorded.tensors = tensors;
  bind_arguments(&recorded);
  if (!the_driver()->begin_recording(run->module->device)) return 0;
  const int given = move_inputs(&recorded) && run_steps(&recorded, 0) && move_outputs(&recorded);
  entry->recording = pruner_end_recording(the_driver(), run->module->device, given);
  return entry->recording != 0;
}

static int replay_on_host(const Run* run, GpuRecording* entry) {
  const PlanPhase* phase = run->schedule->phase;
  RunTensor pinned[pruner_num_tensors(phase) + 1];
  if (!pin_all(run, pinned)) return 0;
  if (entry->recording == 0 && !record_run(run, pinned, entry)) return 0;
  for (int64_t i = 0; i < phase->spec.num_inputs; i++)
    memcpy(pinned[i].data, run->tensors[i].data, (size_t)pinned[i].bytes);
  run->module->is_pinned = 1;
  return the_driver()->replay(run->module->device, entry->recording);
}

void pruner_gpu_take_outputs(PrunerModule* module, const PlanRun* run) {
  if (!module->is_pinned) return;
  void* const* pinned = staging_of(module, run->phase)->pinned;
  for (int64_t t = run->phase->spec.num_inputs; t < pruner_num_tensors(run->phase); t++)
    memcpy(run->tensors[t].data, pinned[t], (size_t)run->tensors[t].bytes);
}

static int replay_on_device(const Run* run, GpuRecording* entry) {
  if (entry->recording == 0 && !record_run(run, run->tensors, entry)) return 0;
  return the_driver()->replay(run->module->device, entry->recording);
}

int pruner_gpu_check_addresses(PrunerModule* module, const PlanRun* run, int on_device) {
  for (int64_t t = 0; t < pruner_num_tensors(run->phase); t++) {
    const RunTensor* tensor = &run->tensors[t];
    if (tensor->bytes == 0 || tensor->on_device != on_device) continue;
    if (!the_driver()->check_address(
            module->device, handle_of(tensor->data), on_device, tensor->spec->name))
      return 0;
  }
  return 1;
}

/* A run that was not seen yet, or that no recording is for, launches each kernel. */
static int run_anew(Run* run, const PlanRun* planned, int on_host) {
  return pruner_gpu_check_addresses(run->module, planned, 1) && find_places(run) &&
         run_each(run, planned->asked->seconds, on_host);
}

int pruner_gpu_enqueue(PrunerModule* module,
                       GpuSchedule* schedule,
                       const PlanRun* planned,
                       int captured) {
  GpuHandle places[pruner_num_tensors(planned->phase) + 1];
  Run run = {module, schedule, planned->tensors, planned->values, captured, places};
  const int on_host = pruner_gpu_all_lie(planned, 0);
  const int recordable = the_driver()->begin_recording != NULL && !captured &&
                         planned->asked->seconds == NULL &&
                         (on_host || pruner_gpu_all_lie(planned, 1));
  module->is_pinned = 0;
  if (!recordable) return run_anew(&run, planned, on_host);
  const int64_t count = make_key(planned, module->key, on_host);
  GpuRecording* entry = find_recording(module, schedule, module->key, count);
  const int seen = entry->key != NULL;
  if (seen) entry->last_used = ++module->num_runs;
  if (seen && entry->recording == 0 && !find_places(&run)) return 0;
  if (seen) return on_host ? replay_on_host(&run, entry) : replay_on_device(&run, entry);
  if (!run_anew(&run, planned, on_host)) return 0;
  const size_t bytes = (size_t)count * sizeof *entry->key;
  entry->key = malloc(bytes);
  if (entry->key == NULL) return pruner_fail("out of memory");
  memcpy(entry->key, module->key, bytes);
  entry->last_used = ++module->num_runs;
  return 1;
}

static int record_kernels(const Run* run) {
  const GpuDriver* driver = the_driver();
  GpuHandle* recording = &run->schedule->kernel_recording;
  if (*recording != 0) return 1;
  if (!driver->begin_recording(run->module->device)) return 0;
  *recording = end_recording(run, run_steps(run, 0));
  /* The first time it has to be brought to the device. */
  return *recording != 0 && driver->replay(run->module->device, *recording);
}

int pruner_gpu_time_kernels(PrunerModule* module, GpuSchedule* schedule, double* seconds) {
  const GpuDriver* driver = the_driver();
  const PrunerPhase* spec = &schedule->phase->spec;
  GpuHandle* staged = staging_of(module, schedule->phase)->places;
  const Run run = {.module = module, .schedule = schedule, .places = staged};
  for (int64_t i = 0; i < spec->num_inputs; i++)
    if (stage(&run, &spec->inputs[i], &staged[i]) == 0) return 0;
  for (int64_t o = 0; o < spec->num_outputs; o++)
    if (stage(&run, &spec->outputs[o], &staged[spec->num_inputs + o]) == 0) return 0;
  bind_arguments(&run);
  GpuDevice* device = module->device;
  return keep_states(module, 0) && record_kernels(&run) && driver->mark(device, 0) &&
         driver->replay(device, schedule->kernel_recording) && driver->mark(device, 1) &&
         keep_states(module, 1) && driver->wait(device) && driver->elapsed(device, 0, seconds);
}
