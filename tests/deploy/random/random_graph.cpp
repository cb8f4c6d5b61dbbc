#include "random_graph.h"

#include <algorithm>

#include "steps.h"

namespace pruner {

static RandomGraph drawn(uint64_t seed) {
  GraphMaker m(seed);
  std::vector<double> weights;
  for (const StepRow& row : kSteps) weights.push_back(row.weight);
  const int64_t count = std::min(m.between(1, 8), m.between(2, 8));
  for (int64_t steps = 0, tries = 0; steps < count && tries < 60; ++tries) {
    const bool last = steps + 2 >= count && m.one_in(3);
    steps += m.attempt(last ? (m.one_in(2) ? concat : joined_products)
                            : kSteps[m.rng().weighted(weights)].step);
  }
  return std::move(m).finish();
}

RandomGraph random_graph(uint64_t seed) {
  // One in some thousand draws has no output. Another stream of chance has one.
  for (uint64_t stream = 0;; ++stream) {
    RandomGraph made = drawn(seed + (stream << 40));
    made.seed = seed;
    if (!made.graph.outputs.empty()) return made;
  }
}

}  // namespace pruner
