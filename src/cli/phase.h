// --phase of the commands that run a module.
#pragma once

#include <string>

#include "cli/options.h"
#include "deploy/loaded_module.h"

namespace pruner {

void add_phase(CLI::App& app, std::string& phase);
/// Its number; the first one's where none is named. The error lists them.
Result<int> find_phase(const LoadedModule& module, const std::string& phase);

}  // namespace pruner
