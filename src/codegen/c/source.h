// GPU program -> C: one kernel a launch, in CUDA C or OpenCL C.
#pragma once

#include <string>

#include "codegen/c/dialect.h"
#include "lower/program.h"

namespace pruner {

/// The source of a program that passes verify(), and has launches. Kernel i is `symbol`_i; it takes
/// what plan_launches() says.
std::string print_source(const Program& program, const Dialect& dialect, const std::string& symbol);

}  // namespace pruner
