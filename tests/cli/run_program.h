// Runs the program as a user does.
#pragma once

#include <string>
#include <vector>

namespace pruner {

struct ProgramRun {
  int exit_code = -1;
  std::string out, err;
};

/// Whether the built program has the plug-in that trains.
bool can_train();

/// Runs the built program with these arguments (without that plug-in tuning gets
/// --allow-untrained); `signal_after_s` > 0: sends it SIGINT after so long.
ProgramRun run_program(const std::vector<std::string>& arguments, double signal_after_s = 0);

}  // namespace pruner
