/* LSTM, GRU and RNN as one loop over the steps, whose number the run says. The weights of a state's
   block stand one after the other, in the order in which a step reads them. */
#include "graph/routines/recurrence.h"

#include <string.h>

#include "graph/routines/elements.h"
#include "support/cpu_features.h"

#define UNROLL _Pragma("GCC unroll 16")

#define LANES 4
#define TILE 1
#define TARGET
#define NAMED(name) name##_any
#include "graph/routines/recurrence_step.h"

#if defined(__x86_64__)
#define LANES 8
#define TILE 1
#define TARGET __attribute__((target("avx2,fma")))
#define NAMED(name) name##_avx2
#include "graph/routines/recurrence_step.h"

#define LANES 16
#define TILE 4
#define TARGET __attribute__((target("avx512f,avx512dq,fma")))
#define NAMED(name) name##_avx512
#include "graph/routines/recurrence_step.h"
#endif

PrunerRecurrenceUnits pruner_recurrence_units(int lanes) {
#if defined(__x86_64__)
  int length = 0;
  if (lanes == 16)
    return pruner_missing_cpu_feature("avx512f avx512dq fma", &length) ? NULL : units_avx512;
  if (lanes == 8) return pruner_missing_cpu_feature("avx2 fma", &length) ? NULL : units_avx2;
#endif
  return lanes == 4 ? units_any : NULL;
}

static PrunerRecurrenceUnits units_of_this_cpu(void) {
  static _Atomic(PrunerRecurrenceUnits) known = NULL; /* asking takes microseconds */
  PrunerRecurrenceUnits units = known;
  for (int lanes = 16; units == NULL; lanes /= 2) units = pruner_recurrence_units(lanes);
  known = units;
  return units;
}

enum {
  kTile = 4,              /* sequences that a thread goes on with together */
  kFewProducts = 1 << 16, /* products of a step, too few to share out between threads */
  kNear = 1 << 20,        /* bytes of weights that each thread has near it */
};

typedef struct {
  const PrunerRecurrence* p;
  PrunerRecurrenceUnits units;
  const float *products, *weights, *first_h, *first_c, *bias, *peepholes;
  const void* lengths;
  float *out, *states; /* states of a direction: h, next h, c and r * h, batch rows each */
  int64_t blocks;
  PrunerRecurrenceStep step; /* step that threads share */
} Recurrence;

static int64_t length_of(const Recurrence* r, int64_t item) {
  if (r->lengths == NULL) return r->p->steps;
  return pruner_get_int(r->lengths, r->p->lengths_dtype, item);
}

/* The row of a sequence in the output, where `step` counts the last h and c, too. */
static float* output_row(const Recurrence* r, int64_t step, int64_t direction, int64_t item) {
  const PrunerRecurrence* p = r->p;
  return r->out + ((step * p->directions + direction) * p->batch + item) * p->hidden;
}

static PrunerRecurrenceStep begin(const Recurrence* r, int64_t direction) {
  const PrunerRecurrence* p = r->p;
  const int64_t padded = r->blocks * PRUNER_UNITS, state = p->batch * padded;
  float* states = r->states + direction * 4 * state;
  return (PrunerRecurrenceStep){
      .p = p,
      .direction = direction,
      .padded = padded,
      .weights = r->weights + direction * r->blocks * p->hidden * p->gates * PRUNER_UNITS,
      .bias = r->bias == NULL ? NULL : r->bias + direction * p->gates * p->hidden,
      .peepholes = r->peepholes == NULL ? NULL : r->peepholes + direction * 3 * p->hidden,
      .h = states,
      .next = states + state,
      .c = states + 2 * state,
      .reset = states + 3 * state};
}

/* The states of sequence `item` before the first step. */
static void begin_item(const Recurrence* r, const PrunerRecurrenceStep* s, int64_t item) {
  const PrunerRecurrence* p = r->p;
  const size_t bytes = (size_t)p->hidden * sizeof(float);
  const int64_t from = (s->direction * p->batch + item) * p->hidden, to = item * s->padded;
  memset(s->h + to, 0, (size_t)s->padded * sizeof(float));
  memset(s->c + to, 0, (size_t)s->padded * sizeof(float));
  if (r->first_h != NULL) memcpy(s->h + to, r->first_h + from, bytes);
  if (r->first_c != NULL) memcpy(s->c + to, r->first_c + from, bytes);
}

static void set_step(const Recurrence* r, PrunerRecurrenceStep* s, int64_t i) {
  const PrunerRecurrence* p = r->p;
  const int backwards = (p->backwards >> s->direction) & 1;
  s->step = backwards ? p->steps - 1 - i : i;
  s->products =
      r->products + (s->step * p->batch * p->directions + s->direction) * p->gates * p->hidden;
}

/* Writes the output of sequence `item` for a step that is done; an ended sequence keeps its h. */
static void end_step(const Recurrence* r, const PrunerRecurrenceStep* s, int64_t item) {
  const size_t bytes = (size_t)r->p->hidden * sizeof(float);
  float *row = output_row(r, s->step, s->direction, item), *next = s->next + item * s->padded;
  if (s->step >= length_of(r, item)) {
    memset(row, 0, bytes);
    memcpy(next, s->h + item * s->padded, bytes);
  } else {
    memcpy(row, next, bytes);
  }
}

