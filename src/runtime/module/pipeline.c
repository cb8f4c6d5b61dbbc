#include "runtime/module/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/module/executor.h"
#include "runtime/module/fail.h"

/* One run. The dims of tensors and the extents of symbols are among the instance's values. */
typedef struct {
  PrunerModule* module;
  int64_t* values;
  const void* const* inputs; /* the caller's */
} PipelineRun;

static const PlanTensor* tensor_of(int64_t tensor) {
  return &pruner_plan.pipeline->tensors[tensor];
}

static int64_t* dims_of(const PipelineRun* run, int64_t tensor) {
  return run->values + tensor_of(tensor)->first_dim;
}

static unsigned char* bytes_of(const PipelineRun* run, int64_t tensor) {
  const PlanTensor* at = tensor_of(tensor);
  if (at->input >= 0) return (unsigned char*)run->inputs[at->input];
  return pruner_plan.executor->arena(run->module) + at->offset;
}

/* The product of some of a tensor's dims. */
static int64_t product(const int64_t* dims, int64_t from, int64_t to) {
  int64_t count = 1;
  for (int64_t d = from; d < to; d++) count *= dims[d];
  return count;
}

/* Bytes of a step along an axis; -1: of the whole tensor. */
static size_t step_bytes(const PipelineRun* run, int64_t tensor, int64_t axis) {
  const PlanTensor* of = tensor_of(tensor);
  return (size_t)(product(dims_of(run, tensor), axis + 1, of->spec.rank) * of->element_bytes);
}

/* Sets the extent of a symbol. The first tensor that has it says what it is, and the others have to
   agree. */
static int set_extent(const PipelineRun* run, int64_t symbol, int64_t tensor, int64_t extent) {
  const int64_t known = run->values[symbol];
  run->values[symbol] = extent;
  if (known < 0 || known == extent) return 1;
  return pruner_fail("\"%s\" has %lld elements where others have %lld",
                     tensor_of(tensor)->spec.name,
                     (long long)extent,
                     (long long)known);
}

/* Rows move towards the first one, so that what is used lies together. */
static int use_found(const PipelineRun* run, const PlanFound* found) {
  int64_t count = 0;
  memcpy(&count, bytes_of(run, found->count), sizeof count);
  int64_t* part = dims_of(run, found->part);
  if (found->room < 0) {
    const PlanTensor* extent = tensor_of(found->part);
    if (count < found->least || count > extent->spec.shape[0])
      return pruner_fail("\"%s\" is %lld, and has to be from %lld to %lld",
                         tensor_of(found->count)->spec.name,
                         (long long)count,
                         (long long)found->least,
                         (long long)extent->spec.shape[0]);
    part[0] = count;
    return set_extent(run, found->symbol, found->part, count);
  }
  const int64_t* room = dims_of(run, found->room);
  if (count < 0 || count > room[found->axis])
    return pruner_fail("\"%s\" has %lld elements along axis %lld, of which %lld are found",
                       tensor_of(found->room)->spec.name,
                       (long long)room[found->axis],
                       (long long)found->axis,
                       (long long)count);
  memcpy(part, room, (size_t)tensor_of(found->part)->spec.rank * sizeof *part);
  part[found->axis] = count;
  if (!set_extent(run, found->symbol, found->part, count)) return 0;
  const size_t step = step_bytes(run, found->room, found->axis);
  const size_t from = (size_t)room[found->axis] * step, to = (size_t)count * step;
  unsigned char* bytes = bytes_of(run, found->room);
  for (int64_t row = 1; row < product(room, 0, found->axis); row++)
    memmove(bytes + (size_t)row * to, bytes + (size_t)row * from, to);
  return 1;
}

static int join(const PipelineRun* run, const PlanJoin* join) {
  int64_t* whole = dims_of(run, join->whole);
  const int64_t rank = tensor_of(join->whole)->spec.rank;
  memcpy(whole, dims_of(run, join->parts[0]), (size_t)rank * sizeof *whole);
  whole[join->axis] = 0;
  for (int64_t p = 0; p < join->num_parts; p++)
    whole[join->axis] += dims_of(run, join->parts[p])[join->axis];
  if (!set_extent(run, join->symbol, join->whole, whole[join->axis])) return 0;
  const size_t step = step_bytes(run, join->whole, join->axis);
  unsigned char* to = bytes_of(run, join->whole);
  for (int64_t row = 0; row < product(whole, 0, join->axis); row++) {
    for (int64_t p = 0; p < join->num_parts; p++) {
      const size_t bytes = (size_t)dims_of(run, join->parts[p])[join->axis] * step;
      memcpy(to, bytes_of(run, join->parts[p]) + (size_t)row * bytes, bytes);
      to += bytes;
    }
  }
  return 1;
}

