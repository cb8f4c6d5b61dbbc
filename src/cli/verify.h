// --verify of the commands that have a module.
#pragma once

#include <string>

#include "cli/options.h"
#include "deploy/verify.h"

namespace pruner {

void add_verify(CLI::App& app, bool& verify);
/// Adds --no-check, which leaves out what build_module() does by itself (ModuleOptions::check).
void add_no_check(CLI::App& app, bool& no_check);
/// Adds how the kernels of a module were checked to both.
void show_checked(const ModuleSummary& summary, Json& json, std::string& text);
/// Adds what was found to both; an error if the module is wrong.
Result<Unit> show(const Agreement& agreement, Json& json, std::string& text);

}  // namespace pruner
