#include "cli/run_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
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

StartedProgram start_program(const std::vector<std::string>& arguments,
                             const ProgramSettings& settings) {
  static int number = 0;
  StartedProgram program;
  program.out = (std::filesystem::temp_directory_path() / "pruner_cli_").string() +
                std::to_string(getpid()) + "_" + std::to_string(++number);
  program.err = program.out + ".err";
  std::vector<std::string> words = {PRUNER_BINARY};
  if (!settings.first.empty())
    words = {"/bin/sh", "-c", settings.first + " && exec \"$0\" \"$@\"", PRUNER_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  // Builds without LibTorch (sanitizers) tune as well as they can.
  const bool tunes = !arguments.empty() && (arguments[0] == "tune" || arguments[0] == "compare" ||
                                            arguments[0] == "simulate");
  if (tunes && !can_train()) words.emplace_back("--allow-untrained");
  std::vector<std::string> variables = settings.environment;
  for (char** each = environ; *each != nullptr; ++each) variables.emplace_back(*each);
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  };
  const std::string out = settings.out_file.empty() ? program.out : settings.out_file;

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kHow = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), kHow, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, program.err.c_str(), kHow, 0600);
  // The program starts as from a terminal: under nohup the tests' own SIGHUP is ignored.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&defaults, each);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int failed = posix_spawn(&program.pid,
                                 words[0].c_str(),
                                 &actions,
                                 &attributes,
                                 pointers(words).data(),
                                 pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) program.pid = -1;
  return program;
}

ProgramRun StartedProgram::wait() {
  if (pid < 0) return {};
  ProgramRun run;
  int status = 0;
  waitpid(pid, &status, 0);
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (std::filesystem::exists(out)) run.out = *read_file(out);
  const Result<std::string> err_text = read_file(err);
  if (!err_text.ok()) return {};  // someone emptied the folder of temporary files
  run.err = *err_text;
  std::filesystem::remove(out);
  std::filesystem::remove(err);
  return run;
}

ProgramRun run_program(const std::vector<std::string>& arguments, double signal_after_s) {
  StartedProgram program = start_program(arguments);
  if (signal_after_s > 0 && program.pid > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(signal_after_s));
    kill(program.pid, SIGINT);
  }
  return program.wait();
}

std::string RunsCommands::out(const std::vector<std::string>& arguments) {
  const ProgramRun run = run_program(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run.out;
}

Json RunsCommands::json(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const std::string printed = out(arguments);
  const Result<Json> read = parse_json(printed);
  EXPECT_TRUE(read.ok()) << printed;
  return read.ok() ? *read : Json();
}

}  // namespace pruner
