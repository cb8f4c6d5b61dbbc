/* Declarations that the code of all instruction sets shares: recurrence_step.h is compiled once for
   each set. */
#ifndef PRUNER_GRAPH_ROUTINES_RECURRENCE_H_
#define PRUNER_GRAPH_ROUTINES_RECURRENCE_H_

#include "graph/routines/routines.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A direction at one of its steps. States have a row of `padded` floats for each sequence. */
typedef struct {
  const PrunerRecurrence* p;
  int64_t direction, step, padded;
  const float *products, *weights, *bias, *peepholes; /* inputs of the direction, NULL if absent */
  float* h;                                           /* before the step, which only reads it */
  float *next, *c, *reset;                            /* after it; `reset`: a GRU's r * h */
  int phase; /* GRU without a bias of its own: 0 computes z and r, 1 the rest; else 0 */
} PrunerRecurrenceStep;

/* Blocks [begin, end) of the states of some sequences. */
typedef void (*PrunerRecurrenceUnits)(
    const PrunerRecurrenceStep* s, const int64_t* items, int64_t count, int64_t begin, int64_t end);

/* Returns the function for vectors of `lanes` floats (4, 8 or 16); NULL if this CPU has none. */
PrunerRecurrenceUnits pruner_recurrence_units(int lanes);

#ifdef __cplusplus
}
#endif

#endif /* PRUNER_GRAPH_ROUTINES_RECURRENCE_H_ */
