#include "onnxruntime/program.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

extern char** environ;

namespace pruner::ort {

namespace fs = std::filesystem;

static fs::path library_folder() {
  Dl_info found;
  if (dladdr(reinterpret_cast<const void*>(&find_program), &found) == 0) return {};
  std::error_code ignored;
  return fs::weakly_canonical(found.dli_fname, ignored).parent_path();
}

static bool is_program(const fs::path& path) {
  return !path.empty() && !fs::is_directory(path) && access(path.c_str(), X_OK) == 0;
}

Result<std::string> find_program(const std::string& given) {
  if (!given.empty()) {
    if (is_program(given)) return given;
    return Error("the option program names \"", given, "\", which is no program");
  }
  std::vector<fs::path> places;
  if (const char* set = std::getenv("PRUNER")) places.emplace_back(set);
  const fs::path folder = library_folder();
  places.push_back(folder.parent_path() / "pruner/bin/pruner");  // in Python's packages
  places.push_back(folder / "../../bin/pruner");                 // beside lib/pruner/
  const char* path = std::getenv("PATH");
  const std::string folders = path == nullptr ? "" : path;
  for (size_t at = 0; at < folders.size();) {
    const size_t end = std::min(folders.find(':', at), folders.size());
    places.push_back(fs::path(folders.substr(at, end - at)) / "pruner");
    at = end + 1;
  }
  for (const fs::path& place : places) {
    if (is_program(place)) return place.string();
  }
  return Error(
      "the program pruner is not here: install the package pruner, put the program on the PATH, or "
      "say where it is in the option program");
}

static std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The last line that the program says of itself.
static std::string complaint(const std::string& said) {
  static constexpr char kBegin[] = "pruner: ";
  std::string last = said;
  for (size_t at = 0; at < said.size();) {
    const size_t end = std::min(said.find('\n', at), said.size());
    const std::string line = said.substr(at, end - at);
    if (line.rfind(kBegin, 0) == 0) last = line.substr(std::strlen(kBegin));
    at = end + 1;
  }
  return last;
}

Result<std::string> run_program(const std::string& program,
                                const std::vector<std::string>& arguments,
                                const std::string& scratch) {
  const std::string output = scratch + "/output", errors = scratch + "/errors";
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  const int how = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), how, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), how, 0600);
  pid_t child = 0;
  const int code = posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return Error(program, " cannot be started: ", std::strerror(code));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Error(program, ": its end is not known: ", std::strerror(errno));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text_of(output);
  const std::string said = complaint(text_of(errors));
  return Error(said.empty() ? "pruner " + arguments[0] + " failed" : said);
}

}  // namespace pruner::ort
