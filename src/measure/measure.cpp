#include "measure/measure.h"

#include "measure/timing.h"

namespace pruner {

double MeasureResult::cost_s() const {
  return ok() && !costs_s.empty() ? typical(costs_s) : kFailedCost;
}

}  // namespace pruner
