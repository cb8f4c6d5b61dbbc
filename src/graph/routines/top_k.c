/* TopK by a heap of the k best of a row, the worst of them on top. Of equal elements the first is
   the better one. */
#include <string.h>

#include "graph/routines/elements.h"

/* Whether a stands before b in the result. */
static int is_better(PrunerRanked a, PrunerRanked b) {
  return a.key != b.key ? a.key > b.key : a.index < b.index;
}

/* Lets the element at the top of a heap of n sink to its place. */
static void sink(PrunerRanked* heap, int64_t n) {
  const PrunerRanked moved = heap[0];
  int64_t at = 0;
  for (int64_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && is_better(heap[child], heap[child + 1])) child++;
    if (!is_better(moved, heap[child])) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}

static void rise(PrunerRanked* heap, int64_t at) {
  const PrunerRanked moved = heap[at];
  for (int64_t parent; at > 0 && is_better(heap[parent = (at - 1) / 2], moved); at = parent)
    heap[at] = heap[parent];
  heap[at] = moved;
}

typedef struct {
  const PrunerTopK* p;
  const char* data;
  char* out;
  PrunerRanked* heaps;
} Call;

static void run_row(const Call* call, PrunerRanked* heap, int64_t row) {
  const PrunerTopK* p = call->p;
  const int64_t outer = row / p->inner, inner = row % p->inner;
  const int64_t first = outer * p->extent * p->inner + inner;
  for (int64_t i = 0; i < p->extent; i++) {
    const int descending = p->largest != 0;
    const uint64_t key = pruner_order_key(call->data, p->dtype, first + i * p->inner, descending);
    const PrunerRanked found = {key, i};
    if (i < p->k) {
      heap[i] = found;
      rise(heap, i);
    } else if (is_better(found, heap[0])) {
      heap[0] = found;
      sink(heap, p->k);
    }
  }
  const int64_t bytes = pruner_element_bytes(p->dtype);
  for (int64_t n = p->k; n-- > 0;) { /* the worst leaves first */
    const int64_t index = heap[0].index, to = (outer * p->k + n) * p->inner + inner;
    heap[0] = heap[n];
    sink(heap, n);
    if (p->indices) {
      ((int64_t*)call->out)[to] = index;
    } else {
      memcpy(
          call->out + to * bytes, call->data + (first + index * p->inner) * bytes, (size_t)bytes);
    }
  }
}

static void run_parts(void* closure, int64_t begin, int64_t end) {
  const Call* call = closure;
  const int64_t rows = call->p->outer * call->p->inner, parts = call->p->parts;
  for (int64_t part = begin; part < end; part++) {
    for (int64_t row = rows * part / parts; row < rows * (part + 1) / parts; row++)
      run_row(call, call->heaps + part * call->p->k, row);
  }
}

void pruner_top_k(void* const* args, void* workspace, PrunerPool* pool) {
  Call call = {args[1], args[0], args[2], workspace};
  if (call.p->k > 0) pool->parallel_for(pool, run_parts, &call, call.p->parts);
}
