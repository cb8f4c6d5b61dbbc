// The part of a stage whose values are known without computing it: where a mask hides what is
// there. In causal attention it is half of the scores, and of all that is made of them.
#pragma once

#include <optional>

#include "tensor/affine.h"
#include "tensor/compute_dag.h"

namespace pruner {

/// Where `beyond`, a form of the stage's iterators, is above 0, an element is `value`; of a
/// reduction a term is the neutral element, which is `value`.
struct ConstantPart {
  Affine beyond;
  double value = 0;
};

using ConstantParts = IdMap<StageId, std::optional<ConstantPart>>;

/// Of each stage, as far as its body shows one: a select by one comparison of affine forms, or
/// what is made of a stage that has one. There a sum with an infinity is infinite and a product
/// with zero is zero, as they are beside finite values.
ConstantParts constant_parts(const ComputeDag& dag);

}  // namespace pruner
