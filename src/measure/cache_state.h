// The caches before a timed call as they are inside a network: its weights were last read an
// inference ago and are gone; its other inputs were just written by the threads that read them
// now; the threads are awake.
#pragma once

#include <vector>

#include "measure/kernel_arguments.h"
#include "pruner/kernel.h"

namespace pruner {

class CacheState {
 public:
  CacheState(const Workload& workload, const KernelArguments& arguments, WeightsFrom weights_from);

  /// Whether a call changes the state, so that it has to be restored before the next.
  bool changes() const { return !cold_.empty(); }
  /// Evicts the constants, each thread a part: from all caches (clflushopt), or from a core's own,
  /// where each thread reads what fills them. Then reads each other input once (each thread its
  /// contiguous part). Ends with all threads of the pool running.
  void restore(PrunerPool& pool) const;

 private:
  std::vector<const GuardedBuffer*> cold_, warm_;
  std::vector<std::byte> filling_;  // of a core's own caches, for all threads; empty: clflushopt
};

}  // namespace pruner
