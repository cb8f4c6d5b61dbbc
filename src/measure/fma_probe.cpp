#include "measure/fma_probe.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "measure/measure.h"
#include "runtime/thread_pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace pruner {

namespace {

using Clock = std::chrono::steady_clock;

// Enough independent chains to hide the latency of two FMA units.
constexpr int kChains = 16;
constexpr int kSteps = 1024;

// One block of kSteps x kChains multiply-adds on vectors of `lanes` floats. x -> x * a + b stays
// near 1.
struct FmaBlock {
  int lanes;
  float (*run)(float start);
};

float portable_block(float start) {
  float chains[kChains];
  std::fill(std::begin(chains), std::end(chains), start);
  for (int step = 0; step < kSteps; ++step) {
    for (float& x : chains) x = x * 0.5f + 0.5f;
  }
  return chains[0] + chains[kChains - 1];
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) float avx2_block(float start) {
  const __m256 half = _mm256_set1_ps(0.5f);
  __m256 chains[kChains];
  for (__m256& x : chains) x = _mm256_set1_ps(start);
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 16
    for (__m256& x : chains) x = _mm256_fmadd_ps(x, half, half);
  }
  __m256 sum = chains[0];
  for (const __m256& x : chains) sum = _mm256_add_ps(sum, x);
  return _mm256_cvtss_f32(sum);
}

__attribute__((target("avx512f"))) float avx512_block(float start) {
  const __m512 half = _mm512_set1_ps(0.5f);
  __m512 chains[kChains];
  for (__m512& x : chains) x = _mm512_set1_ps(start);
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 16
    for (__m512& x : chains) x = _mm512_fmadd_ps(x, half, half);
  }
  __m512 sum = chains[0];
  for (const __m512& x : chains) sum = _mm512_add_ps(sum, x);
  return _mm512_cvtss_f32(sum);
}
#elif defined(__aarch64__)
float neon_block(float start) {
  const float32x4_t half = vdupq_n_f32(0.5f);
  float32x4_t chains[kChains];
  for (float32x4_t& x : chains) x = vdupq_n_f32(start);
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 16
    for (float32x4_t& x : chains) x = vfmaq_f32(half, x, half);
  }
  float32x4_t sum = chains[0];
  for (const float32x4_t& x : chains) sum = vaddq_f32(sum, x);
  return vaddvq_f32(sum);
}
#endif

FmaBlock fastest_block() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {16, avx512_block};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {8, avx2_block};
#elif defined(__aarch64__)
  return {4, neon_block};
#endif
  return {1, portable_block};
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

double blocks_per_second(PrunerPool& pool, float (*block)(float), double seconds) {
  std::vector<double> rates(static_cast<size_t>(pool.threads));
  Meeting meeting(pool.threads);
  parallel_for(pool, pool.threads, [&](int64_t thread, int64_t) {
    meeting.arrive_and_wait();
    const auto start = Clock::now();
    volatile float value = 1;
    int64_t blocks = 0;
    do {
      value = block(value);
      value = 1;
      ++blocks;
    } while (seconds_since(start) < seconds);
    rates[thread] = static_cast<double>(blocks) / seconds_since(start);
  });
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

double fma_gflops(PrunerPool& pool, double seconds) {
  const FmaBlock block = fastest_block();
  return blocks_per_second(pool, block.run, seconds) * 2e-9 * kSteps * kChains * block.lanes;
}

double probe_fma_gflops(const Target&, int threads, double seconds) {
  const ThreadPool pool = make_thread_pool(threads, true);
  if (pool == nullptr) return 0;
  const double window = std::min(seconds, 0.001);
  double best = 0;
  for (double left = seconds; left > 0; left -= window) {
    best = std::max(best, fma_gflops(*pool, window));
  }
  return best;
}

}  // namespace pruner
