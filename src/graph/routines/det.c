/* Det, by elimination with the largest pivot of each column. */
#include "graph/routines/elements.h"
#include "graph/routines/elimination.h"

/* Returns the determinant of a matrix, which changes. */
static double determinant(double* a, int64_t n) {
  double product = 1;
  for (int64_t at = 0; at < n; at++) {
    const int64_t pivot = pruner_pivot_row(a, n, at);
    if (a[pivot * n + at] == 0) return 0;
    pruner_exchange_rows(a, n, at, at, pivot);
    product *= pivot == at ? a[at * n + at] : -a[at * n + at];
    for (int64_t row = at + 1; row < n; row++) {
      const double factor = a[row * n + at] / a[at * n + at];
      for (int64_t i = at + 1; i < n; i++) a[row * n + i] -= factor * a[at * n + i];
    }
  }
  return product;
}

void pruner_det(void* const* args, void* workspace, PrunerPool* pool) {
  (void)pool;
  const PrunerDet* p = args[1];
  const int64_t n = p->extent;
  double* a = workspace;
  for (int64_t matrix = 0; matrix < p->matrices; matrix++) {
    for (int64_t i = 0; i < n * n; i++)
      a[i] = pruner_get_real(args[0], p->dtype, matrix * n * n + i);
    pruner_set_real(args[2], p->dtype, matrix, determinant(a, n));
  }
}
