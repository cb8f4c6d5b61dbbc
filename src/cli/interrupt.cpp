#include "cli/interrupt.h"

#include <unistd.h>
#include <csignal>

#include "cli/options.h"

namespace pruner {

// A signal handler reaches nothing but what is global.
static std::atomic<bool> interrupted{false};

static void on_signal(int) {
  // _exit() is one of the few calls that a signal handler may make.
  if (interrupted.exchange(true)) _exit(kInterrupted);
}

const std::atomic<bool>& catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // reads and writes that were under way go on
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return interrupted;
}

}  // namespace pruner
