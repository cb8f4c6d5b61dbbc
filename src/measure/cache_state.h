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
  CacheState(const Workload& workload, const KernelArguments& arguments, bool cold_weights);

  /// Whether a call changes the state, so that it has to be restored before the next.
  bool changes() const { return !cold_.empty(); }
  /// Evicts the constants from all caches (clflushopt, each thread a part), then reads each other
  /// input once (each thread its contiguous part). Ends with all threads of the pool running.
  void restore(PrunerPool& pool) const;

 private:
  std::vector<const GuardedBuffer*> cold_, warm_;
};

}  // namespace pruner
