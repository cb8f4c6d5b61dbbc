// The measurer's side of a worker: a process of this program that answers frames, watched, and made
// anew when it is gone.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "measure/frame.h"

namespace pruner {

class WorkerProcess {
 public:
  /// Starts nothing yet. `arguments` follow the program's name.
  WorkerProcess(std::string program, std::vector<std::string> arguments);
  WorkerProcess(WorkerProcess&& other) noexcept;
  ~WorkerProcess();  // ends it

  /// Whether a process is there and has not died unasked.
  bool alive();
  Result<Unit> start();
  /// Kills the process; the words say how it had ended: "SIGKILL", "exit code 1".
  std::string end();

  /// Sends a request that is to be answered within `timeout_s`; kClosed or kTimeout: end() it.
  FrameStatus send(const Frame& request, double timeout_s);
  /// Receives the answer to the last request.
  ReadFrame receive();

  int fd() const { return fd_; }  // readable when an answer, or the end, is there
  Deadline deadline() const { return deadline_; }

 private:
  std::string program_;
  std::vector<std::string> arguments_;
  pid_t pid_ = -1;
  int fd_ = -1;
  Deadline deadline_ = kNoDeadline;
};

}  // namespace pruner
