#include "measure/cache_state.h"

#include "runtime/thread_pool.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace pruner {

namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kFillings =
    2;  // of a core's own caches: they do not replace the oldest line first

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

void touch(const std::byte* from, const std::byte* to) {
  for (; from < to; from += kLine) static_cast<void>(*static_cast<const volatile std::byte*>(from));
}

// visit(from, to) of the lines [begin, end) / parts of each buffer.
template <typename Visit>
void visit_part(const std::vector<const GuardedBuffer*>& buffers,
                int64_t part,
                int64_t parts,
                Visit visit) {
  for (const GuardedBuffer* buffer : buffers) {
    const int64_t lines = (buffer->bytes() + kLine - 1) / kLine;
    visit(buffer->data() + lines * part / parts * kLine,
          buffer->data() + lines * (part + 1) / parts * kLine);
  }
}

}  // namespace

CacheState::CacheState(const Workload& workload,
                       const KernelArguments& arguments,
                       WeightsFrom weights_from) {
  for (size_t i = 0; i < workload.inputs.size(); ++i) {
    (workload.constant[i] ? cold_ : warm_).push_back(arguments.arguments[i]);
  }
  if (weights_from == WeightsFrom::kMemory) return;
  const Target& target = workload.task.target;
  filling_.assign(static_cast<size_t>(kFillings * target.l2_bytes * target.threads), std::byte{1});
}

void CacheState::restore(PrunerPool& pool) const {
  Meeting meeting(pool.threads);
  parallel_for(pool, pool.threads, [&](int64_t part, int64_t) {
    if (filling_.empty()) {
      visit_part(cold_, part, pool.threads, evict);
      wait_for_evictions();
    } else {
      const size_t bytes = filling_.size() / static_cast<size_t>(pool.threads);
      const std::byte* from = filling_.data() + bytes * static_cast<size_t>(part);
      touch(from, from + bytes);
    }
    visit_part(warm_, part, pool.threads, touch);
    meeting.arrive_and_wait();
  });
}

}  // namespace pruner
