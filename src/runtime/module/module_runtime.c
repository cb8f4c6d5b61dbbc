/* include/pruner/module.h over the plan that a module carries. C11 and libc only, as all of the
 * executors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/module/executor.h"
#include "runtime/module/fail.h"
#include "runtime/module/gpu_driver.h"
#include "runtime/module/pipeline.h"
#include "runtime/module/plan.h"

double pruner_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int32_t pruner_module_abi(void) { return (int32_t)pruner_plan.abi; }
const char* pruner_module_error(void) { return pruner_failure(); }

/* The stages of a pipeline are one phase. */
int32_t pruner_module_num_phases(void) {
  return pruner_plan.pipeline != NULL ? 1 : (int32_t)pruner_plan.num_phases;
}

const PrunerPhase* pruner_module_phase(int32_t index) {
  if (index < 0 || index >= pruner_module_num_phases()) return NULL;
  return pruner_plan.pipeline != NULL ? &pruner_plan.pipeline->spec
                                      : &pruner_plan.phases[index].spec;
}

/* There is always one. */
static const PrunerPhase* first_phase(void) { return pruner_module_phase(0); }

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
  for (int64_t p = 0; p < pruner_plan.num_phases; p++) {
    const PlanPhase* phase = &pruner_plan.phases[p];
    for (int64_t i = 0; i < phase->num_shapes; i++) {
      const int64_t step = kernel - phase->shapes[i].first_kernel;
      if (step >= 0 && step < phase->shapes[i].num_steps) return &phase->shapes[i].steps[step];
    }
  }
  return NULL;
}

const PrunerKernelSpec* pruner_module_kernel(int32_t index) {
  const PlanStep* step = step_of(index);
  return step != NULL ? &step->spec : NULL;
}

const char* pruner_module_kernel_precision(int32_t index) {
  const PlanStep* step = step_of(index);
  return step != NULL ? step->precision : NULL;
}

const char* pruner_module_checked(void) { return pruner_plan.checked; }

const char* pruner_module_numerics(void) { return pruner_plan.numerics; }

/* Whether this module knows all that a struct of the caller's says. A program that is newer than
   the module has a longer struct, whose further members have to be 0. */
static int knows(const void* given, uint64_t size, uint64_t known, const char* name) {
  int is_known = size >= known;
  for (uint64_t byte = known; byte < size; byte++)
    is_known = is_known && ((const unsigned char*)given)[byte] == 0;
  if (is_known) return 1;
  if (size < known)
    return pruner_fail(
        "a %s of %llu bytes is too short, its sizeof is %llu: set the size, or compile "
        "the program again with this version's pruner/module.h",
        name,
        (unsigned long long)size,
        (unsigned long long)known);
  return pruner_fail(
      "a %s of %llu bytes asks for what this module, which knows %llu bytes, cannot "
      "do; compile the module again",
      name,
      (unsigned long long)size,
      (unsigned long long)known);
}

PrunerModule* pruner_module_create_with(const PrunerOptions* options) {
  if (!knows(options, options->size, sizeof *options, "PrunerOptions")) return NULL;
  if ((options->allocate == NULL) != (options->release == NULL)) {
    pruner_fail("a pool has both functions, allocate and release, or none");
    return NULL;
  }
  return pruner_plan.executor->create(options);
}

PrunerModule* pruner_module_create(int32_t threads) {
  const PrunerOptions options = {.size = sizeof options, .threads = threads};
  return pruner_module_create_with(&options);
}

void pruner_module_destroy(PrunerModule* module) {
  if (module != NULL) pruner_plan.executor->destroy(module);
}

int32_t pruner_module_threads(const PrunerModule* module) {
  return pruner_plan.executor->threads(module);
}

int32_t pruner_module_device_kind(void) {
  if (pruner_plan.driver == NULL) return PRUNER_CPU;
  return pruner_plan.driver->is_cuda ? PRUNER_CUDA : PRUNER_OPENCL;
}

int32_t pruner_module_device(const PrunerModule* module) {
  return pruner_plan.executor->device(module);
}

/* NULL: there is none, as has been said. */
static const PlanPhase* phase_of(int32_t phase) {
  if (phase >= 0 && phase < pruner_module_num_phases()) return &pruner_plan.phases[phase];
  pruner_fail("there is no phase %d; the module has %d", phase, pruner_module_num_phases());
  return NULL;
}

