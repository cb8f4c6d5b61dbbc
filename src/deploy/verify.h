// Whether a module computes its network: beside the reference interpreter over the network as it
// was given, and beside modules that are made of it at one shape alone, with other schedules.
#pragma once

#include <string>

#include "deploy/module.h"

namespace pruner {

/// Holds how far the outputs of a module and of its counterpart are apart.
struct Agreement {
  std::string output;   // the output with the largest difference; empty: there is none
  int64_t element = 0;  // the place of that difference
  double error = 0;     // |a - b| there, as a share of the output's largest
  double bound = 0;     // greatest error that rounding may cause
  int64_t differing = 0, integers = 0;  // elements of integer outputs
  std::string where = {};               // the shape with that difference; empty: the only one
  std::string wrong = {};  // a fault other than a difference, such as an output's shape
  int modules = 0;         // the number of other modules in the comparison
  int shapes = 0;          // the number of shapes that the interpreter was run at
  int64_t elements = 0;    // the number of elements that the interpreter computed

  /// A few integers may differ: where floats decide between them.
  bool ok() const;
};

/// Runs each phase of both on the same seeded inputs, one after the other, and compares the states
/// at the end, too; inputs, outputs and states have to be of the same shapes.
/// The bound is 5e-4 of float32, 5e-3 of tf32, and 5e-2 where a kernel of either multiplies
/// narrower numbers.
Result<Agreement> compare_outputs(const std::string& module, const std::string& other, int threads);

/// Compares the module at `path` with what `phases` mean. Nothing of how the module was made is
/// used beyond what the user gave:
/// - The interpreter computes 16 drawn elements of each output (fewer of each of many) from the
///   graph as it was imported, before all passes, or from an operator's DAG; at up to 64 shapes.
/// - A module of the network imported at one shape alone, of schedules that are drawn at random,
///   gives all elements; of a range one at each of these shapes.
/// If the data decide extents of a network, the interpreter computes each stage by itself, at 8
/// shapes. Over a range both comparisons take a minute or two at most, and use at least 8 shapes.
/// Errors: either module cannot be made or run here.
Result<Agreement> verify_module(const std::string& path,
                                std::span<const Phase> phases,
                                const Target& target,
                                int jobs);

}  // namespace pruner
