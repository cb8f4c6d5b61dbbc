#include "measure/worker_loop.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "measure/process_limits.h"

namespace pruner {

int serve(const std::function<Frame(const Frame&)>& answer) {
  die_with_parent();
  // Ctrl-C, systemd and Slurm signal the parent, too; it decides what becomes of this one.
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) signal(each, SIG_IGN);
  const int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  const int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  for (;;) {
    const ReadFrame request = read_frame(in);
    if (request.status != FrameStatus::kOk) return 0;
    if (write_frame(out, answer(request.frame)) != FrameStatus::kOk) return 1;
  }
}

}  // namespace pruner
