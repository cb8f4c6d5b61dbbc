// The program: reads the command line, runs a command, turns errors into one line and an exit code.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>
#include <system_error>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "support/log.h"
#include "support/machine_fault.h"
#include "support/output_file.h"
#include "support/temporary_folder.h"

namespace pruner {

// The one line on standard error; gives `code` back.
static int fail(const Error& error, int code) {
  // fmt::print() would throw where standard error is full, too.
  std::fputs(("pruner: " + error.message() + "\n").c_str(), stderr);
  return code;
}

/// Returns the exit code of a command's result. A lack of the machine is not the user's fault.
static int exit_code(const Result<int>& result) {
  if (result.ok()) return *result == kInterrupted ? exit_code_after_signals(*result) : *result;
  const bool machine = is_machine_fault(result.error().message());
  return exit_code_after_signals(fail(result.error(), machine ? kFailed : kUserError));
}

static int run(int argc, const char* const* argv) {
  const Result<CommandLine> line = parse_command_line(kCommands, argc, argv);
  if (!line.ok()) return fail(line.error(), kUserError);
  if (!line->command) {
    fmt::print("{}", line->text);
    return kDone;
  }
  if (!line->command->hidden()) catch_signals();  // workers end with their measurer
  init_log(line->call.verbose ? LogLevel::kDetail
           : line->call.quiet ? LogLevel::kError
                              : LogLevel::kWarning);
  return exit_code(line->run(line->call));
}

// Returns an exception's error: the machine lacks something, or there is a bug here.
static Error thrown(const std::exception& e) {
  if (std::ferror(stdout) != 0) return cannot_write("standard output");
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr)
    return Error("out of memory: the machine, or a limit (ulimit -v), allows no more");
  if (const auto* system = dynamic_cast<const std::system_error*>(&e);
      system != nullptr && is_machine_fault(system->what()))
    return Error("no thread: ",
                 system->what(),
                 "; the machine, or a limit (ulimit -u, -v), ",
                 "allows no more");
  return Error("internal error: ", e.what());
}

// An exception that left a thread, or code that has none.
[[noreturn]] static void on_terminate() {
  Error error("internal error: terminated");
  if (const std::exception_ptr current = std::current_exception()) {
    try {
      std::rethrow_exception(current);
    } catch (const std::exception& e) {
      error = thrown(e);
    } catch (...) {
    }
  }
  exit_now(fail(error, kFailed));
}

}  // namespace pruner

int main(int argc, char** argv) {
  std::set_terminate(pruner::on_terminate);
  // Ours throws nothing; a library that does is a bug here, not the user's.
  try {
    const int code = pruner::run(argc, argv);
    if (std::fflush(stdout) == 0) return code;
    return pruner::fail(pruner::cannot_write("standard output"), pruner::kFailed);
  } catch (const std::exception& e) {
    return pruner::fail(pruner::thrown(e), pruner::kFailed);
  }
}
