// The part of a stage whose values are known without computing the stage: a mask hides the elements
// there. In causal attention, half of the scores are such a part, and half of all stages made of
// the scores.
#pragma once

#include <optional>

#include "tensor/affine.h"
#include "tensor/compute_dag.h"

namespace pruner {

/// An element is `value` if `beyond`, a form of the stage's iterators, is above 0. In a reduction,
/// a term is `value` there, and `value` is the neutral element.
struct ConstantPart {
  Affine beyond;
  double value = 0;
};

using ConstantParts = IdMap<StageId, std::optional<ConstantPart>>;

/// Returns the constant part of each stage whose body shows one. Such a body is a select by one
/// comparison of affine forms, or made of a stage with a constant part. In a constant part a sum
/// with an infinity is infinite and a product with zero is zero, as if the other operand were
/// finite.
ConstantParts constant_parts(const ComputeDag& dag);

}  // namespace pruner
