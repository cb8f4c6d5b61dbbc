#include "cli/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <chrono>
#include <filesystem>
#include <thread>

#include "support/file.h"

extern char** environ;

namespace pruner {

bool can_train() {
  const std::filesystem::path program = PRUNER_BINARY;
  return std::filesystem::exists(program.parent_path() / "libpruner_torch.so");
}

ProgramRun run_program(const std::vector<std::string>& arguments, double signal_after_s) {
  const std::string base =
      (std::filesystem::temp_directory_path() / "pruner_cli_").string() + std::to_string(getpid());
  const std::string out = base + ".out", err = base + ".err";
  std::vector<char*> argv = {const_cast<char*>(PRUNER_BINARY)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  // Builds without LibTorch (sanitizers) tune as well as they can.
  const std::string untrained = "--allow-untrained";
  const bool tunes = !arguments.empty() && (arguments[0] == "tune" || arguments[0] == "compare" ||
                                            arguments[0] == "simulate");
  if (tunes && !can_train()) argv.push_back(const_cast<char*>(untrained.c_str()));
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ProgramRun run;
  pid_t pid = -1;
  const bool started =
      posix_spawn(&pid, PRUNER_BINARY, &actions, nullptr, argv.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  if (!started) return run;
  if (signal_after_s > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(signal_after_s));
    kill(pid, SIGINT);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  const Result<std::string> out_text = read_file(out), err_text = read_file(err);
  if (!out_text.ok() || !err_text.ok()) return {};  // someone emptied the folder of temporary files
  run.out = *out_text;
  run.err = *err_text;
  std::filesystem::remove(out);
  std::filesystem::remove(err);
  return run;
}

}  // namespace pruner
