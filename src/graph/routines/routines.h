/* Operators that no compute DAG means, as functions that a module carries in its runtime and the
   compiler calls to fold constants: what sorts, scatters, or runs until the data say stop. Each is
   a PrunerKernel for one output of its operator. Its arguments are the operator's inputs that are
   there, then a tensor of int64 with what a compiled kernel has in its code (the struct that stands
   before each), then the output. C11 and libc alone. */
#ifndef PRUNER_GRAPH_ROUTINES_ROUTINES_H_
#define PRUNER_GRAPH_ROUTINES_ROUTINES_H_

#include "pruner/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is done where an update meets the element that is there. */
typedef enum { kReplace, kAdd, kMultiply, kLarger, kSmaller } PrunerUpdate;

/* ScatterElements: inputs data, indices, updates. */
typedef struct {
  int64_t dtype, index_dtype, update; /* PrunerDType, PrunerDType, PrunerUpdate */
  int64_t axis, rank;
  int64_t shapes[]; /* the data's, then the indices' */
} PrunerScatterElements;
void pruner_scatter_elements(void* const* args, void* workspace, PrunerPool* pool);

/* ScatterND: inputs data, indices, updates. */
typedef struct {
  int64_t dtype, update;
  int64_t elements;     /* of the data */
  int64_t rows, depth;  /* the indices: so many, of so many dimensions */
  int64_t slice;        /* elements that an index names */
  int64_t dimensions[]; /* the data's first `depth` extents */
} PrunerScatterNd;
void pruner_scatter_nd(void* const* args, void* workspace, PrunerPool* pool);

/* TopK: data, seen as outer x extent x inner. */
typedef struct {
  int64_t dtype, outer, extent, inner, k;
  int64_t largest, indices; /* truth values: the order; which output it is */
  int64_t parts;            /* that run at the same time, each with k PrunerRanked of workspace */
} PrunerTopK;
typedef struct {
  uint64_t key;
  int64_t index;
} PrunerRanked;
void pruner_top_k(void* const* args, void* workspace, PrunerPool* pool);

#ifdef __cplusplus
}
#endif

#endif /* PRUNER_GRAPH_ROUTINES_ROUTINES_H_ */
