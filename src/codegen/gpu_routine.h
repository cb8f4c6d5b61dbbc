// Code for GPUs of the operators that are functions of the runtime on CPUs (graph/routines).
#pragma once

#include <span>
#include <string_view>

#include "codegen/codegen.h"

namespace pruner {

/// Compiles the routine `symbol` (Routine::symbol) for a GPU's target. `parameters` are those of
/// the routine's struct in graph/routines/routines.h, which the code has in it. The artifact has
/// launches and no arguments: each launch takes the routine's inputs without the parameters, by
/// their number, then the output, whose number stands behind that of the parameters. Errors: those
/// of compile(); there is no code for the routine.
Result<Artifact> compile_gpu_routine(std::string_view symbol,
                                     std::span<const int64_t> parameters,
                                     const Target& target);

}  // namespace pruner
