// --denormals of the commands that make a module.
#pragma once

#include <string>

#include "cli/options.h"

namespace pruner {

/// `kDenormalsDefault` is the value if --denormals is not given.
inline constexpr char kDenormalsDefault[] = "flush";

/// Adds --denormals to the options of the target.
void add_denormals(CLI::App& app, std::string& denormals);
/// Returns ModuleOptions::flushes_denormals of --denormals; the error names the values that there
/// are.
Result<bool> flushes_denormals(const std::string& denormals);

}  // namespace pruner
