#include "measure/dot_probe.h"

#include <algorithm>

#include "measure/fma_probe.h"
#include "runtime/thread_pool.h"
#include "support/cpu_features.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pruner {

namespace {

// One call makes so many products, in whole instructions.
struct DotBlock {
  double DotRates::*rate;
  double products;
  float (*run)(float start);
};

#if defined(__x86_64__)
constexpr int kSteps = 512;
constexpr int kChains = 16;  // chains of vectors: they hide the latency of two units
constexpr int kTiles =
    4;  // tiles of sums; a core computes one at a time, in more cycles than its latency

__attribute__((target("avx512f,avx512bf16"))) float bfloat16_block(float start) {
  const __m512 half = _mm512_set1_ps(0.5f * start);
  const __m512bh halves = _mm512_cvtne2ps_pbh(half, half);
  __m512 chains[kChains];
  for (__m512& x : chains) x = _mm512_set1_ps(start);
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 16
    for (__m512& x : chains) x = _mm512_dpbf16_ps(x, halves, halves);
  }
  __m512 sum = chains[0];
  for (const __m512& x : chains) sum = _mm512_add_ps(sum, x);
  return _mm512_cvtss_f32(sum);
}

__attribute__((target("avx512f,avx512vnni"))) float int8_block(float start) {
  const __m512i threes = _mm512_set1_epi8(static_cast<char>(3 * start));
  __m512i chains[kChains];
  for (__m512i& x : chains) x = _mm512_setzero_si512();
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 16
    for (__m512i& x : chains) x = _mm512_dpbusd_epi32(x, threes, threes);
  }
  __m512i sum = chains[0];
  for (const __m512i& x : chains) sum = _mm512_add_epi32(sum, x);
  return static_cast<float>(_mm512_cvtsi512_si32(sum));
}

constexpr int kRows = 16, kRowBytes = 64;
constexpr int kRegisters = 8;

// TileSetup has the layout that the instruction that sets registers up reads.
struct alignas(64) TileSetup {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Sums lie in registers 0 to 3, factors in 4 to 7, all of the largest size. What is in memory has
// to be there first, which the compiler's functions do not all say.
#define PRUNER_TILES(name, features, multiply)                            \
  __attribute__((target("amx-tile," features))) float name(float start) { \
    TileSetup setup;                                                      \
    std::fill_n(setup.row_bytes, kRegisters, uint16_t{kRowBytes});        \
    std::fill_n(setup.rows, kRegisters, uint8_t{kRows});                  \
    alignas(64) uint16_t factor[kRows * kRowBytes / 2];                   \
    alignas(64) int32_t sums[kRows * kRowBytes / 4];                      \
    std::fill_n(factor, std::size(factor), start > 0 ? 0x3f02 : 0);       \
    __asm__ volatile("" : : "r"(&setup), "r"(factor) : "memory");         \
    _tile_loadconfig(&setup);                                             \
    _tile_zero(0);                                                        \
    _tile_zero(1);                                                        \
    _tile_zero(2);                                                        \
    _tile_zero(3);                                                        \
    _tile_loadd(4, factor, kRowBytes);                                    \
    _tile_loadd(5, factor, kRowBytes);                                    \
    _tile_loadd(6, factor, kRowBytes);                                    \
    _tile_loadd(7, factor, kRowBytes);                                    \
    for (int step = 0; step < kSteps; ++step) {                           \
      multiply(0, 4, 6);                                                  \
      multiply(1, 4, 7);                                                  \
      multiply(2, 5, 6);                                                  \
      multiply(3, 5, 7);                                                  \
    }                                                                     \
    _tile_stored(0, sums, kRowBytes);                                     \
    _tile_release();                                                      \
    return static_cast<float>(sums[0]);                                   \
  }
PRUNER_TILES(bfloat16_tile_block, "amx-bf16", _tile_dpbf16ps)
PRUNER_TILES(int8_tile_block, "amx-int8", _tile_dpbusd)
#undef PRUNER_TILES

constexpr double kVectors = double{kSteps} * kChains, kProducts = double{kSteps} * kTiles * 16 * 16;
constexpr DotBlock kBlocks[] = {
    {&DotRates::bfloat16, kVectors * 32, bfloat16_block},
    {&DotRates::int8, kVectors * 64, int8_block},
    {&DotRates::bfloat16_tile, kProducts * 32, bfloat16_tile_block},
    {&DotRates::int8_tile, kProducts * 64, int8_tile_block},
};
#else
constexpr DotBlock kBlocks[] = {{nullptr, 0, nullptr}};
#endif

}  // namespace

double probe_dot_gflops(const DotRateRow& row, int threads, double seconds) {
  const DotBlock* block = std::ranges::find(kBlocks, row.rate, &DotBlock::rate);
  int length = 0;
  // The question for tiles also asks the operating system for their state.
  if (block == std::end(kBlocks) ||
      pruner_missing_cpu_feature(row.features(kHostIsa), &length) != nullptr)
    return 0;
  const ThreadPool pool = make_thread_pool(threads, true);
  if (pool == nullptr) return 0;
  const double window = std::min(seconds, 0.001);
  double best = 0;
  for (double left = seconds; left > 0; left -= window)
    best = std::max(best, blocks_per_second(*pool, block->run, window));
  return best * block->products * 2e-9;
}

}  // namespace pruner