int32_t pruner_module_num_symbols(void) {
  return pruner_plan.pipeline != NULL ? 0 : (int32_t)pruner_plan.phases[0].num_symbols;
}

const PrunerSymbol* pruner_module_symbol(int32_t index) {
  return index >= 0 && index < pruner_module_num_symbols() ? &pruner_plan.phases[0].symbols[index]
                                                           : NULL;
}

/* "batch=3, seq=77"; text is cut where there is no more room. */
static const char* print_extents(const PlanPhase* phase,
                                 const int64_t* extents,
                                 char* text,
                                 size_t room) {
  size_t at = 0;
  text[0] = 0;
  for (int64_t s = 0; s < phase->num_symbols && at < room; s++) {
    const PrunerSymbol* symbol = &phase->symbols[s];
    const int more = snprintf(
        text + at, room - at, "%s%s=%lld", s == 0 ? "" : ", ", symbol->name, (long long)extents[s]);
    at += more > 0 ? (size_t)more : room;
  }
  return text;
}

/* NULL: the phase does not run at these extents, as has been said. */
static const PlanShapes* shapes_at(const PlanPhase* phase, const int64_t* extents) {
  for (int64_t s = 0; s < phase->num_symbols; s++) {
    const PrunerSymbol* symbol = &phase->symbols[s];
    if (extents[s] >= symbol->min && extents[s] <= symbol->max) continue;
    pruner_fail("%s is %lld; the module was compiled for %lld to %lld",
                symbol->name,
                (long long)extents[s],
                (long long)symbol->min,
                (long long)symbol->max);
    return NULL;
  }
  for (int64_t i = 0; i < phase->num_shapes; i++)
    if (pruner_in_box(phase->shapes[i].box, extents, phase->num_symbols)) return &phase->shapes[i];
  char asked[256], most[256];
  pruner_fail("the module has no plan for %s; it has one for %s%s",
              print_extents(phase, extents, asked, sizeof asked),
              print_extents(phase, phase->shapes[0].box + phase->num_symbols, most, sizeof most),
              phase->num_shapes > 1 ? ", among others" : " alone");
  return NULL;
}

/* `values`: of plan_number(), as many as the plan has. */
static void make_values(const PlanPhase* phase, const int64_t* extents, int64_t* values) {
  const size_t bytes = (size_t)phase->num_symbols * sizeof *values;
  memcpy(values, extents, bytes);
  void* args[] = {values + phase->num_symbols, values};
  if (phase->formulas != NULL) phase->formulas(args, NULL, NULL);
}

static int64_t num_dims(const PrunerTensorSpec* specs, int64_t count) {
  int64_t dims = 0;
  for (int64_t i = 0; i < count; i++) dims += specs[i].rank;
  return dims;
}

/* The dims of some tensors, whose plan_number()s begin at `dims`; NULL: they have one shape. */
static void write_dims(const PrunerTensorSpec* specs,
                       int64_t count,
                       const int64_t* dims,
                       const int64_t* values,
                       int64_t* to) {
  for (int64_t i = 0; i < count; i++)
    for (int32_t d = 0; d < specs[i].rank; d++)
      *to++ = dims == NULL ? specs[i].shape[d] : plan_number(values, *dims++);
}

/* The values of a phase at extents, to be freed; NULL: there is no memory, as has been said. */
static int64_t* new_values(const PlanPhase* phase, const int64_t* extents) {
  const int64_t count = phase->num_symbols + phase->num_formulas;
  int64_t* values = malloc((size_t)(count + 1) * sizeof *values);
  if (values == NULL) {
    pruner_fail("cannot have memory for %lld numbers", (long long)count);
    return NULL;
  }
  make_values(phase, extents, values);
  return values;
}

int32_t pruner_module_shapes(int32_t index,
                             const int64_t* extents,
                             int64_t* inputs,
                             int64_t* outputs) {
  const PlanPhase* phase = phase_of(index);
  const PlanShapes* shapes = phase == NULL ? NULL : shapes_at(phase, extents);
  int64_t* values = shapes == NULL ? NULL : new_values(phase, extents);
  if (values == NULL) return 1;
  const PrunerPhase* spec = &phase->spec;
  write_dims(spec->inputs, spec->num_inputs, phase->input_dims, values, inputs);
  write_dims(spec->outputs, spec->num_outputs, shapes->output_dims, values, outputs);
  free(values);
  return 0;
}

