#include "measure/worker_process.h"

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "measure/process_limits.h"

namespace pruner {

WorkerProcess::WorkerProcess(std::string program, std::vector<std::string> arguments)
    : program_(std::move(program)), arguments_(std::move(arguments)) {}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : program_(std::move(other.program_)),
      arguments_(std::move(other.arguments_)),
      pid_(std::exchange(other.pid_, -1)),
      fd_(std::exchange(other.fd_, -1)),
      deadline_(other.deadline_) {}

WorkerProcess::~WorkerProcess() { end(); }

bool WorkerProcess::alive() {
  if (pid_ < 0) return false;
  siginfo_t state = {};  // looked at but not reaped, so that end() can say how it ended
  waitid(P_PID, static_cast<id_t>(pid_), &state, WEXITED | WNOHANG | WNOWAIT);
  return state.si_pid == 0;
}

Result<Unit> WorkerProcess::start() {
  end();
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error("no socket for a worker: ", std::strerror(errno));
  }
  std::vector<char*> argv = {program_.data()};
  for (std::string& argument : arguments_) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const int error = posix_spawn(&pid_, program_.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  fd_ = ends[0];
  if (error == 0) return Unit{};
  pid_ = -1;
  close(std::exchange(fd_, -1));
  return Error(program_, ": cannot be started as a worker: ", std::strerror(error));
}

std::string WorkerProcess::end() {
  if (pid_ < 0) return "not started";
  kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  close(std::exchange(fd_, -1));
  return describe_end(status);
}

FrameStatus WorkerProcess::send(const Frame& request, double timeout_s) {
  deadline_ = after(timeout_s);
  return write_frame(fd_, request, deadline_);
}

ReadFrame WorkerProcess::receive() { return read_frame(fd_, deadline_); }

}  // namespace pruner
