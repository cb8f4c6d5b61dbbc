/* Functions that elimination routines share: rows of a square matrix, a column's largest pivot. */
#ifndef PRUNER_GRAPH_ROUTINES_ELIMINATION_H_
#define PRUNER_GRAPH_ROUTINES_ELIMINATION_H_

#include <stdint.h>

static inline double pruner_size_of(double x) { return x < 0 ? -x : x; }

/* The row at or below `at` whose element of that column is the largest. */
static inline int64_t pruner_pivot_row(const double* a, int64_t n, int64_t at) {
  int64_t best = at;
  for (int64_t row = at + 1; row < n; row++)
    if (pruner_size_of(a[row * n + at]) > pruner_size_of(a[best * n + at])) best = row;
  return best;
}

/* Exchanges the elements of two rows from column `first` on. */
static inline void pruner_exchange_rows(
    double* a, int64_t n, int64_t first, int64_t one, int64_t other) {
  for (int64_t i = first; i < n && one != other; i++) {
    const double kept = a[one * n + i];
    a[one * n + i] = a[other * n + i];
    a[other * n + i] = kept;
  }
}

#endif