/* Whether the inputs have these dims where the phase has these values. */
static int fit(const PlanPhase* phase, const int64_t* inputs, const int64_t* values) {
  const PrunerTensorSpec* specs = phase->spec.inputs;
  const int64_t* dims = phase->input_dims;
  for (int64_t i = 0; i < phase->spec.num_inputs; i++) {
    for (int32_t d = 0; d < specs[i].rank; d++, inputs++) {
      const int64_t wanted = dims == NULL ? specs[i].shape[d] : plan_number(values, *dims++);
      char text[256];
      if (*inputs == wanted) continue;
      return pruner_fail("dim %d of \"%s\" is %lld, expected %lld where %s",
                         (int)d,
                         specs[i].name,
                         (long long)*inputs,
                         (long long)wanted,
                         print_extents(phase, values, text, sizeof text));
    }
  }
  return 1;
}

int32_t pruner_module_extents(int32_t index, const int64_t* inputs, int64_t* extents) {
  const PlanPhase* phase = phase_of(index);
  if (phase == NULL) return 1;
  const int64_t count = num_dims(phase->spec.inputs, phase->spec.num_inputs);
  for (int64_t s = 0; s < phase->num_symbols; s++) {
    int64_t d = 0; /* the first dim that is the symbol itself */
    while (d < count && phase->input_dims[d] != -1 - s) d++;
    extents[s] = d < count ? inputs[d] : phase->symbols[s].max;
  }
  int64_t* values = shapes_at(phase, extents) == NULL ? NULL : new_values(phase, extents);
  if (values == NULL) return 1;
  const int fits = fit(phase, inputs, values);
  free(values);
  return !fits;
}

int32_t pruner_module_kernels_at(int32_t index,
                                 const int64_t* extents,
                                 int64_t* first,
                                 int64_t* count) {
  const PlanPhase* phase = phase_of(index);
  const PlanShapes* shapes = phase == NULL ? NULL : shapes_at(phase, extents);
  if (shapes == NULL) return 1;
  *first = shapes->first_kernel;
  *count = shapes->num_steps;
  return 0;
}

/* The values of a phase at extents, mostly those of the run before; NULL: it has no symbols. */
static int64_t* values_at(PrunerModule* module, const PlanPhase* phase, const int64_t* extents) {
  if (phase->num_symbols == 0) return NULL;
  int64_t* values = pruner_plan.executor->values(module) + phase->first_value;
  const size_t bytes = (size_t)phase->num_symbols * sizeof *values;
  if (memcmp(values, extents, bytes) != 0) make_values(phase, extents, values);
  return values;
}

/* Returns the bytes of a dense tensor. `*dims` are plan_number()s of its dims, which the function
   goes past; NULL: the dims are those of the spec. */
static int64_t tensor_bytes(const PrunerTensorSpec* spec,
                            const int64_t** dims,
                            const int64_t* values) {
  if (*dims == NULL) return pruner_spec_bytes(spec);
  int64_t bytes = pruner_element_bytes(spec->dtype);
  for (int32_t d = 0; d < spec->rank; d++) bytes *= plan_number(values, *(*dims)++);
  return bytes;
}

/* Writes the inputs of a run to `tensors`, then the outputs. */
static void find_tensors(const PrunerPhase* spec,
                         const int64_t* input_dims,
                         const int64_t* output_dims,
                         const int64_t* values,
                         const PrunerRun* run,
                         RunTensor* tensors) {
  for (int64_t i = 0; i < spec->num_inputs; i++) {
    const int there = run->inputs_on_device != NULL && run->inputs_on_device[i];
    const int64_t bytes = tensor_bytes(&spec->inputs[i], &input_dims, values);
    *tensors++ = (RunTensor){&spec->inputs[i], (void*)run->inputs[i], bytes, there};
  }
  for (int64_t o = 0; o < spec->num_outputs; o++) {
    const int there = run->outputs_on_device != NULL && run->outputs_on_device[o];
    const int64_t bytes = tensor_bytes(&spec->outputs[o], &output_dims, values);
    *tensors++ = (RunTensor){&spec->outputs[o], run->outputs[o], bytes, there};
  }
}

