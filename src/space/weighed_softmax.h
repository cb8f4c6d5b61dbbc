// The softmax of attention in a compute DAG, and the sum that its terms weigh.
#pragma once

#include <optional>

#include "tensor/compute_dag.h"

namespace pruner {

/// The stages of a softmax over the last axis of its scores: the largest score of each row, the
/// exponentials exp(score - largest), their sum, and the stage that weighs values by them.
struct WeighedSoftmax {
  StageId scores, largest, exps, sum, weighed;
};

/// Returns the softmax whose maximum is the stage `largest`; nullopt if the stage is no such
/// maximum, or if other stages read a part of the softmax.
std::optional<WeighedSoftmax> softmax_of(const ComputeDag& dag, StageId largest);

}  // namespace pruner
