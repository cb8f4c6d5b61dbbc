#include "dataset/synthetic_table.h"

#include <cmath>

#include "support/hash.h"
#include "support/rng.h"

namespace pruner {

void add_synthetic(const std::string& workload,
                   const std::string& target,
                   int programs,
                   ProgramTable& table) {
  Rng rng(hash64(workload));
  for (int i = 0; i < programs; ++i) {
    ProgramFeatures features;
    features.rows.resize(kRowFeatures);
    for (size_t j = 0; j < 4; ++j) features.rows[j] = static_cast<float>(rng.uniform());
    const double latency_s = 1e-3 * std::exp2(3 * features.rows[1] - 2 * features.rows[2]);
    table.add({workload, target}, hash64(workload + std::to_string(i)), features, latency_s);
  }
}

}  // namespace pruner
