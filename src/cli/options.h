// Commands and the options that fill their structs: the door to CLI11. One row in kCommands
// (commands.h) each.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/file_kind.h"
#include "support/json.h"
#include "support/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace pruner {

/// `kVersion` is what `pruner --version` and every report say: the version in CMakeLists.txt.
inline constexpr const char* kVersion = "0.1.0";

/// kFailed means that the machine lacks something, or a bug here. 130 is 128 + SIGINT, the shells'
/// code of a program that Ctrl-C ended. For another signal it becomes that signal's code
/// (exit_code_after_signals).
enum ExitCode : int { kDone = 0, kFailed = 1, kUserError = 2, kInterrupted = 130 };

/// Holds the settings that every command gets besides its own options.
struct Invocation {
  std::string command_line;  // text as given, for reports
  // json: one JSON value on standard output. verbose: details on standard error. quiet: neither
  // progress nor warnings.
  bool json = false, verbose = false, quiet = false;

  /// Prints a result in the form that was asked for; returns kDone.
  int show(const Json& result, std::string_view text) const;
};

/// Runs a command whose options were read -> the exit code; an error is the user's to mend.
using RunCommand = std::function<Result<int>(const Invocation& call)>;
/// Adds a command's options to `app`; what it returns runs with the values that they get.
using MakeCommand = RunCommand(CLI::App& app);

/// `CommandGroup` is a command's list in `pruner --help`, in this order; kHidden has no list.
enum class CommandGroup : uint8_t {
  kTuning,
  kModules,
  kRecords,
  kDevices,
  kFleet,
  kOther,
  kHidden
};

struct Command {
  CommandGroup group;
  std::string_view name;  // "tune", "networks export"; "networks" alone is a row too
  std::string_view help;
  MakeCommand* make;  // called for every command at each start: it only adds options
  std::array<std::string_view, 2> examples = {};  // command lines; empty of a hidden one

  bool hidden() const { return group == CommandGroup::kHidden; }
};

/// Makes a command of a struct of its options: T::add_to(app) adds them, T::run(call) runs.
template <typename T>
RunCommand make_command(CLI::App& app) {
  const auto command = std::make_shared<T>();
  command->add_to(app);
  return [command](const Invocation& call) { return command->run(call); };
}

/// An option that was added.
struct Option {
  CLI::Option* option;  // owned by the app

  /// Sets the help text, and the usual value, which counts if the option is not given.
  void help(const char* text, const char* usual = nullptr) const;
  /// Says that the option names a file to write. parse_command_line() refuses a command line whose
  /// other options name the same file. `over_inputs`: the command itself decides whether the file
  /// may take the place of one that it reads.
  const Option& writes(bool over_inputs = false) const;
  /// Says that the option's file is of one of these kinds: a file of another kind is not replaced.
  const Option& replaces(std::vector<FileKind> kinds) const;
};

/// `OptionGroup` is the subject of an option; help shows the groups in this order.
enum class OptionGroup : uint8_t {
  kInput,
  kTarget,
  kBudget,
  kSearch,
  kModel,
  kMeasuring,
  kFleet,
  kFiles,
  kOutput
};
/// Sets the group of the options that are added after this call.
void begin_group(CLI::App& app, OptionGroup group);

/// Adds an option that fills `value`: a bool, int, int64_t, uint64_t, double, std::string or
/// std::vector<std::string>, of which each flag gives one. `flags`: its names and what help calls
/// its value, "--cost-model,--model NAME"; a bool has none. Without dashes it is an argument by its
/// place: "RECORDS". A number is no less than `least`.
template <typename T>
Option add_option(CLI::App& app, const char* flags, T& value, int64_t least = 0);

/// Adds a list whose values may follow one flag: --logs a.json b.json.
Option add_list(CLI::App& app, const char* flags, std::vector<std::string>& values);

/// Adds a number of threads, which is that of all cores for 0 and where it is not given.
Option add_cores(CLI::App& app, const char* flag, int& threads);

// Options that many commands have, each in a group of its own: --seed, --jobs, --threads of a
// kernel (0: all cores), and -o, of which `help` says what is written.
void add_seed(CLI::App& app, uint64_t& seed);
void add_jobs(CLI::App& app, int& jobs);
void add_threads(CLI::App& app, int& threads);
void add_out_file(CLI::App& app,
                  std::string& out_file,
                  const char* help,
                  std::vector<FileKind> kinds);

/// A command line that was understood: a command to run, or a text that it asked for.
struct CommandLine {
  const Command* command = nullptr;
  RunCommand run;
  Invocation call;
  std::string text;                              // --help, --version
  std::shared_ptr<const void> parser = nullptr;  // has the CLI::App of `command`
};

/// Reads a command line. Errors name the command or flag that is not known, or the value that does
/// not fit, and say where help is; or they name the file that the command would write over one that
/// it reads, or over another one that it writes.
Result<CommandLine> parse_command_line(std::span<const Command> commands,
                                       int argc,
                                       const char* const* argv);

}  // namespace pruner
