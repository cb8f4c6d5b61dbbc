// The pool of runtime/module/thread_pool.c as a value that owns it: what kernels get to run on.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "pruner/kernel.h"

namespace pruner {

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

}  // namespace pruner
