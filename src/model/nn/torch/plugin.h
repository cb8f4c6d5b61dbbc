// The interface of libpruner_torch.so: one function, which returns a table of calls. The calls take
// a table of layers, tensors and batches, and give scores and trained tensors. All is plain data,
// so the program and the plug-in share nothing of LibTorch or of the standard library. Calls that
// return int give 0, or 1 after a failure that error() tells. One thread at a time uses a trainer.
#pragma once

#include <cstdint>

#include "model/nn/layer.h"

extern "C" {

#define PRUNER_TRAINER_VERSION 3

struct PrunerTrainer; /* a network, its optimizer, and the graph of its last forward() */

struct PrunerTrainerOptions {
  const pruner::Layer* layers; /* (layer_count), which outlive the trainer */
  int64_t layer_count;
  const char* const* heads; /* (head_count): module of a head's tensors, such as "decoder.k80" */
  int64_t head_count;
  int adam; /* 1: Adam; 0: plain SGD */
  double weight_decay;
  int threads;
};

/* `PrunerTokens` holds the rows that one branch reads of the programs (nn/tokens.h). */
struct PrunerTokens {
  const float* rows; /* (row_count, width): distinct */
  int64_t row_count;
  int64_t width;
  const int64_t* row_of; /* (token_count) */
  const float* weight;   /* (token_count): rows that a token stands for */
  int64_t token_count;
  const int64_t* begin; /* (program_count + 1): start of each program's tokens */
};

struct PrunerBatch {
  const struct PrunerTokens* branches; /* in the order of the layers */
  int64_t program_count;
  const int64_t* program_of_score; /* (score_count) */
  const int64_t* head_of_score;    /* (score_count) */
  int64_t score_count;
};

/* Adam's two moments of a parameter, and how many steps made them: 0 before the first. */
struct PrunerMoments {
  float *first, *second; /* (count) */
  int64_t count;
  int64_t steps;
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
  /* Computes scores in training mode (batch statistics). */
  int (*forward)(struct PrunerTrainer*, const struct PrunerBatch*, float* scores);
  /* Computes gradients from d loss / d scores of the last forward(), and takes one step of the
   * optimizer. The gradients' global L2 norm is clipped at clip_norm if clip_norm is above 0. */
  int (*step)(struct PrunerTrainer*, const float* gradient, double learning_rate, double clip_norm);
  int (*get_moments)(struct PrunerTrainer*, const char* name, struct PrunerMoments*);
  int (*set_moments)(struct PrunerTrainer*, const char* name, const struct PrunerMoments*);
  const char* (*error)(void);
};

/* The name under which the program looks it up. */
const struct PrunerTrainerCalls* pruner_trainer_calls(void);
}
