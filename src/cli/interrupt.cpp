#include "cli/interrupt.h"

#include <fcntl.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <thread>

#include "support/temporary_folder.h"

namespace pruner {

// A signal handler reaches nothing but what is global.
static std::atomic<int> received{0};  // the first signal
static std::atomic<bool> in_order{false}, interrupted{false};
static std::array<int, 2> wake = {-1, -1};

static void on_signal(int signal) {
  const int error = errno;
  int none = 0;
  received.compare_exchange_strong(none, signal);
  if (in_order && !interrupted.exchange(true)) return;
  // A thread removes the temporary folders, since a signal handler may not.
  if (wake[1] < 0 || write(wake[1], "", 1) != 1) _exit(128 + received);
  errno = error;
}

// Waits for a signal that ends the program.
static void end_when_woken() {
  char byte = 0;
  while (read(wake[0], &byte, 1) < 0 && errno == EINTR) {
  }
  exit_now(128 + received);
}

void catch_signals() {
  try {
    if (pipe2(wake.data(), O_CLOEXEC) == 0) std::thread(end_when_woken).detach();
  } catch (const std::system_error&) {  // no thread: what is left behind waits for the next run
    wake[1] = -1;
  }
  signal(SIGXFSZ, SIG_IGN);
  struct sigaction action {
  }, before{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // reads and writes that were under way go on
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) {
    sigaction(each, &action, &before);
    if (each == SIGHUP && before.sa_handler == SIG_IGN) sigaction(each, &before, nullptr);
  }
}

const std::atomic<bool>& catch_interrupts() {
  in_order = true;
  return interrupted;
}

void release_interrupts() { in_order = false; }

int exit_code_after_signals(int code) { return received != 0 ? 128 + received : code; }

}  // namespace pruner
