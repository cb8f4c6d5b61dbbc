// Shared libraries by lld or a linker on PATH, and what stands in for LLVM in a build without it.
#include "codegen/linker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>

#include "codegen/loader.h"
#include "support/file.h"
#include "support/output_file.h"

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

/// lld writes to a mapping, and dies of SIGBUS where the disk is full: the space is asked for
/// first. A library takes about what its objects do.
Result<Unit> check_space(const std::vector<std::string>& object_files, const std::string& path) {
  constexpr uintmax_t kMore = 1 << 20;  // headers and tables
  uintmax_t bytes = kMore;
  std::error_code code;
  for (const std::string& file : object_files) bytes += std::filesystem::file_size(file, code);
  const std::string probe = path + ".space";
  const int fd = open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return cannot_write(path);
  const bool there =
      fallocate(fd, 0, 0, static_cast<off_t>(bytes)) == 0 || errno == EOPNOTSUPP || errno == ENOSYS;
  const Error error = cannot_write(path);
  close(fd);
  unlink(probe.c_str());
  return there ? Result<Unit>(Unit{}) : error;
}

/// Ends the process with a message on SIGBUS, as other programs may fill the disk while lld writes.
class WithoutBusError {
 public:
  WithoutBusError() {
    struct sigaction action {};
    action.sa_handler = [](int) {
      constexpr std::string_view kLine =
          "pruner: the module cannot be written: No space left on device\n";
      static_cast<void>(!write(STDERR_FILENO, kLine.data(), kLine.size()));
      exit_now(EXIT_FAILURE);
    };
    sigaction(SIGBUS, &action, &before_);
  }
  ~WithoutBusError() { sigaction(SIGBUS, &before_, nullptr); }
  WithoutBusError(const WithoutBusError&) = delete;

 private:
  struct sigaction before_ {};
};

/// The folder of `path` by a name of its own: lld takes each '%' in a path for a digit to draw.
class PlainFolder {
 public:
  explicit PlainFolder(const std::string& path) {
    const std::filesystem::path file = path;
    const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
    fd_ = open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    path_ = fd_ < 0 ? path : fmt::format("/proc/self/fd/{}/{}", fd_, file.filename().native());
  }
  ~PlainFolder() {
    if (fd_ >= 0) close(fd_);
  }
  PlainFolder(const PlainFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

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
  TRY(check_space(object_files, path));
  std::optional<PlainFolder> plain;
  if (PRUNER_LLD && path.find('%') != std::string::npos) plain.emplace(path);
  std::vector<std::string> options = {"-shared", "-o", plain ? plain->path() : path};
  options.insert(options.end(), object_files.begin(), object_files.end());
  // gc-sections drops code that no exported symbol reaches, such as the executor of the other kind
  // of device. relro makes the plan's pages read-only after relocation. separate-code keeps data
  // out of executable pages. A compiler that runs the linker takes each setting with a prefix.
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
    const WithoutBusError guard;
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
Result<std::unique_ptr<LoadedKernel>> load_kernel(const std::string& object,
                                                  const std::string& symbol) {
  if (is_shared_library(object)) return load_shared_library(object, symbol);
  return Error("this build has no LLVM");
}
#endif

#if !PRUNER_LLVM && !PRUNER_LLD
Result<std::string> assemble(const std::string&, const Target&) {
  return Error("this build has no LLVM");
}

Result<int64_t> write_static_library(const std::vector<std::string_view>&,
                                     const std::string&,
                                     const SymbolNaming&,
                                     std::string_view) {
  return Error("this build has no LLVM");
}
#endif

}  // namespace pruner
