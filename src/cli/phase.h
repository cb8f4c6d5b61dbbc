// --phase of the commands that run a module.
#pragma once

#include <string>

#include "cli/options.h"
#include "deploy/loaded_module.h"

namespace pruner {

void add_phase(CLI::App& app, std::string& phase);
/// Returns the number of a phase, the first one's if `phase` is empty. The error lists the phases.
Result<int> find_phase(const LoadedModule& module, const std::string& phase);
/// The extents of the module's symbols that --dim says; without it the greatest. Errors: a range; a
/// dimension that the module does not have, or one of its own that is missing beside others.
Result<std::vector<int64_t>> find_extents(const LoadedModule& module,
                                          const std::vector<std::string>& dims);

}  // namespace pruner
