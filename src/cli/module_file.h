// -o of the commands that make a module, and whether the module may replace the file that is there:
// a module or a static library of ours, but no other file unless --force is given.
#pragma once

#include <string>

#include "cli/options.h"

namespace pruner {

/// -o and --force.
struct ModuleFileOptions {
  std::string file;    // the module to write; empty: the command chooses a name
  bool force = false;  // replace any file

  void add_to(CLI::App& app, const char* help);
  /// Returns an error where a module at `path`, or the header of a static library, would replace a
  /// file that `pruner compile` has not made. The error says what the file is. Commands call
  /// check() before they search or compile.
  Result<Unit> check(const std::string& path) const;
};

}  // namespace pruner
