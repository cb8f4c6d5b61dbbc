// Modules whose kernels are written by hand, for tests of what a module carries and how it is
// loaded; x86-64 only.
#pragma once

#include <string>

#include "deploy/link_module.h"

namespace pruner {

/// A module of x[16], s -> y[4, 4] = x + w + w, c[3] = the first of w, where w is 0, 1, ... 15
/// times `scale`, made from its plan as `change` leaves it. A static library, if the path is of
/// one.
Result<Unit> make_tiny_module(const std::string& path,
                              void (*change)(ModulePlan&) = nullptr,
                              float scale = 1);

}  // namespace pruner
