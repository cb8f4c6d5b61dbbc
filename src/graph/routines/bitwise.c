/* BitwiseAnd, BitwiseOr, BitwiseXor and BitShift, with inputs that repeat. */
#include "graph/routines/elements.h"

typedef struct {
  const PrunerBitwise* p;
  const void *a, *b;
  void* out;
} Call;

static uint64_t result(int64_t bits, uint64_t a, uint64_t b) {
  switch (bits) {
    case kBitAnd: return a & b;
    case kBitOr: return a | b;
    case kBitXor: return a ^ b;
    case kShiftLeft: return b < 64 ? a << b : 0;
    case kShiftRightSigned: return (uint64_t)((int64_t)a >> (b < 64 ? b : 63));
    default: return b < 64 ? a >> b : 0;
  }
}

static void run(void* closure, int64_t begin, int64_t end) {
  const Call* call = closure;
  const PrunerBitwise* p = call->p;
  const int64_t *shape = p->shapes, *strides = shape + p->rank;
  for (int64_t i = begin; i < end; i++) {
    int64_t a = 0, b = 0, rest = i;
    for (int64_t d = p->rank; d-- > 0; rest /= shape[d]) {
      const int64_t at = rest % shape[d];
      a += at * strides[d];
      b += at * strides[p->rank + d];
    }
    const uint64_t made = result(p->bits,
                                 (uint64_t)pruner_get_int(call->a, p->dtype, a),
                                 (uint64_t)pruner_get_int(call->b, p->dtype, b));
    pruner_set_int(call->out, p->dtype, i, (int64_t)made);
  }
}

void pruner_bitwise(void* const* args, void* workspace, PrunerPool* pool) {
  (void)workspace;
  Call call = {args[2], args[0], args[1], args[3]};
  pool->parallel_for(pool, run, &call, call.p->elements);
}
