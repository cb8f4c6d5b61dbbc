// GPU kernels that are written by hand, in place of a program: one thread for each of some units.
#pragma once

#include <string>

#include "codegen/c/dialect.h"
#include "codegen/codegen.h"

namespace pruner {

/// Returns the spelling of the target's C.
const Dialect& dialect_of(const Target& target);

/// Compiles a kernel for a GPU's target. `parameters` and `body` are text in the target's C. The
/// body runs in `units` threads; `i`, a 64-bit integer, is the number of the unit. The artifact has
/// one launch, whose kernel takes the arguments of these numbers, and no list of arguments. Errors:
/// those of compile().
Result<Artifact> compile_written_kernel(const std::string& name,
                                        const std::string& parameters,
                                        const std::string& body,
                                        int64_t units,
                                        std::vector<int> arguments,
                                        const Target& target);

}  // namespace pruner
