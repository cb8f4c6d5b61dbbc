/* Single elements of the types of pruner/dtype.h, for routines that are of any type. */
#ifndef PRUNER_GRAPH_ROUTINES_ELEMENTS_H_
#define PRUNER_GRAPH_ROUTINES_ELEMENTS_H_

#include <stddef.h>
#include <string.h>

#include "graph/routines/routines.h"
#include "pruner/dtype.h"

/* The double that has these bits. */
static inline double pruner_double_of(int64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
/* Bytes of an element. */
int64_t pruner_element_bytes(int64_t dtype);
/* Element i of a tensor of integers or bool, and of floats. */
int64_t pruner_get_int(const void* data, int64_t dtype, int64_t i);
double pruner_get_real(const void* data, int64_t dtype, int64_t i);
/* Writes element i of a tensor: an integer wraps around, a real number is rounded to the type. */
void pruner_set_int(void* data, int64_t dtype, int64_t i, int64_t value);
void pruner_set_real(void* data, int64_t dtype, int64_t i, double value);
/* A number that is the greater the earlier element i stands in descending or ascending order, and
   equal for equal ones. A NaN counts as greater than all numbers, as torch and NumPy sort it: it
   stands first in descending order and last in ascending order. */
#define PRUNER_KEY_OF_NAN UINT64_MAX /* in descending order */
uint64_t pruner_order_key(const void* data, int64_t dtype, int64_t i, int descending);
/* Element `at` of `to` and element `from` of `updates` become one. */
void pruner_update(
    void* to, int64_t at, const void* updates, int64_t from, int64_t dtype, int64_t update);

#endif /* PRUNER_GRAPH_ROUTINES_ELEMENTS_H_ */