static int use_parts(const PipelineRun* run, const PlanParts* parts) {
  for (int64_t f = 0; f < parts->num_found; f++)
    if (!use_found(run, &parts->found[f])) return 0;
  for (int64_t j = 0; j < parts->num_joins; j++)
    if (!join(run, &parts->joins[j])) return 0;
  return 1;
}

/* Copies the dims of a tensor, which are among an instance's values; returns the place behind. */
static int64_t* read_dims(const int64_t* values, int64_t tensor, int64_t* to) {
  const PlanTensor* at = tensor_of(tensor);
  for (int32_t d = 0; d < at->spec.rank; d++) *to++ = values[at->first_dim + d];
  return to;
}

/* `room`: pointers and numbers for the stage with the most of them. */
static int32_t run_stage(const PipelineRun* run, int64_t s, void** room, double* seconds) {
  const PlanStage* stage = &pruner_plan.pipeline->stages[s];
  const PlanPhase* phase = &pruner_plan.phases[s];
  const PrunerPhase* spec = &phase->spec;
  void **inputs = room, **outputs = inputs + spec->num_inputs;
  int64_t* extents = (int64_t*)(outputs + spec->num_outputs);
  int64_t* input_dims = extents + phase->num_symbols;
  int64_t* output_dims = input_dims;
  for (int64_t i = 0; i < spec->num_inputs; i++) {
    inputs[i] = bytes_of(run, stage->inputs[i]);
    output_dims = read_dims(run->values, stage->inputs[i], output_dims);
  }
  for (int64_t o = 0; o < spec->num_outputs; o++) outputs[o] = bytes_of(run, stage->outputs[o]);
  for (int64_t i = 0; i < phase->num_symbols; i++) extents[i] = run->values[stage->symbols[i]];
  const PipelineStage one = {
      extents, (const void* const*)inputs, input_dims, outputs, output_dims, seconds};
  if (pruner_run_stage(run->module, s, &one) != 0) return 1;
  for (int64_t o = 0; o < spec->num_outputs; o++) {
    const int64_t rank = spec->outputs[o].rank;
    memcpy(dims_of(run, stage->outputs[o]), output_dims, (size_t)rank * sizeof *output_dims);
    output_dims += rank;
  }
  return !use_parts(run, &stage->then);
}

/* The one element of a tensor of int64, or of bool; `otherwise` where there is no tensor. */
static int64_t number_of(const PipelineRun* run, int64_t tensor, int64_t otherwise) {
  if (tensor < 0) return otherwise;
  int64_t number = 0;
  memcpy(&number, bytes_of(run, tensor), (size_t)tensor_of(tensor)->element_bytes);
  return number;
}

static void set_number(const PipelineRun* run, int64_t tensor, int64_t number) {
  if (tensor < 0) return;
  memcpy(bytes_of(run, tensor), &number, sizeof number);
  if (tensor_of(tensor)->spec.rank == 1) dims_of(run, tensor)[0] = 1;
}

/* The tensor `to` becomes what `from` is. */
static void copy_tensor(const PipelineRun* run, int64_t from, int64_t to) {
  memcpy(dims_of(run, to), dims_of(run, from), (size_t)tensor_of(to)->spec.rank * sizeof(int64_t));
  memmove(bytes_of(run, to), bytes_of(run, from), step_bytes(run, from, -1));
}

static void begin_stack(const PipelineRun* run, const PlanLoopStack* stack) {
  const PlanTensor* whole = tensor_of(stack->whole);
  int64_t* dims = dims_of(run, stack->whole);
  memcpy(dims, whole->spec.shape, (size_t)whole->spec.rank * sizeof *dims);
  dims[0] = 0;
  if (stack->init >= 0) copy_tensor(run, stack->init, stack->whole);
}

static int is_appended(const PlanLoopStack* stack) {
  return tensor_of(stack->part)->spec.rank == tensor_of(stack->whole)->spec.rank;
}
/* Returns how many steps along the first axis of the whole a round makes. */
static int64_t steps_of(const PlanLoopStack* stack) {
  return is_appended(stack) ? tensor_of(stack->part)->spec.shape[0] : 1;
}

