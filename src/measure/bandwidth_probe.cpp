#include <algorithm>
#include <chrono>
#include <memory>
#include <new>

#include "measure/measure.h"
#include "runtime/thread_pool.h"

namespace pruner {

namespace {

using Clock = std::chrono::steady_clock;

// One step reads as many vectors as loads may be in flight, each into a sum of its own.
constexpr int kVectors = 8;
struct alignas(64) Block {
  uint64_t words[64];
};

// A timing reads so much per thread at least: some 100 us, beside which waking the threads is
// nothing.
constexpr int64_t kBytesPerTiming = int64_t{16} << 20;

using Vector16 __attribute__((vector_size(16))) = uint64_t;
using Vector32 __attribute__((vector_size(32))) = uint64_t;
using Vector64 __attribute__((vector_size(64))) = uint64_t;

/// The sum of what lies in [begin, end).
template <typename Vector>
inline __attribute__((always_inline)) uint64_t sum_of(const Block* begin, const Block* end) {
  Vector sums[kVectors] = {};
  const auto* stop = reinterpret_cast<const Vector*>(end);
  for (const auto* at = reinterpret_cast<const Vector*>(begin); at != stop; at += kVectors) {
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) sums[i] += at[i];
  }
  for (int i = 1; i < kVectors; ++i) sums[0] += sums[i];
  uint64_t sum = 0;
  for (size_t i = 0; i < sizeof(Vector) / sizeof(uint64_t); ++i) sum += sums[0][i];
  return sum;
}

using ReadBlocks = uint64_t (*)(const Block* begin, const Block* end);

uint64_t read_16(const Block* begin, const Block* end) { return sum_of<Vector16>(begin, end); }
#if defined(__x86_64__)
__attribute__((target("avx2"))) uint64_t read_32(const Block* begin, const Block* end) {
  return sum_of<Vector32>(begin, end);
}
__attribute__((target("avx512f"))) uint64_t read_64(const Block* begin, const Block* end) {
  return sum_of<Vector64>(begin, end);
}
#endif

ReadBlocks widest_read() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return read_64;
  if (__builtin_cpu_supports("avx2")) return read_32;
#endif
  return read_16;
}

}  // namespace

double probe_read_gbs(int64_t bytes, int threads, double seconds) {
  const ThreadPool pool = make_thread_pool(threads, true);
  if (pool == nullptr) return 0;
  const int64_t count = std::max<int64_t>(bytes / static_cast<int64_t>(sizeof(Block)), threads);
  const std::unique_ptr<Block[]> blocks(new (std::nothrow) Block[count]);
  if (blocks == nullptr) return 0;
  // Written by the thread that will read it: the memory that is nearest to its core.
  parallel_for(*pool, count, [&](int64_t begin, int64_t end) {
    std::fill(blocks.get() + begin, blocks.get() + end, Block{{1, 1, 1, 1, 1, 1, 1, 1}});
  });
  const ReadBlocks read = widest_read();
  const int64_t share = count * static_cast<int64_t>(sizeof(Block)) / threads;
  const int64_t passes = std::max<int64_t>(kBytesPerTiming / share, 1);
  const auto start = Clock::now();
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  double fastest = 1e10;
  do {
    const auto begin_timing = Clock::now();
    parallel_for(*pool, count, [&](int64_t begin, int64_t end) {
      for (int64_t pass = 0; pass < passes; ++pass)
        [[maybe_unused]] volatile uint64_t sum = read(blocks.get() + begin, blocks.get() + end);
    });
    fastest = std::min(fastest, since(begin_timing));
  } while (since(start) < seconds);
  return static_cast<double>(count * passes) * sizeof(Block) * 1e-9 / fastest;
}

}  // namespace pruner
