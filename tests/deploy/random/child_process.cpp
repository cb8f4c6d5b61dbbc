#include "child_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "support/check.h"
#include "support/temporary_folder.h"

namespace pruner {

static constexpr unsigned kTimeLimit_s = 300;

ChildProcess::ChildProcess(const std::function<void()>& work) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  std::cout.flush();
  pid_ = fork();
  CHECK(pid_ >= 0);
  if (pid_ == 0) {
    alarm(kTimeLimit_s);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    work();
    std::cout.flush();
    exit_now(0);
  }
  close(ends[1]);
  from_ = ends[0];
}

std::pair<std::string, bool> ChildProcess::result() {
  std::string text;
  char bytes[4096];
  for (ssize_t n; (n = read(from_, bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<size_t>(n));
  close(from_);
  int status = 0;
  waitpid(pid_, &status, 0);
  if (WIFSIGNALED(status)) {
    text += "died of signal " + std::to_string(WTERMSIG(status)) + " (" +
            strsignal(WTERMSIG(status)) + ")\n";
  }
  return {text, WIFEXITED(status) && WEXITSTATUS(status) == 0};
}

int64_t number_of(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoll(text);
}

std::string folder_of_files() {
  return std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "";
}

}  // namespace pruner