static int overlap(const RunTensor* a, const RunTensor* b) {
  const uintptr_t at_a = (uintptr_t)a->data, at_b = (uintptr_t)b->data;
  return a->bytes > 0 && b->bytes > 0 && a->on_device == b->on_device &&
         at_a < at_b + (uintptr_t)b->bytes && at_b < at_a + (uintptr_t)a->bytes;
}

/* An output that overlaps another tensor would be wrong in silence. */
static int check_overlaps(const RunTensor* tensors, int64_t num_inputs, int64_t count) {
  for (int64_t o = num_inputs; o < count; o++) {
    for (int64_t t = 0; t < o; t++) {
      if (overlap(&tensors[o], &tensors[t]))
        return pruner_fail(
            "the output \"%s\" overlaps \"%s\" in memory: it needs memory of its own",
            tensors[o].spec->name,
            tensors[t].spec->name);
    }
  }
  return 1;
}

/* Whether the tensors of a run lie where this module can work on them. */
static int check_tensors(const RunTensor* tensors, const PrunerPhase* spec, int32_t flags) {
  const int64_t count = spec->num_inputs + spec->num_outputs;
  const int32_t kind = pruner_module_device_kind();
  const char* const kind_name = kind == PRUNER_CPU ? "CPUs" : "OpenCL";
  for (int64_t t = 0; t < count; t++)
    if (tensors[t].data == NULL && tensors[t].bytes > 0)
      return pruner_fail("the address of \"%s\" is NULL", tensors[t].spec->name);
  for (int64_t t = 0; t < count; t++)
    if (kind != PRUNER_CUDA && tensors[t].on_device)
      return pruner_fail(
          "\"%s\" is said to lie on a device; a module for %s takes tensors in the "
          "host's memory",
          tensors[t].spec->name,
          kind_name);
  if (kind != PRUNER_CUDA && (flags & PRUNER_RUN_STREAM))
    return pruner_fail("a run in a stream is for modules for CUDA; this one is for %s", kind_name);
  return check_overlaps(tensors, spec->num_inputs, count);
}

int32_t pruner_module_execute(PrunerModule* module, const PrunerRun* run) {
  const int32_t known = PRUNER_RUN_STREAM | PRUNER_RUN_WAIT;
  if (!knows(run, run->size, sizeof *run, "PrunerRun")) return 1;
  if (run->flags & ~known) return !pruner_fail("the flags %d of a run are not known", run->flags);
  const PlanPhase* phase = phase_of(run->phase);
  if (phase == NULL) return 1;
  const PrunerPhase* spec = pruner_module_phase(run->phase);
  RunTensor tensors[spec->num_inputs + spec->num_outputs + 1];
  if (pruner_plan.pipeline != NULL) {
    find_tensors(spec, NULL, NULL, NULL, run, tensors);
    if (!check_tensors(tensors, spec, run->flags)) return 1;
    return pruner_run_pipeline(module, run->inputs, run->outputs, run->seconds);
  }
  const int64_t* extents = run->extents;
  if (extents == NULL && phase->num_symbols > 0)
    extents = phase->shapes[0].box + phase->num_symbols; /* the greatest */
  const PlanShapes* shapes = shapes_at(phase, extents);
  if (shapes == NULL) return 1;
  const int64_t* values = values_at(module, phase, extents);
  find_tensors(spec, phase->input_dims, shapes->output_dims, values, run, tensors);
  if (!check_tensors(tensors, spec, run->flags)) return 1;
  const PlanRun planned = {phase, shapes, values, run, tensors};
  return pruner_plan.executor->run(module, &planned);
}

int32_t pruner_module_wait(PrunerModule* module) { return pruner_plan.executor->wait(module); }

int32_t pruner_module_run_shaped(PrunerModule* module,
                                 int32_t index,
                                 const int64_t* extents,
                                 const void* const* inputs,
                                 void* const* outputs,
                                 double* seconds) {
  const PrunerRun run = {.size = sizeof run,
                         .phase = index,
                         .extents = extents,
                         .inputs = inputs,
                         .outputs = outputs,
                         .seconds = seconds};
  return pruner_module_execute(module, &run);
}