/* Appends what a round made: a step along the first axis of the whole, or several steps. */
static int append(const PipelineRun* run, const PlanLoopStack* stack) {
  const PlanTensor *part = tensor_of(stack->part), *whole = tensor_of(stack->whole);
  const int64_t more = is_appended(stack);
  const int64_t* from = dims_of(run, stack->part);
  int64_t* dims = dims_of(run, stack->whole);
  const int64_t steps = steps_of(stack);
  for (int64_t d = 1; d < whole->spec.rank; d++) {
    if (from[d - 1 + more] == dims[d]) continue;
    return pruner_fail("a round made \"%s\" of %lld elements along axis %lld, and has to make %lld",
                       part->spec.name,
                       (long long)from[d - 1 + more],
                       (long long)(d - 1 + more),
                       (long long)dims[d]);
  }
  if ((more && from[0] != steps) || dims[0] + steps > whole->spec.shape[0])
    return pruner_fail(
        "\"%s\" has room for %lld elements along axis 0, and the rounds did not make it",
        whole->spec.name,
        (long long)whole->spec.shape[0]);
  unsigned char* to =
      bytes_of(run, stack->whole) + (size_t)dims[0] * step_bytes(run, stack->whole, 0);
  memcpy(to, bytes_of(run, stack->part), step_bytes(run, stack->part, -1));
  dims[0] += steps;
  return 1;
}

/* The states become what the round hands on. That may be other states, so that all of it is copied
   before any of them changes. */
static int hand_on(const PipelineRun* run, const PlanLoop* loop) {
  size_t bytes = 1;
  for (int64_t i = 0; i < loop->num_carried; i++) {
    const PlanCarried* carried = &loop->carried[i];
    if (memcmp(dims_of(run, carried->next),
               dims_of(run, carried->state),
               (size_t)tensor_of(carried->state)->spec.rank * sizeof(int64_t)) != 0)
      return pruner_fail("\"%s\" has another shape after a round",
                         tensor_of(carried->state)->spec.name);
    bytes += step_bytes(run, carried->next, -1);
  }
  unsigned char* all = malloc(bytes);
  if (all == NULL) return pruner_fail("cannot have %lld bytes of memory", (long long)bytes);
  for (int back = 0; back < 2; back++) {
    unsigned char* at = all;
    for (int64_t i = 0; i < loop->num_carried; i++) {
      const PlanCarried* carried = &loop->carried[i];
      const size_t own = step_bytes(run, carried->state, -1);
      memcpy(
          back ? bytes_of(run, carried->state) : at, back ? at : bytes_of(run, carried->next), own);
      at += own;
    }
  }
  free(all);
  return 1;
}

/* One round; `round_seconds`: as `seconds`, of this round. */
static int32_t run_round(const PipelineRun* run,
                         const PlanLoop* loop,
                         void** room,
                         double* seconds,
                         double* round_seconds) {
  const size_t kernels = (size_t)pruner_plan.num_kernels;
  for (int64_t i = 0; i < loop->num_symbols; i++) run->values[loop->symbols[i]] = -1;
  if (!use_parts(run, &loop->begin)) return 1;
  if (seconds != NULL) memset(round_seconds, 0, kernels * sizeof *seconds);
  for (int64_t s = loop->first; s <= loop->last; s++)
    if (run_stage(run, s, room, seconds == NULL ? NULL : round_seconds) != 0) return 1;
  for (size_t k = 0; seconds != NULL && k < kernels; k++) seconds[k] += round_seconds[k];
  for (int64_t i = 0; i < loop->num_stacks; i++)
    if (!append(run, &loop->stacks[i])) return 1;
  return 0;
}

