// Shared libraries by lld or a linker on PATH, and what stands in for LLVM in a build without it.
#include "codegen/linker.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>

#include "codegen/loader.h"
#include "support/file.h"

extern char** environ;

namespace pruner {
namespace {

// Runs a program found on PATH; what it prints is the error.
[[maybe_unused]] Result<Unit> run_program(const std::vector<std::string>& command) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return Error("no pipe for ", command[0]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& arg : command) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  pid_t process = 0;
  const int failure = posix_spawnp(&process, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  // Only the child writes from here on: reading ends when it does.
  close(ends[1]);
  std::string output;
  std::array<char, 4096> chunk;
  for (ssize_t n; (n = read(ends[0], chunk.data(), chunk.size())) > 0;) {
    output.append(chunk.data(), static_cast<size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  if (failure == 0 && waitpid(process, &status, 0) == process && status == 0) return Unit{};
  return Error(command[0], ": ", output);
}

[[maybe_unused]] bool is_on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// Only these names are seen from outside.
std::string version_script(const std::vector<std::string>& exported_symbols) {
  std::string text = "{\n";
  if (!exported_symbols.empty()) text += "  global:\n";
  for (const std::string& symbol : exported_symbols) text += "    " + symbol + ";\n";
  return text + "  local: *;\n};\n";
}

}  // namespace

Result<Unit> link_shared_library(const std::vector<std::string>& object_files,
                                 const std::string& path,
                                 const std::vector<std::string>& exported_symbols) {
  const std::string script = path + ".exports";
  TRY(write_file(script, version_script(exported_symbols)));
  std::vector<std::string> options = {"-shared", "-o", path};
  options.insert(options.end(), object_files.begin(), object_files.end());
  // gc-sections drops what no exported symbol reaches, as the executor of the other kind of device;
  // relro makes the plan's pages read-only after relocation; separate-code keeps data out of
  // executable pages.
  // As options of the linker itself, and of a compiler that runs one.
  const std::vector<std::string> settings = {
      "--version-script=" + script, "--gc-sections", "-znoexecstack", "-zrelro", "-zseparate-code"};
  const auto command = [&](const std::string& program, const std::string& prefix) {
    std::vector<std::string> all = {program};
    all.insert(all.end(), options.begin(), options.end());
    for (const std::string& setting : settings) all.push_back(prefix + setting);
    return all;
  };
  Result<Unit> linked =
      Error("no linker: this build has no lld, and ld.lld, ld and cc are not on PATH");
  if constexpr (PRUNER_LLD) {
    linked = run_lld(command("ld.lld", ""));
  } else {
    for (const std::string program : {"ld.lld", "ld", "cc"}) {
      if (!is_on_path(program)) continue;
      auto all = command(program, program == "cc" ? "-Wl," : "");
      if (program == "cc") all.push_back("-nostdlib");
      linked = run_program(all);
      break;
    }
  }
  unlink(script.c_str());
  if (linked.ok()) return linked;
  std::string problem = linked.error().message();
  std::replace(problem.begin(), problem.end(), '\n', ' ');
  return Error("cannot link ", path, ": ", problem);
}

#if !PRUNER_LLVM
Result<std::unique_ptr<LoadedKernel>> load_kernel(const std::string&, const std::string&) {
  return Error("this build has no LLVM");
}
#endif

#if !PRUNER_LLVM && !PRUNER_LLD
Result<std::string> assemble(const std::string&, const Target&) {
  return Error("this build has no LLVM");
}
#endif

}  // namespace pruner
