// The caches before a timed call as they are inside a network: the kernels before it have filled
// the cores' own caches; its weights were last read an inference ago; its other inputs were just
// written, each piece by whichever thread; the threads are awake.
#pragma once

#include <span>
#include <vector>

#include "measure/kernel_arguments.h"
#include "pruner/kernel.h"

namespace pruner {

class CacheState {
 public:
  /// Makes the inputs that are no constants writable.
  CacheState(const Workload& workload, const KernelArguments& arguments, WeightsFrom weights_from);

  /// Fills each core's own caches with what nobody needs, evicts the constants from all others if
  /// they come from memory (clflushopt), then writes each other input as it is, its pieces by the
  /// threads in turns. Ends with all threads of the pool running.
  void restore(PrunerPool& pool) const;

 private:
  std::vector<const GuardedBuffer*> constants_, inputs_;
  WeightsFrom weights_from_;
  std::span<const std::byte> filling_;  // content for all cores' own caches: the workload's
};

}  // namespace pruner
