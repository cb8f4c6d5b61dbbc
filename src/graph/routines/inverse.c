/* Inverse, by elimination with the largest pivot of each column. */
#include "graph/routines/elements.h"
#include "graph/routines/elimination.h"

/* Row `to` of n elements less `factor` times row `from`. */
static void subtract_row(double* a, int64_t n, int64_t to, int64_t from, double factor) {
  for (int64_t i = 0; i < n; i++) a[to * n + i] -= factor * a[from * n + i];
}

/* Makes an identity of `a`, and the inverse of what `a` was of the identity `made`. A matrix
   without an inverse divides by 0, so that `made` holds infinities or NaN. */
static void invert(double* a, double* made, int64_t n) {
  for (int64_t at = 0; at < n; at++) {
    const int64_t pivot = pruner_pivot_row(a, n, at);
    pruner_exchange_rows(a, n, 0, at, pivot);
    pruner_exchange_rows(made, n, 0, at, pivot);
    const double diagonal = a[at * n + at];
    for (int64_t i = 0; i < n; i++) {
      a[at * n + i] /= diagonal;
      made[at * n + i] /= diagonal;
    }
    for (int64_t row = 0; row < n; row++) {
      const double factor = a[row * n + at];
      if (row == at || factor == 0) continue;
      subtract_row(a, n, row, at, factor);
      subtract_row(made, n, row, at, factor);
    }
  }
}

void pruner_inverse(void* const* args, void* workspace, PrunerPool* pool) {
  (void)pool;
  const PrunerInverse* p = args[1];
  const int64_t n = p->extent, elements = n * n;
  double *a = workspace, *made = a + elements;
  for (int64_t matrix = 0; matrix < p->matrices; matrix++) {
    for (int64_t i = 0; i < elements; i++) {
      a[i] = pruner_get_real(args[0], p->dtype, matrix * elements + i);
      made[i] = i / n == i % n;
    }
    invert(a, made, n);
    for (int64_t i = 0; i < elements; i++)
      pruner_set_real(args[2], p->dtype, matrix * elements + i, made[i]);
  }
}
