// Work that may crash, done in a process of its own, and where tests on random networks get their
// numbers and put their files.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>

namespace pruner {

/// A process of ours that does some work and says what came of it.
class ChildProcess {
 public:
  /// `work` prints to standard output and standard error, which the parent reads. It is stopped
  /// after five minutes.
  explicit ChildProcess(const std::function<void()>& work);
  /// Waits for its end. The text; whether the process ended by itself.
  std::pair<std::string, bool> result();

 private:
  pid_t pid_ = 0;
  int from_ = 0;
};

/// The number that an environment variable has.
int64_t number_of(const char* variable, int64_t otherwise);

/// Returns the folder in which modules are made: on a disk, making files takes a fifth of the time.
std::string folder_of_files();

}  // namespace pruner
