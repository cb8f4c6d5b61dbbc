// The pool of runtime/module/thread_pool.c as a value that owns it: what kernels get to run on.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>

#include "pruner/kernel.h"

namespace pruner {

/// Joins the workers, and gives a pinned caller its CPUs back.
struct DestroyPool {
  void operator()(PrunerPool* pool) const { pruner_pool_destroy(pool); }
};
using ThreadPool = std::unique_ptr<PrunerPool, DestroyPool>;

/// A pool of `threads` threads, the caller included; null when the system gives none. `pin`: each
/// thread, the caller too, stays on a core of its own.
inline ThreadPool make_thread_pool(int threads, bool pin) {
  return ThreadPool(pruner_pool_create(threads, pin ? 1 : 0));
}

/// Calls body(begin, end) for parts of [0, n) on the pool's threads; returns when all is done.
template <typename Body>
void parallel_for(PrunerPool& pool, int64_t n, Body&& body) {
  using Closure = std::remove_reference_t<Body>;
  pool.parallel_for(
      &pool,
      [](void* closure, int64_t begin, int64_t end) {
        (*static_cast<Closure*>(closure))(begin, end);
      },
      const_cast<std::remove_const_t<Closure>*>(&body),
      n);
}

/// Meeting lets the parts of one parallel_for over n = threads wait for each other without going to
/// sleep. Afterwards all threads of the pool are running.
class Meeting {
 public:
  explicit Meeting(int threads) : expected_(threads) {}
  void arrive_and_wait() {
    ++arrived_;
    // With more threads than cores, some can only arrive when others make way.
    for (int spins = 0; arrived_ < expected_; ++spins) {
      if (spins > 10000) std::this_thread::yield();
    }
  }

 private:
  const int expected_;  // arrivals that end the wait
  std::atomic<int> arrived_ = 0;
};

}  // namespace pruner
