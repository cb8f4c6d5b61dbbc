// GPU program -> C: one kernel a launch, in CUDA C or OpenCL C.
#pragma once

#include <string>

#include "codegen/c/dialect.h"
#include "lower/program.h"

namespace pruner {

/// Returns the source of a program that passes verify() and has launches. Kernel i is `symbol`_i;
/// plan_launches() says which arguments a kernel takes.
std::string print_source(const Program& program, const Dialect& dialect, const std::string& symbol);

}  // namespace pruner
