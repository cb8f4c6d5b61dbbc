#include <algorithm>
#include <chrono>
#include <memory>
#include <new>

#include "measure/measure.h"
#include "runtime/thread_pool.h"

namespace pruner {

namespace {

using Clock = std::chrono::steady_clock;

struct alignas(64) CacheLine {
  uint64_t words[8];
};

using Vector __attribute__((vector_size(16))) = uint64_t;
constexpr int kVectors = 8;  // loads in flight, each into a sum of its own: two lines

constexpr int64_t kLeastBytes = int64_t{128} << 20;
constexpr int64_t kMostBytes = int64_t{1} << 30;

/// The sum of what lies in [begin, end), an even number of lines.
uint64_t read_lines(const CacheLine* begin, const CacheLine* end) {
  Vector sums[kVectors] = {};
  const auto* stop = reinterpret_cast<const Vector*>(end);
  for (const auto* at = reinterpret_cast<const Vector*>(begin); at != stop; at += kVectors) {
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) sums[i] += at[i];
  }
  Vector sum = {};
  for (const Vector& part : sums) sum += part;
  return sum[0] + sum[1];
}

}  // namespace

double probe_read_gbs(const Target& target, int threads, double seconds) {
  const ThreadPool pool = make_thread_pool(threads, true);
  if (pool == nullptr) return 0;
  // What the last level keeps from one pass to the next must not count.
  const int64_t bytes = std::clamp(8 * target.l3_bytes, kLeastBytes, kMostBytes);
  const int64_t pairs = bytes / static_cast<int64_t>(2 * sizeof(CacheLine));
  const std::unique_ptr<CacheLine[]> lines(new (std::nothrow)
                                               CacheLine[static_cast<size_t>(2 * pairs)]);
  if (lines == nullptr) return 0;
  // Written by the thread that will read it: the memory that is nearest to its core.
  parallel_for(*pool, pairs, [&](int64_t begin, int64_t end) {
    std::fill(lines.get() + 2 * begin, lines.get() + 2 * end, CacheLine{{1, 1, 1, 1, 1, 1, 1, 1}});
  });
  const auto start = Clock::now();
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  double fastest = 1e10;
  do {
    const auto begin_pass = Clock::now();
    parallel_for(*pool, pairs, [&](int64_t begin, int64_t end) {
      [[maybe_unused]] volatile uint64_t sum =
          read_lines(lines.get() + 2 * begin, lines.get() + 2 * end);
    });
    fastest = std::min(fastest, since(begin_pass));
  } while (since(start) < seconds);
  return static_cast<double>(bytes) * 1e-9 / fastest;
}

}  // namespace pruner
