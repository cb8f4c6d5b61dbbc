// Every kernel of a module is run once, on drawn data, before the module is written: in a child
// process, with tensors between guard pages, beside the reference interpreter.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/loader.h"
#include "deploy/weights.h"
#include "graph/partition.h"
#include "runtime/guarded_buffer.h"

namespace pruner {

/// A group's kernel, loaded, with its constants as the module stores them.
struct PreparedKernel {
  const Artifact* artifact = nullptr;
  std::unique_ptr<LoadedKernel> code;
  std::vector<std::shared_ptr<const GuardedBuffer>> constants;  // one an input; null: no constant
};
/// `stored`: the network whose constants the module stores, at its greatest shape, in `weights`.
/// The artifact outlives the result.
Result<PreparedKernel> prepare(const Artifact& artifact,
                               const Partition& stored,
                               size_t group,
                               Weights& weights);

/// A kernel at one shape, called as its module calls it.
struct KernelCall {
  const PreparedKernel* kernel = nullptr;
  const Partition* at = nullptr;  // the network at this shape
  size_t group = 0;
  std::vector<int64_t> extents = {};  // extents of the module's symbols
  /// `other` is a kernel of the same group: elements that it computes otherwise are compared, too.
  const PreparedKernel* other = nullptr;
};

/// Calls each kernel, and compares what it wrote with what the group's DAG and, where the partition
/// has its graph, the group's own nodes mean: all elements of a small output, else at least 64 that
/// include corners, edges and the ends of tiles. Constants are those of the partitions; other
/// inputs are drawn. Result i is nullopt where call i is right, else what is wrong, in words: a
/// wrong, missing or stray element, an access outside of a tensor, another signal, no end. The
/// calls are spread over `jobs` child processes. Errors: there are none to be had, or no memory.
Result<std::vector<std::optional<std::string>>> find_wrong_kernels(
    std::span<const KernelCall> calls, const Target& target, int jobs);

/// Whether kernels for the target can be run in this process; the error says why not.
Result<Unit> check_runnable(const Target& target);

}  // namespace pruner
