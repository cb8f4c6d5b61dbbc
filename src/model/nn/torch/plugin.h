// What libpruner_torch.so offers: one function, which gives a table of calls: tensors and batches
// in, scores and trained tensors out. Plain C, so that the program and the plug-in share no C++
// types and nothing of LibTorch. Calls that return int give 0, or 1 after a failure that error()
// words. One trainer is used by one thread at a time.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PRUNER_TRAINER_VERSION 2

struct PrunerTrainer; /* a network, its optimizer, and the graph of its last forward() */

struct PrunerTrainerOptions {
  int pacm; /* 1: with the data flow's branch and batch norm; 0: TenSetMLP, or TLP */
  int adam; /* 1: Adam; 0: plain SGD */
  double weight_decay;
  int threads;
};

struct PrunerBatch {
  const float* rows;             /* (row_count, 174), divided by the scales */
  const int64_t* program_of_row; /* (row_count) */
  int64_t row_count;
  const float* dataflow; /* (program_count, 8, 23), divided by the scales */
  int64_t program_count;
};

/* What a TLP reads, and which scores are asked for. */
struct PrunerPrimitives {
  const float* rows; /* (row_count, width): distinct */
  int64_t row_count;
  int64_t width;
  const int64_t* row_of; /* (program_count, token_count) */
  const float* weight;   /* (program_count, token_count): steps a token stands for; 0: none */
  int64_t program_count;
  int64_t token_count;
  const char* const* heads; /* (head_count): where a decoder has its tensors, such as "decoder" */
  int64_t head_count;
  const int64_t* program_of_score; /* (score_count) */
  const int64_t* head_of_score;    /* (score_count) */
  int64_t score_count;
};

struct PrunerTrainerCalls {
  int version;
  struct PrunerTrainer* (*create)(const struct PrunerTrainerOptions*); /* NULL after a failure */
  void (*destroy)(struct PrunerTrainer*);
  /* Every tensor is set before the first forward(). */
  int (*set_tensor)(struct PrunerTrainer*,
                    const char* name,
                    const float* values,
                    const int64_t* shape,
                    int dimensions);
  int (*get_tensor)(struct PrunerTrainer*, const char* name, float* values, int64_t count);
  /* Scores in training mode (batch statistics). */
  int (*forward)(struct PrunerTrainer*, const struct PrunerBatch*, float* scores);
  /* From d loss / d scores of the last forward(): gradients, their global L2 norm clipped at
   * clip_norm where that is above 0, and one step of the optimizer. */
  int (*step)(struct PrunerTrainer*, const float* gradient, double learning_rate, double clip_norm);
  /* Adam's two moments of a parameter, and how many steps made them: 0 before the first. */
  int (*get_moments)(struct PrunerTrainer*,
                     const char* name,
                     float* first,
                     float* second,
                     int64_t count,
                     int64_t* steps);
  int (*set_moments)(struct PrunerTrainer*,
                     const char* name,
                     const float* first,
                     const float* second,
                     int64_t steps);
  const char* (*error)(void);
  /* forward() of a TLP. */
  int (*forward_primitives)(struct PrunerTrainer*, const struct PrunerPrimitives*, float* scores);
};

/* The name under which the program looks it up. */
const struct PrunerTrainerCalls* pruner_trainer_calls(void);

#ifdef __cplusplus
}
#endif
