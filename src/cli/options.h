// The door to CLI11: options that fill the fields of a command's struct, and what a command line
// says.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/command.h"

namespace pruner {

/// An option that was added.
struct Option {
  CLI::Option* option;

  void help(const char* text) const;  // says what it is for
};

/// Adds an option that fills `value`: a bool, int, int64_t, uint64_t, double, std::string or
/// std::vector<std::string>, of which each flag gives one. `flags`: "--cost-model,--model"; without
/// dashes it is an argument by its place. A number is no less than `least`.
template <typename T>
Option add_option(CLI::App& app, const char* flags, T& value, int64_t least = 0);

/// Adds a list whose values may follow one flag: --logs a.json b.json.
Option add_list(CLI::App& app, const char* flags, std::vector<std::string>& values);

/// Adds a number of threads, which is that of all cores for 0 and where it is not given.
Option add_cores(CLI::App& app, const char* flag, int& threads);

// Options that many commands have: --seed, --jobs, --threads of a kernel (0: all cores), -o.
void add_seed(CLI::App& app, uint64_t& seed);
void add_jobs(CLI::App& app, int& jobs);
void add_threads(CLI::App& app, int& threads);
void add_out_file(CLI::App& app, std::string& out_file);

/// A command line that was understood: a command to run, or a text that it asked for.
struct CommandLine {
  const Command* command = nullptr;
  RunCommand run;
  Invocation call;
  std::string text;  // --help, --version
};

/// Reads a command line. Errors name the command or flag that is not known, or the value that does
/// not fit, and say where help is.
Result<CommandLine> parse_command_line(std::span<const Command> commands,
                                       int argc,
                                       const char* const* argv);

}  // namespace pruner
