// Code for GPUs of the operators that are functions of the runtime on CPUs (graph/routines).
#pragma once

#include <span>
#include <string_view>

#include "codegen/codegen.h"

namespace pruner {

/// Compiles the routine `symbol` (Routine::symbol) for a GPU's target. The code has the
/// `parameters` in it, the numbers of the routine's struct in graph/routines/routines.h. The
/// artifact has launches and no arguments: each launch takes the routine's inputs without the
/// parameters, by their number, then the output, whose number stands behind the parameters'.
/// Errors: there is no code for the routine; compile() fails.
Result<Artifact> compile_gpu_routine(std::string_view symbol,
                                     std::span<const int64_t> parameters,
                                     const Target& target);

}  // namespace pruner
