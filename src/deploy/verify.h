// Whether a module computes its network: beside one of the same network with other schedules.
#pragma once

#include <string>

#include "deploy/module.h"

namespace pruner {

/// How far the outputs of two modules are apart.
struct Agreement {
  std::string output;  // of the largest difference, and which of its elements
  int64_t element = 0;
  double error = 0;                     // |a - b| there, as a share of the output's largest
  double bound = 0;                     // what rounding may make of it
  int64_t differing = 0, integers = 0;  // elements of integer outputs

  /// A few integers may differ: where floats decide between them.
  bool ok() const;
};

/// Runs each phase of both on the same seeded inputs, one after the other, and compares the states
/// at the end, too; inputs, outputs and states have to be of the same shapes.
/// The bound is 5e-4 of float32, 5e-3 of tf32, and 5e-2 where a kernel of either multiplies
/// narrower numbers.
Result<Agreement> compare_outputs(const std::string& module, const std::string& other, int threads);

/// Compares the module at `path` with one of `phases` whose schedules are drawn at random.
/// Errors: what keeps either from being built or run here.
Result<Agreement> verify_module(const std::string& path,
                                std::span<const Phase> phases,
                                const Target& target,
                                int jobs);

}  // namespace pruner