int32_t pruner_run_stage(PrunerModule* module, int64_t stage, const PipelineStage* run) {
  const PlanPhase* phase = &pruner_plan.phases[stage];
  const PlanShapes* shapes = shapes_at(phase, run->extents);
  if (shapes == NULL) return 1;
  const int64_t* values = values_at(module, phase, run->extents);
  if (!fit(phase, run->input_dims, values)) return 1;
  double* seconds = run->seconds == NULL ? NULL : run->seconds + shapes->first_kernel;
  const PrunerPhase* spec = &phase->spec;
  write_dims(spec->outputs, spec->num_outputs, shapes->output_dims, values, run->output_dims);
  const PrunerRun asked = {.inputs = run->inputs, .outputs = run->outputs, .seconds = seconds};
  const PlanRun planned = {phase, shapes, values, &asked, NULL};
  return pruner_plan.executor->run(module, &planned);
}

/* At the greatest shape. */
int32_t pruner_module_run_phase(PrunerModule* module,
                                int32_t index,
                                const void* const* inputs,
                                void* const* outputs,
                                double* seconds) {
  return pruner_module_run_shaped(module, index, NULL, inputs, outputs, seconds);
}

int32_t pruner_module_output_dims(const PrunerModule* module, int64_t* dims) {
  if (pruner_plan.pipeline == NULL) return 1;
  pruner_pipeline_output_dims(module, dims);
  return 0;
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

int32_t pruner_module_time_kernels(PrunerModule* module, double* seconds) {
  if (pruner_plan.executor->time_kernels != NULL)
    return pruner_plan.executor->time_kernels(module, seconds);
  pruner_fail("this module runs on a CPU: a run has no copies");
  return 1;
}

int32_t pruner_module_num_states(void) { return (int32_t)pruner_plan.num_states; }

const PrunerTensorSpec* pruner_module_state(int32_t index) {
  return index >= 0 && index < pruner_plan.num_states ? &pruner_plan.states[index] : NULL;
}

/* NULL: there is no such state, as has been said. */
static const PlanState* place_of_state(int32_t index) {
  if (index >= 0 && index < pruner_plan.num_states) return &pruner_plan.state_places[index];
  pruner_fail("there is no state %d; the module has %d", index, (int)pruner_plan.num_states);
  return NULL;
}

int32_t pruner_module_read_state(const PrunerModule* module, int32_t index, void* to) {
  const PlanState* state = place_of_state(index);
  if (state == NULL) return 1;
  return pruner_plan.executor->read_arena(module, state->offset, to, state->bytes);
}

int32_t pruner_module_write_state(PrunerModule* module, int32_t index, const void* from) {
  const PlanState* state = place_of_state(index);
  if (state == NULL) return 1;
  return pruner_plan.executor->write_arena(module, state->offset, from, state->bytes);
}

int32_t pruner_module_reset(PrunerModule* module) {
  if (pruner_plan.state_bytes == 0) return 0;
  return pruner_plan.executor->write_arena(module, 0, NULL, pruner_plan.state_bytes);
}

const PrunerModuleApi* pruner_module_api(void) {
  static const PrunerModuleApi api = {
      sizeof api,
      pruner_module_abi,
      pruner_module_create,
      pruner_module_destroy,
      pruner_module_error,
      pruner_module_threads,
      pruner_module_num_phases,
      pruner_module_phase,
      pruner_module_run_phase,
      pruner_module_num_states,
      pruner_module_state,
      pruner_module_read_state,
      pruner_module_write_state,
      pruner_module_reset,
      pruner_module_num_kernels,
      pruner_module_kernel,
      pruner_module_kernel_precision,
      pruner_module_num_symbols,
      pruner_module_symbol,
      pruner_module_shapes,
      pruner_module_extents,
      pruner_module_run_shaped,
      pruner_module_kernels_at,
      pruner_module_checked,
      pruner_module_numerics,
      pruner_module_time_kernels,
      pruner_module_output_dims,
      pruner_module_create_with,
      pruner_module_device_kind,
      pruner_module_device,
      pruner_module_execute,
      pruner_module_wait,
  };
  return &api;
}
