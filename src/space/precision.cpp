#include "space/precision.h"

#include "space/dot.h"
#include "support/check.h"
#include "target/dot_rates.h"
#include "target/tensor_rates.h"

namespace pruner {

std::string_view precision_of(const Sketch& sketch) {
  StageId largest;
  int64_t most = 0;
  for (const StagePlan& plan : sketch.plans) {
    const Stage& stage = sketch.dag[plan.stage];
    int64_t iterations = stage.num_elements();
    for (const Iterator& axis : stage.reduce_axes) iterations *= axis.extent;
    if (iterations <= most) continue;
    most = iterations;
    largest = plan.stage;
  }
  if (!largest.valid()) return dtype_name(DType::kFloat32);
  if (const DotInstruction* dot = sketch.tables->dots[largest]) {
    const DotRateRow* row = find_dot_rate(dot->rate);
    CHECK(row != nullptr) << dot->name << " is in no row of kDotRates";
    return row->name;
  }
  if (const auto& mma = sketch.tables->mmas[largest]) {
    const TensorRateRow* row = find_tensor_rate(mma->instruction->rate);
    CHECK(row != nullptr) << mma->instruction->shape << " is in no row of kTensorRates";
    return row->name;
  }
  const DType type = sketch.dag[largest].dtype;
  return dtype_name(is_narrow_float(type) ? DType::kFloat32 : type);
}

}  // namespace pruner