static int32_t run_rounds(const PipelineRun* run,
                          const PlanLoop* loop,
                          void** room,
                          double* seconds,
                          double* round_seconds) {
  const int64_t trips = number_of(run, loop->trips, INT64_MAX);
  int64_t goes_on = number_of(run, loop->condition, 1), round = 0;
  for (int64_t i = 0; i < loop->num_carried; i++)
    copy_tensor(run, loop->carried[i].init, loop->carried[i].state);
  for (int64_t i = 0; i < loop->num_stacks; i++) begin_stack(run, &loop->stacks[i]);
  for (; round < trips && goes_on; round++) {
    set_number(run, loop->round, round);
    if (run_round(run, loop, room, seconds, round_seconds) != 0) return 1;
    goes_on = number_of(run, loop->next, 1);
    if (loop->num_carried > 0 && !hand_on(run, loop)) return 1;
  }
  set_number(run, loop->rounds, round);
  /* If rounds are counted, the whole has its full length, also if the condition ended the rounds
     early: `then` makes the part that was written a tensor of its own. */
  for (int64_t i = 0; i < loop->num_stacks && loop->rounds >= 0; i++)
    dims_of(run, loop->stacks[i].whole)[0] += (trips - round) * steps_of(&loop->stacks[i]);
  for (int64_t i = 0; i < loop->num_carried; i++)
    copy_tensor(run, loop->carried[i].state, loop->carried[i].last);
  return !use_parts(run, &loop->then);
}

static int32_t run_loop(const PipelineRun* run,
                        const PlanLoop* loop,
                        void** room,
                        double* seconds) {
  if (seconds == NULL) return run_rounds(run, loop, room, NULL, NULL);
  double* round_seconds = malloc((size_t)pruner_plan.num_kernels * sizeof *seconds);
  if (round_seconds == NULL) return !pruner_fail("cannot have memory for the times of kernels");
  const int32_t failed = run_rounds(run, loop, room, seconds, round_seconds);
  free(round_seconds);
  return failed;
}

/* All stages, one after the other. */
static int32_t run_stages(const PipelineRun* run, void** room, double* seconds) {
  const PlanPipeline* pipeline = pruner_plan.pipeline;
  const PlanLoop *loop = pipeline->loops, *end = loop + pipeline->num_loops;
  for (int64_t s = 0; s < pruner_plan.num_phases; s++) {
    const int begins = loop != end && loop->first == s;
    if ((begins ? run_loop(run, loop, room, seconds) : run_stage(run, s, room, seconds)) != 0)
      return 1;
    if (begins) s = (loop++)->last;
  }
  return 0;
}

/* Words that run_stage() needs room for. */
static size_t words_of(const PlanPhase* phase) {
  int64_t words = phase->spec.num_inputs + phase->spec.num_outputs + phase->num_symbols;
  for (int64_t i = 0; i < phase->spec.num_inputs; i++) words += phase->spec.inputs[i].rank;
  for (int64_t o = 0; o < phase->spec.num_outputs; o++) words += phase->spec.outputs[o].rank;
  return (size_t)words;
}

int32_t pruner_run_pipeline(PrunerModule* module,
                            const void* const* inputs,
                            void* const* outputs,
                            double* seconds) {
  const PlanPipeline* pipeline = pruner_plan.pipeline;
  const PipelineRun run = {module, pruner_plan.executor->values(module), inputs};
  size_t words = 1;
  for (int64_t s = 0; s < pruner_plan.num_phases; s++) {
    const size_t own = words_of(&pruner_plan.phases[s]);
    if (own > words) words = own;
  }
  if (seconds != NULL) memset(seconds, 0, (size_t)pruner_plan.num_kernels * sizeof *seconds);
  void** room = malloc(words * sizeof *room);
  if (room == NULL) return !pruner_fail("cannot have memory for %lld numbers", (long long)words);
  for (int64_t s = 0; s < pipeline->num_symbols; s++) run.values[pipeline->first_symbol + s] = -1;
  for (int64_t t = 0; t < pipeline->num_tensors; t++) {
    const PlanTensor* tensor = &pipeline->tensors[t];
    if (tensor->input >= 0)
      memcpy(dims_of(&run, t),
             tensor->spec.shape,
             (size_t)tensor->spec.rank * sizeof *tensor->spec.shape);
  }
  int32_t failed = run_stages(&run, room, seconds);
  free(room);
  for (int64_t o = 0; o < pipeline->spec.num_outputs && !failed; o++) {
    const int64_t tensor = pipeline->outputs[o];
    memcpy(outputs[o], bytes_of(&run, tensor), step_bytes(&run, tensor, -1));
  }
  return failed;
}

void pruner_pipeline_output_dims(const PrunerModule* module, int64_t* dims) {
  const PlanPipeline* pipeline = pruner_plan.pipeline;
  const int64_t* values = pruner_plan.executor->values(module);
  for (int64_t o = 0; o < pipeline->spec.num_outputs; o++)
    dims = read_dims(values, pipeline->outputs[o], dims);
}
