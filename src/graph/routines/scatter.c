/* ScatterElements and ScatterND: the data, with updates where the indices say, one after the other
   in the order of the indices. */
#include <string.h>

#include "graph/routines/elements.h"

void pruner_scatter_elements(void* const* args, void* workspace, PrunerPool* pool) {
  (void)workspace, (void)pool;
  const void *data = args[0], *indices = args[1], *updates = args[2];
  const PrunerScatterElements* p = args[3];
  void* out = args[4];
  const int64_t *shape = p->shapes, *extents = p->shapes + p->rank;
  int64_t elements = 1, count = 1, stride = 1;
  for (int64_t d = 0; d < p->rank; d++) elements *= shape[d], count *= extents[d];
  for (int64_t d = p->axis + 1; d < p->rank; d++) stride *= shape[d];
  memcpy(out, data, (size_t)(elements * pruner_element_bytes(p->dtype)));
  const int64_t last = p->rank - 1, row = p->rank > 0 ? extents[last] : 1;
  for (int64_t first = 0; first < count; first += row) {
    /* Where the row of indices that begins with this one lies in the data, 0 along the axis. */
    int64_t base = 0, size = p->rank > 0 ? shape[last] : 1, rest = first / row;
    for (int64_t d = last; d-- > 0;) {
      if (d != p->axis) base += rest % extents[d] * size;
      rest /= extents[d];
      size *= shape[d];
    }
    for (int64_t i = first; i < first + row; i++) {
      int64_t index = pruner_get_int(indices, p->index_dtype, i);
      if (index < 0) index += shape[p->axis];
      if (index < 0 || index >= shape[p->axis]) continue; /* of no element */
      const int64_t at = base + (p->axis != last ? i - first : 0);
      pruner_update(out, at + index * stride, updates, i, p->dtype, p->update);
    }
  }
}

void pruner_scatter_nd(void* const* args, void* workspace, PrunerPool* pool) {
  (void)workspace, (void)pool;
  const int64_t* indices = args[1];
  const char* updates = args[2];
  const PrunerScatterNd* p = args[3];
  char* out = args[4];
  const int64_t bytes = pruner_element_bytes(p->dtype);
  memcpy(out, args[0], (size_t)(p->elements * bytes));
  for (int64_t row = 0; row < p->rows; row++) {
    int64_t at = 0, inside = 1;
    for (int64_t d = 0; d < p->depth; d++) {
      int64_t index = indices[row * p->depth + d];
      if (index < 0) index += p->dimensions[d];
      inside &= index >= 0 && index < p->dimensions[d];
      at = at * p->dimensions[d] + index;
    }
    if (!inside) continue;
    const char* from = updates + row * p->slice * bytes;
    if (p->update == kReplace) {
      memcpy(out + at * p->slice * bytes, from, (size_t)(p->slice * bytes));
      continue;
    }
    for (int64_t i = 0; i < p->slice; i++)
      pruner_update(out, at * p->slice + i, from, i, p->dtype, p->update);
  }
}
