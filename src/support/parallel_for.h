// Runs fn(i) for every i in [0, n) on up to `jobs` threads of this process; returns when all are
// done. Results must be written to slot i, so the outcome does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <functional>

namespace pruner {

void parallel_for(int64_t n, int jobs, const std::function<void(int64_t)>& fn);

}  // namespace pruner
