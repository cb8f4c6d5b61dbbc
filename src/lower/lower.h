// Candidate -> Program, for what is measured and for the final module only.
#pragma once

#include "lower/program.h"
#include "space/space.h"

namespace pruner {

/// Lowers a legal candidate; `name` becomes the kernel's name.
Result<Program> lower(const Space& space, const Candidate& candidate, std::string name);

}  // namespace pruner
