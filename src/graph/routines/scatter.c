/* ScatterElements and ScatterND: the data, with updates where the indices say. Updates of one
   element are made one after the other, in the order of the indices, by one thread. */
#include <string.h>

#include "graph/routines/elements.h"

typedef struct {
  const char* from;
  char* to;
  int64_t bytes;
} Copy;

enum {
  kCopied = 1 << 16, /* bytes that a thread copies at a time */
  kFew = 4096,       /* updates that are not worth a second thread */
  kShared = 256,     /* bytes of a slice, at least, that a thread updates */
};

static void copy_parts(void* closure, int64_t begin, int64_t end) {
  const Copy* copy = closure;
  const int64_t first = begin * kCopied;
  const int64_t last = end * kCopied < copy->bytes ? end * kCopied : copy->bytes;
  memcpy(copy->to + first, copy->from + first, (size_t)(last - first));
}

static void copy_all(const void* from, void* to, int64_t bytes, PrunerPool* pool) {
  Copy copy = {from, to, bytes};
  if (from != to) pool->parallel_for(pool, copy_parts, &copy, (bytes + kCopied - 1) / kCopied);
}

typedef struct {
  const PrunerScatterElements* p;
  const void *indices, *updates;
  void* out;
  int64_t shared;     /* the dimension of the indices of which each thread has a part */
  int64_t begin, end; /* the part */
} Scatter;

static int64_t index_at(const Scatter* s, int64_t i) {
  return s->p->index_dtype == PRUNER_INT64 ? ((const int64_t*)s->indices)[i]
                                           : pruner_get_int(s->indices, s->p->index_dtype, i);
}

/* A part of a row along the last dimension: `i` is the place of its first index and update, `at`
   that of the data at 0 along the axis, `stride` the elements from there to 1. */
static void scatter_row(const Scatter* s, int64_t i, int64_t at, int64_t stride, int64_t length) {
  const PrunerScatterElements* p = s->p;
  const int64_t extent = p->shapes[p->axis], step = p->axis != p->rank - 1;
  const int moves_words = p->update == kReplace && pruner_element_bytes(p->dtype) == 4;
  for (const int64_t end = i + length; i < end; i++, at += step) {
    int64_t index = index_at(s, i);
    if (index < 0) index += extent;
    if (moves_words) {
      memcpy((char*)s->out + (at + index * stride) * 4, (const char*)s->updates + i * 4, 4);
    } else {
      pruner_update(s->out, at + index * stride, s->updates, i, p->dtype, p->update);
    }
  }
}

/* The indices from place `i` on over dimension `d` and those behind it, which are `below` indices
   and `data_below` elements of the data. */
static void scatter_block(const Scatter* s,
                          int64_t d,
                          int64_t i,
                          int64_t at,
                          int64_t below,
                          int64_t data_below,
                          int64_t stride) {
  const PrunerScatterElements* p = s->p;
  const int64_t extent = p->shapes[p->rank + d];
  const int64_t begin = d == s->shared ? s->begin : 0, end = d == s->shared ? s->end : extent;
  if (d == p->rank - 1) {
    scatter_row(s, i + begin, at + (d == p->axis ? 0 : begin), stride, end - begin);
    return;
  }
  const int64_t next = below / extent, data_next = data_below / p->shapes[d];
  for (int64_t x = begin; x < end; x++)
    scatter_block(
        s, d + 1, i + x * next, at + (d == p->axis ? 0 : x * data_next), next, data_next, stride);
}

static void scatter_part(void* closure, int64_t begin, int64_t end) {
  Scatter s = *(const Scatter*)closure;
  const PrunerScatterElements* p = s.p;
  int64_t elements = 1, count = 1, stride = 1;
  for (int64_t d = 0; d < p->rank; d++) elements *= p->shapes[d], count *= p->shapes[p->rank + d];
  for (int64_t d = p->axis + 1; d < p->rank; d++) stride *= p->shapes[d];
  if (count == 0 || elements == 0) return;
  s.begin = begin;
  s.end = end;
  scatter_block(&s, 0, 0, 0, count, elements, stride);
}

void pruner_scatter_elements(void* const* args, void* workspace, PrunerPool* pool) {
  (void)workspace;
  const PrunerScatterElements* p = args[3];
  int64_t bytes = pruner_element_bytes(p->dtype);
  for (int64_t d = 0; d < p->rank; d++) bytes *= p->shapes[d];
  copy_all(args[0], args[4], bytes, pool);
  /* Indices meet in one element only where they are alike in all dimensions but the axis. */
  Scatter s = {p, args[1], args[2], args[4], p->axis, 0, 0};
  const int64_t* extents = p->shapes + p->rank;
  int64_t count = 1;
  for (int64_t d = 0; d < p->rank; d++) {
    count *= extents[d];
    if (d != p->axis && (s.shared == p->axis || extents[d] > extents[s.shared])) s.shared = d;
  }
  const int64_t parts = extents[s.shared];
  if (s.shared == p->axis || count < kFew) {
    scatter_part(&s, 0, parts);
  } else {
    pool->parallel_for(pool, scatter_part, &s, parts);
  }
}

typedef struct {
  const PrunerScatterNd* p;
  const int64_t* indices;
  const char* updates;
  char* out;
} ScatterNd;

/* Parts of all slices. */
static void scatter_slices(void* closure, int64_t begin, int64_t end) {
  const ScatterNd* s = closure;
  const PrunerScatterNd* p = s->p;
  const int64_t bytes = pruner_element_bytes(p->dtype), part = kShared / bytes;
  const int64_t first = begin * part, last = end * part < p->slice ? end * part : p->slice;
  for (int64_t row = 0; row < p->rows; row++) {
    int64_t at = 0;
    for (int64_t d = 0; d < p->depth; d++) {
      int64_t index = s->indices[row * p->depth + d];
      if (index < 0) index += p->dimensions[d];
      at = at * p->dimensions[d] + index;
    }
    const char* from = s->updates + row * p->slice * bytes;
    if (p->update == kReplace) {
      memcpy(s->out + (at * p->slice + first) * bytes,
             from + first * bytes,
             (size_t)((last - first) * bytes));
      continue;
    }
    for (int64_t i = first; i < last; i++)
      pruner_update(s->out, at * p->slice + i, from, i, p->dtype, p->update);
  }
}

void pruner_scatter_nd(void* const* args, void* workspace, PrunerPool* pool) {
  (void)workspace;
  const PrunerScatterNd* p = args[3];
  const int64_t bytes = pruner_element_bytes(p->dtype), part = kShared / bytes;
  copy_all(args[0], args[4], p->elements * bytes, pool);
  ScatterNd s = {p, args[1], args[2], args[4]};
  const int64_t parts = (p->slice + part - 1) / part;
  if (p->rows * p->slice < kFew) {
    scatter_slices(&s, 0, parts);
  } else {
    pool->parallel_for(pool, scatter_slices, &s, parts);
  }
}
