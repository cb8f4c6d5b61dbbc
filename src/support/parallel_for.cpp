#include "support/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace pruner {

void parallel_for(int64_t n, int jobs, const std::function<void(int64_t)>& fn) {
  const int threads = static_cast<int>(std::min<int64_t>(std::max(jobs, 1), n));
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t i = next++; i < n; i = next++) fn(i);
  };
  std::vector<std::jthread> helpers;
  try {
    for (int t = 1; t < threads; ++t) helpers.emplace_back(work);
  } catch (const std::system_error&) {
    // The machine has no more threads: those that there are do the work.
  }
  work();
}

}  // namespace pruner
