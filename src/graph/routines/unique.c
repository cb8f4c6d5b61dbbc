/* NonZero, Compress and Unique: what there is, in a result that has room for all there could be. */
#include <stdlib.h>
#include <string.h>

#include "graph/routines/elements.h"

void pruner_non_zero(void* const* args, void* workspace, PrunerPool* pool) {
  (void)workspace, (void)pool;
  const void* data = args[0];
  const PrunerNonZero* p = args[1];
  int64_t *out = args[2], found = 0;
  for (int64_t i = 0; i < p->elements && found < p->room; i++) {
    if (p->is_real ? pruner_get_real(data, p->dtype, i) == 0
                   : pruner_get_int(data, p->dtype, i) == 0)
      continue;
    for (int64_t d = p->rank, rest = i; d-- > 0; rest /= p->shape[d])
      out[d * p->room + found] = rest % p->shape[d];
    found++;
  }
  for (int64_t d = 0; d < p->rank; d++)
    for (int64_t i = found; i < p->room; i++) out[d * p->room + i] = -1;
}

void pruner_compress(void* const* args, void* workspace, PrunerPool* pool) {
  (void)workspace, (void)pool;
  const char *data = args[0], *condition = args[1];
  const PrunerCompress* p = args[2];
  const int64_t bytes = p->inner * pruner_element_bytes(p->dtype);
  char* out = args[3];
  memset(out, 0, (size_t)(p->outer * p->room * bytes));
  for (int64_t o = 0; o < p->outer; o++) {
    int64_t found = o * p->room;
    for (int64_t i = 0; i < p->length; i++)
      if (condition[i])
        memcpy(out + found++ * bytes, data + (o * p->extent + i) * bytes, (size_t)bytes);
  }
}

typedef struct {
  const PrunerUnique* p;
  const void* data;
} Slices;

static int64_t element_of(const PrunerUnique* p, int64_t slice, int64_t i) {
  return (i / p->inner * p->extent + slice) * p->inner + i % p->inner;
}

/* Returns a number below 0 if slice a stands first in ascending order, 0 if both are equal. */
static int compared(const Slices* s, int64_t a, int64_t b) {
  for (int64_t i = 0; i < s->p->outer * s->p->inner; i++) {
    const uint64_t x = pruner_order_key(s->data, s->p->dtype, element_of(s->p, a, i), 0);
    const uint64_t y = pruner_order_key(s->data, s->p->dtype, element_of(s->p, b, i), 0);
    if (x != y) return x > y ? -1 : 1;
  }
  return 0;
}

/* Orders slices by their values; the first of equal slices stands first. */
static int order(const void* a, const void* b, void* slices) {
  const int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  const int by_value = compared(slices, x, y);
  return by_value != 0 ? by_value : (x > y) - (x < y);
}

/* The distinct slices, each by its number in the result. */
typedef struct {
  int64_t count;
  int64_t *first, *times; /* first slice of each number, how often it occurs */
  int64_t* number;        /* number of each slice */
} Distinct;

static Distinct distinct_of(const Slices* s, int64_t* workspace) {
  const int64_t n = s->p->extent;
  int64_t *sorted = workspace, *renumbered = workspace + n;
  Distinct d = {0, workspace + 2 * n, workspace + 3 * n, workspace + 4 * n};
  for (int64_t i = 0; i < n; i++) sorted[i] = i;
  qsort_r(sorted, (size_t)n, sizeof *sorted, order, (void*)s);
  for (int64_t i = 0; i < n; i++) {
    if (i == 0 || compared(s, sorted[i - 1], sorted[i]) != 0) {
      d.first[d.count] = sorted[i];
      d.times[d.count++] = 0;
    }
    d.times[d.count - 1]++;
    d.number[sorted[i]] = d.count - 1;
  }
  if (s->p->sorted) return d;
  /* In the order in which they come first. */
  int64_t next = 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t group = d.number[i];
    if (d.first[group] == i) renumbered[group] = next++;
    d.number[i] = renumbered[group];
  }
  for (int64_t i = 0; i < d.count; i++) d.times[i] = 0;
  for (int64_t i = n; i-- > 0;) {
    d.first[d.number[i]] = i;
    d.times[d.number[i]]++;
  }
  return d;
}

void pruner_unique(void* const* args, void* workspace, PrunerPool* pool) {
  (void)pool;
  const PrunerUnique* p = args[1];
  const Slices slices = {p, args[0]};
  const Distinct d = distinct_of(&slices, workspace);
  int64_t* out = args[2];
  if (p->output == 2) {
    memcpy(out, d.number, (size_t)p->extent * sizeof *out);
    return;
  }
  if (p->output != 0) {
    const int64_t* from = p->output == 1 ? d.first : d.times;
    for (int64_t i = 0; i < p->room; i++) out[i] = i < d.count ? from[i] : p->output == 1 ? -1 : 0;
    return;
  }
  const int64_t bytes = pruner_element_bytes(p->dtype), size = p->inner * bytes;
  memset(out, 0, (size_t)(p->outer * p->room * size));
  for (int64_t i = 0; i < d.count && i < p->room; i++) {
    for (int64_t o = 0; o < p->outer; o++)
      memcpy((char*)out + (o * p->room + i) * size,
             (const char*)slices.data + (o * p->extent + d.first[i]) * size,
             (size_t)size);
  }
}
