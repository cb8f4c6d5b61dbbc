// Candidate -> Program, for what is measured and for the final module only.
#pragma once

#include "lower/passes.h"
#include "space/space.h"

namespace pruner {

/// Lowers a legal candidate; `name` becomes the kernel's name. The error says why the candidate is
/// not legal; in debug builds the error also names a pass whose program breaks a rule of loop IR.
Result<Program> lower(const Space& space,
                      const Candidate& candidate,
                      std::string name,
                      const AfterLowerPass& after = {});

/// The program as it is after a pass, or after "loops" (--print=after-PASS). The error lists them.
Result<std::string> print_after(std::string_view pass,
                                const Space& space,
                                const Candidate& candidate);

}  // namespace pruner
