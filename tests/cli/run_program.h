// Runs the program as a user does.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/json.h"

namespace pruner {

struct ProgramRun {
  int exit_code = -1;
  std::string out, err;
};

/// Whether the built program has the plug-in that trains.
bool can_train();

/// How the program is started.
struct ProgramSettings {
  std::vector<std::string> environment = {};  // "NAME=VALUE", added to this process'
  std::string out_file = "";  // file that gets standard output; empty: `out` keeps it
  std::string first = "";     // shell commands before it: "ulimit -v 100000"
};

/// A program that runs.
struct StartedProgram {
  pid_t pid = -1;
  std::string out, err;  // files

  /// Waits for its end.
  ProgramRun wait();
};
StartedProgram start_program(const std::vector<std::string>& arguments,
                             const ProgramSettings& settings = {});

/// Runs the built program with these arguments (without that plug-in tuning gets
/// --allow-untrained); `signal_after_s` > 0: sends it SIGINT after so long.
ProgramRun run_program(const std::vector<std::string>& arguments, double signal_after_s = 0);

/// `RunsCommands` gives fixtures the output of commands, which have to succeed.
struct RunsCommands {
  /// Returns standard output.
  static std::string out(const std::vector<std::string>& arguments);
  /// Returns what --json prints.
  static Json json(std::vector<std::string> arguments);
};

}  // namespace pruner
