// --verify of the commands that have a module.
#pragma once

#include <string>

#include "cli/options.h"
#include "deploy/verify.h"

namespace pruner {

void add_verify(CLI::App& app, bool& verify);
/// Adds what was found to both; an error if the module is wrong.
Result<Unit> show(const Agreement& agreement, Json& json, std::string& text);

}  // namespace pruner