static void swap_states(PrunerRecurrenceStep* s) {
  float* const before = s->h;
  s->h = s->next;
  s->next = before;
}

static void end_item(const Recurrence* r, const PrunerRecurrenceStep* s, int64_t item) {
  const PrunerRecurrence* p = r->p;
  const size_t bytes = (size_t)p->hidden * sizeof(float);
  memcpy(output_row(r, p->steps, s->direction, item), s->h + item * s->padded, bytes);
  if (p->gates == 4)
    memcpy(output_row(r, p->steps + 1, s->direction, item), s->c + item * s->padded, bytes);
}

static int phases_of(const Recurrence* r) { return r->p->gates == 3 && r->bias == NULL ? 2 : 1; }

/* Lists the sequences of [first, last) that are not over at a step; returns their number. */
static int64_t list_items(
    const Recurrence* r, int64_t step, int64_t first, int64_t last, int64_t* items) {
  int64_t count = 0;
  for (int64_t item = first; item < last; item++)
    if (step < length_of(r, item)) items[count++] = item;
  return count;
}

/* All steps of tiles of sequences, of which each direction has some. */
static void run_tiles(void* closure, int64_t first, int64_t last) {
  const Recurrence* r = closure;
  const PrunerRecurrence* p = r->p;
  const int64_t tiles = (p->batch + kTile - 1) / kTile;
  for (int64_t at = first; at < last; at++) {
    PrunerRecurrenceStep s = begin(r, at / tiles);
    const int64_t begin = at % tiles * kTile;
    const int64_t end = begin + kTile < p->batch ? begin + kTile : p->batch;
    for (int64_t item = begin; item < end; item++) begin_item(r, &s, item);
    for (int64_t i = 0; i < p->steps; i++, swap_states(&s)) {
      int64_t items[kTile];
      set_step(r, &s, i);
      const int64_t count = list_items(r, s.step, begin, end, items);
      for (s.phase = 0; s.phase < phases_of(r); s.phase++) r->units(&s, items, count, 0, r->blocks);
      for (int64_t item = begin; item < end; item++) end_step(r, &s, item);
    }
    for (int64_t item = begin; item < end; item++) end_item(r, &s, item);
  }
}

/* Some blocks of all sequences at the step that threads share. */
static void run_blocks(void* closure, int64_t first, int64_t last) {
  const Recurrence* r = closure;
  for (int64_t begin = 0; begin < r->p->batch; begin += kTile) {
    int64_t items[kTile];
    const int64_t end = begin + kTile < r->p->batch ? begin + kTile : r->p->batch;
    const int64_t count = list_items(r, r->step.step, begin, end, items);
    r->units(&r->step, items, count, first, last);
  }
}

/* A direction's steps, each by all threads. */
static void run_shared(Recurrence* r, int64_t direction, PrunerPool* pool) {
  const PrunerRecurrence* p = r->p;
  PrunerRecurrenceStep* s = &r->step;
  *s = begin(r, direction);
  for (int64_t item = 0; item < p->batch; item++) begin_item(r, s, item);
  for (int64_t i = 0; i < p->steps; i++, swap_states(s)) {
    set_step(r, s, i);
    for (s->phase = 0; s->phase < phases_of(r); s->phase++)
      pool->parallel_for(pool, run_blocks, r, r->blocks);
    for (int64_t item = 0; item < p->batch; item++) end_step(r, s, item);
  }
  for (int64_t item = 0; item < p->batch; item++) end_item(r, s, item);
}

void pruner_recurrence(void* const* args, void* workspace, PrunerPool* pool) {
  const PrunerRecurrence* p = args[7];
  Recurrence r = {.p = p,
                  .units = units_of_this_cpu(),
                  .products = args[0],
                  .weights = args[1],
                  .lengths = p->has & PRUNER_HAS_LENGTHS ? args[2] : NULL,
                  .first_h = p->has & PRUNER_HAS_H ? args[3] : NULL,
                  .first_c = p->has & PRUNER_HAS_C ? args[4] : NULL,
                  .bias = p->has & PRUNER_HAS_BIAS ? args[5] : NULL,
                  .peepholes = p->has & PRUNER_HAS_PEEPHOLES ? args[6] : NULL,
                  .out = args[8],
                  .states = workspace,
                  .blocks = (p->hidden + PRUNER_UNITS - 1) / PRUNER_UNITS};
  const int64_t tiles = p->directions * ((p->batch + kTile - 1) / kTile);
  const int64_t weights = p->gates * p->hidden * p->hidden; /* weights of a direction */
  const int has_few = weights * p->batch < kFewProducts;
  const int are_near = tiles >= pool->threads && weights * (int64_t)sizeof(float) <= kNear;
  if (has_few || are_near || pool->threads == 1) {
    pool->parallel_for(pool, run_tiles, &r, tiles);
  } else {
    for (int64_t direction = 0; direction < p->directions; direction++)
      run_shared(&r, direction, pool);
  }
}
