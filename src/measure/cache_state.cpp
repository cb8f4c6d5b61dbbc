#include "measure/cache_state.h"

#include <algorithm>
#include <utility>

#include "runtime/thread_pool.h"
#include "support/ceil_div.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace pruner {

namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kPiece = 4096;  // bytes of an input that one thread writes

#if defined(__x86_64__)
__attribute__((target("clflushopt"))) void flush_fast(const std::byte* from, const std::byte* to) {
  for (; from < to; from += kLine) _mm_clflushopt(const_cast<std::byte*>(from));
}

void evict(const std::byte* from, const std::byte* to) {
  static const bool fast = [] {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_CLFLUSHOPT) != 0;
  }();
  if (fast) return flush_fast(from, to);
  for (; from < to; from += kLine) _mm_clflush(from);
}

void wait_for_evictions() { _mm_mfence(); }
#else
void evict(const std::byte*, const std::byte*) {}
void wait_for_evictions() {}
#endif

void read(const std::byte* from, const std::byte* to) {
  for (; from < to; from += kLine) static_cast<void>(*static_cast<const volatile std::byte*>(from));
}

void write_as_it_is(std::byte* from, std::byte* to) {
  for (; from < to; from += kLine) {
    auto* byte = static_cast<volatile std::byte*>(from);
    *byte = *byte;
  }
}

}  // namespace

CacheState::CacheState(const Workload& workload,
                       const KernelArguments& arguments,
                       WeightsFrom weights_from)
    : weights_from_(weights_from), filling_(workload.filling) {
  for (size_t i = 0; i < workload.inputs.size(); ++i) {
    (workload.constant[i] ? constants_ : inputs_).push_back(arguments.arguments[i]);
  }
  for (const GuardedBuffer* input : inputs_) input->make_writable();
}

void CacheState::restore(PrunerPool& pool) const {
  const int64_t threads = pool.threads;
  Meeting meeting(pool.threads);
  parallel_for(pool, threads, [&](int64_t thread, int64_t) {
    const auto part = [&](int64_t size) {
      return std::pair(size * thread / threads, size * (thread + 1) / threads);
    };
    const auto [first, last] = part(static_cast<int64_t>(filling_.size()));
    read(filling_.data() + first, filling_.data() + last);
    if (weights_from_ == WeightsFrom::kMemory) {
      for (const GuardedBuffer* constant : constants_) {
        const auto [begin, end] = part(ceil_div(constant->bytes(), kLine));
        evict(constant->data() + begin * kLine, constant->data() + end * kLine);
      }
      wait_for_evictions();
    }
    for (const GuardedBuffer* input : inputs_) {
      for (int64_t at = thread * kPiece; at < input->bytes(); at += threads * kPiece) {
        const int64_t end = std::min(at + kPiece, input->bytes());
        write_as_it_is(input->data() + at, input->data() + end);
      }
    }
    meeting.arrive_and_wait();
  });
}

}  // namespace pruner
