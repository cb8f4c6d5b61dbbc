// A subcommand: its name, what it takes, what it runs. One row in kCommands (commands.h) each.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "support/json.h"
#include "support/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace pruner {

enum ExitCode : int { kDone = 0, kInternalError = 1, kUserError = 2, kInterrupted = 130 };

/// What every command is told, whatever its own options are.
struct Invocation {
  std::string command_line;  // as given, for reports
  bool json = false, verbose = false;

  /// Prints a result in the form that was asked for; kDone.
  int show(const Json& result, std::string_view text) const;
};

/// Runs a command whose options were read -> the exit code; an error is the user's to mend.
using RunCommand = std::function<Result<int>(const Invocation& call)>;
/// Adds a command's options to `app`; what it returns runs with the values that they get.
using MakeCommand = RunCommand(CLI::App& app);

struct Command {
  std::string_view name;  // "tune", "networks export"; "networks" alone is a row too
  std::string_view help;
  MakeCommand* make;
  bool hidden = false;
};

/// Makes a command of a struct of its options: T::add_to(app) adds them, T::run(call) runs.
template <typename T>
RunCommand make_command(CLI::App& app) {
  const auto command = std::make_shared<T>();
  command->add_to(app);
  return [command](const Invocation& call) { return command->run(call); };
}

}  // namespace pruner
