// --print: what a task looks like at each stage on its way to code.
#pragma once

#include <string>
#include <string_view>

#include "deploy/module.h"

namespace pruner {

/// The text of a stage (kStages: dag, sketches, candidate, nest, draft, program, emitted, llvm,
/// asm, cuda, opencl, ptx; or after-PASS, of kLowerPasses) of `task`; from the candidate on, of the
/// recorded schedule or the default one of these forms. The error lists the stages.
Result<std::string> print_stage(std::string_view stage,
                                const Task& task,
                                const ScheduleChoice& choice,
                                std::span<const std::string> forms);

}  // namespace pruner
