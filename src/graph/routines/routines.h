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

/* The operation that combines an update with the element that is there. */
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
  int64_t elements;     /* elements of the data */
  int64_t rows, depth;  /* number of indices, dimensions of each */
  int64_t slice;        /* elements that an index names */
  int64_t dimensions[]; /* the data's first `depth` extents */
} PrunerScatterNd;
void pruner_scatter_nd(void* const* args, void* workspace, PrunerPool* pool);

/* UpdateState: a state, seen as batch x blocks x extent rows; updates, batch x blocks x rows; of
   each item of the batch the place of its first new row. The output may be the state. */
typedef struct {
  int64_t index_dtype; /* PrunerDType */
  int64_t batch, blocks, extent, rows, row_bytes;
  int64_t circular; /* a truth value: rows behind the end begin again at 0 */
} PrunerUpdateState;
void pruner_update_state(void* const* args, void* workspace, PrunerPool* pool);

/* TopK: data, seen as outer x extent x inner. */
typedef struct {
  int64_t dtype, outer, extent, inner, k;
  int64_t largest, indices; /* truth values: the order; which output it is */
  int64_t parts;            /* parts that run at once, each with k PrunerRanked of workspace */
} PrunerTopK;
typedef struct {
  uint64_t key;
  int64_t index;
} PrunerRanked;
void pruner_top_k(void* const* args, void* workspace, PrunerPool* pool);

/* RoiAlign: inputs data, regions, the number of each one's image. */
typedef struct {
  int64_t dtype, images, channels, height, width; /* type and extents of data */
  int64_t rois, rows, columns;                    /* extents of the output */
  int64_t samples;                    /* samples of a bin per dimension; 0: as many as it needs */
  int64_t takes_greatest, half_pixel; /* truth values */
  int64_t scale_bits;                 /* bits of a double: scale from regions to the data */
} PrunerRoiAlign;
void pruner_roi_align(void* const* args, void* workspace, PrunerPool* pool);

/* Recurrence: LSTM, GRU or RNN over float32. Inputs: X * W^T with the biases that stand beside it,
   steps x batch x directions x gates x hidden; R, directions x blocks x hidden x gates x
   PRUNER_UNITS, where unit u of a block is unit block * PRUNER_UNITS + u of the state, and 0 behind
   the last one. Then, each of them read where `has` names it: the lengths of sequences, batch; the
   first h and c, directions x batch x hidden; the bias of R's products, directions x gates x
   hidden, of a GRU that adds it before the reset; peepholes, directions x 3 x hidden. Output: the h
   of each step, as X has them, then the last h and, of an LSTM, the last c, (steps + 1 or 2) x
   directions x batch x hidden. A sequence that is over keeps its state and gives zeros. */
enum { PRUNER_UNITS = 16 };
enum {
  PRUNER_HAS_LENGTHS = 1,
  PRUNER_HAS_H = 2,
  PRUNER_HAS_C = 4,
  PRUNER_HAS_BIAS = 8,
  PRUNER_HAS_PEEPHOLES = 16,
};
typedef enum {
  kRecurrenceAffine,
  kRecurrenceElu,
  kRecurrenceHardSigmoid,
  kRecurrenceLeakyRelu,
  kRecurrenceRelu,
  kRecurrenceScaledTanh,
  kRecurrenceSigmoid,
  kRecurrenceSoftsign,
  kRecurrenceTanh,
  kRecurrenceThresholdedRelu,
} PrunerActivationKind;
typedef struct {
  int64_t kind;                  /* PrunerActivationKind */
  int64_t alpha_bits, beta_bits; /* bits of doubles */
} PrunerActivation;
typedef struct {
  int64_t steps, batch, directions, hidden;
  int64_t gates;     /* 1: RNN; 3: GRU, z r h; 4: LSTM, i o f c */
  int64_t backwards; /* a bit for each direction that goes from the last step to the first */
  int64_t has, lengths_dtype;
  int64_t is_coupled; /* a truth value: an LSTM whose f is 1 - i */
  int64_t clip_bits;  /* bits of a double: bound of activations' arguments; 0: none */
  PrunerActivation activations[2][3]; /* activations of each direction */
} PrunerRecurrence;
void pruner_recurrence(void* const* args, void* workspace, PrunerPool* pool);

/* NonZero. Columns of the output that no element has are -1. */
typedef struct {
  int64_t dtype, is_real, elements, room; /* elements of the data; columns of the output */
  int64_t rank;
  int64_t shape[]; /* extents of the data */
} PrunerNonZero;
void pruner_non_zero(void* const* args, void* workspace, PrunerPool* pool);

/* Compress: data, seen as outer x extent slices x inner, and a condition. Slices of the output that
   no true condition has are 0. */
typedef struct {
  int64_t dtype, outer, extent, inner;
  int64_t length, room; /* length of the condition; slices of the output */
} PrunerCompress;
void pruner_compress(void* const* args, void* workspace, PrunerPool* pool);

/* Unique: data, seen as outer x extent slices x inner. Places that no distinct slice has are 0 in
   the values and the counts, -1 in the indices. Workspace: 5 * extent int64. */
typedef struct {
  int64_t dtype, outer, extent, inner;
  int64_t sorted, output; /* a truth value; which output it is */
  int64_t room;           /* distinct slices that the output has place for */
} PrunerUnique;
void pruner_unique(void* const* args, void* workspace, PrunerPool* pool);

/* NonMaxSuppression: boxes and scores. Rows of the output that no box has are -1. Workspace: a
   PrunerRanked and five doubles for each box of an image. */
typedef struct {
  int64_t dtype, images, classes, boxes;
  int64_t most;                     /* most boxes of a class */
  int64_t by_centre, has_least;     /* truth values */
  int64_t overlap_bits, least_bits; /* bits of doubles: most overlap, score to exceed */
  int64_t room;                     /* rows of the output */
} PrunerNms;
void pruner_non_max_suppression(void* const* args, void* workspace, PrunerPool* pool);

/* Det: matrices. Workspace: extent * extent doubles. */
typedef struct {
  int64_t dtype, matrices, extent;
} PrunerDet;
void pruner_det(void* const* args, void* workspace, PrunerPool* pool);

/* Inverse: matrices. Workspace: 2 * extent * extent doubles. */
typedef struct {
  int64_t dtype, matrices, extent;
} PrunerInverse;
void pruner_inverse(void* const* args, void* workspace, PrunerPool* pool);

/* BitwiseAnd, BitwiseOr, BitwiseXor, BitShift: two inputs. */
typedef enum { kBitAnd, kBitOr, kBitXor, kShiftLeft, kShiftRight, kShiftRightSigned } PrunerBits;
typedef struct {
  int64_t dtype, bits;
  int64_t elements, rank; /* elements and rank of the output */
  int64_t shapes[];       /* the output's, and the strides of either input in it, 0: repeated */
} PrunerBitwise;
void pruner_bitwise(void* const* args, void* workspace, PrunerPool* pool);

#ifdef __cplusplus
}
#endif

#endif /* PRUNER_GRAPH_ROUTINES_ROUTINES_H_ */
