// The program: reads the command line, runs a command, turns errors into one line and an exit code.
#include <fmt/format.h>

#include <exception>
#include <new>

#include "cli/commands.h"
#include "support/log.h"

namespace pruner {

// The one line on standard error; gives `code` back.
static int fail(const Error& error, int code) {
  fmt::print(stderr, "pruner: {}\n", error.message());
  return code;
}

static int run(int argc, const char* const* argv) {
  const Result<CommandLine> line = parse_command_line(kCommands, argc, argv);
  if (!line.ok()) return fail(line.error(), kUserError);
  if (!line->command) {
    fmt::print("{}", line->text);
    return kDone;
  }
  init_log(line->call.verbose);
  const Result<int> code = line->run(line->call);
  return code.ok() ? *code : fail(code.error(), kUserError);
}

}  // namespace pruner

int main(int argc, char** argv) {
  // Ours throws nothing; a library that does is a bug here, not the user's.
  try {
    return pruner::run(argc, argv);
  } catch (const std::bad_alloc&) {
    return pruner::fail(pruner::Error("out of memory"), pruner::kInternalError);
  } catch (const std::exception& e) {
    return pruner::fail(pruner::Error("internal error: ", e.what()), pruner::kInternalError);
  }
}
