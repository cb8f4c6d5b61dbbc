/* UpdateState: rows of a state, from the place on that an index says; the others stay. */
#include <string.h>

#include "graph/routines/elements.h"

typedef struct {
  const PrunerUpdateState* p;
  const char* updates;
  const void* first;
  char* out;
} Update;

/* The rows of blocks [begin, end), of which each item of the batch has as many. */
static void update_blocks(void* closure, int64_t begin, int64_t end) {
  const Update* update = closure;
  const PrunerUpdateState* p = update->p;
  for (int64_t block = begin; block < end; block++) {
    const int64_t first = pruner_get_int(update->first, p->index_dtype, block / p->blocks);
    for (int64_t row = 0; row < p->rows; row++) {
      int64_t at = first + row;
      if (p->circular && at >= p->extent) at -= p->extent;
      memcpy(update->out + (block * p->extent + at) * p->row_bytes,
             update->updates + (block * p->rows + row) * p->row_bytes,
             (size_t)p->row_bytes);
    }
  }
}

void pruner_update_state(void* const* args, void* workspace, PrunerPool* pool) {
  enum { kWorthwhileBytes = 64 << 10 }; /* to be shared by threads */
  (void)workspace;
  const PrunerUpdateState* p = args[3];
  Update update = {p, args[1], args[2], args[4]};
  const int64_t blocks = p->batch * p->blocks;
  if (args[0] != args[4]) memcpy(args[4], args[0], (size_t)(blocks * p->extent * p->row_bytes));
  if (blocks * p->rows * p->row_bytes < kWorthwhileBytes) {
    update_blocks(&update, 0, blocks);
  } else {
    pool->parallel_for(pool, update_blocks, &update, blocks);
  }
}
