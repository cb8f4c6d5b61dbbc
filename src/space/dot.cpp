#include "space/dot.h"

#include <algorithm>

#include "space/access.h"

namespace pruner {

static constexpr DotInstruction kDotInstructions[] = {
    {"vdpbf16ps", DType::kBFloat16, DType::kBFloat16, DType::kFloat32, 2, &DotRates::bfloat16},
    {"vpdpbusd", DType::kUInt8, DType::kInt8, DType::kInt32, 4, &DotRates::int8},
};

const DotInstruction* find_dot_instruction(DType a, DType b, DType sum) {
  for (const DotInstruction& dot : kDotInstructions) {
    const bool types = (a == dot.a && b == dot.b) || (a == dot.b && b == dot.a);
    if (types && sum == dot.sum) return &dot;
  }
  return nullptr;
}

const DotInstruction* find_dot_instruction(const ComputeDag& dag,
                                           StageId id,
                                           const Target& target) {
  const Stage& stage = dag[id];
  if (target.is_gpu() || stage.combiner != Combiner::kSum) return nullptr;
  const Binary* product = as<Binary>(stage.body);
  if (product == nullptr || product->op != BinaryOp::kMul) return nullptr;
  const Cast *a = as<Cast>(product->a), *b = as<Cast>(product->b);
  if (a == nullptr || b == nullptr) return nullptr;
  const DotInstruction* dot = find_dot_instruction(a->value->dtype, b->value->dtype, stage.dtype);
  if (dot == nullptr || target.dots.*dot->rate <= 1 || !needs_multi_level_tiling(dag, id))
    return nullptr;
  const auto longer = [](const Iterator& axis) { return axis.extent > 1; };
  const auto last = std::find_if(stage.reduce_axes.rbegin(), stage.reduce_axes.rend(), longer);
  if (last == stage.reduce_axes.rend() || last->extent % dot->terms != 0) return nullptr;
  const auto packable = [&](StageId operand) { return dag[operand].constant; };
  return std::ranges::any_of(stage.layout_free, packable) ? dot : nullptr;
}

}  // namespace pruner
