#include "measure/process_limits.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <new>

namespace pruner {

namespace {

void set_limit(__rlimit_resource resource, rlim_t value) {
  const rlimit limit{value, value};
  setrlimit(resource, &limit);
}

int64_t address_space_bytes() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

}  // namespace

void die_with_parent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

void limit_this_process(int64_t memory_bytes, double cpu_s) {
  set_limit(RLIMIT_CORE, 0);
  if (cpu_s > 0) set_limit(RLIMIT_CPU, static_cast<rlim_t>(std::ceil(cpu_s)));
  std::set_new_handler([] { _exit(ENOMEM); });
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they map terabytes
  set_limit(RLIMIT_AS, static_cast<rlim_t>(address_space_bytes() + memory_bytes));
#endif
}

std::string describe_end(int wait_status) {
  if (WIFEXITED(wait_status)) {
    const int code = WEXITSTATUS(wait_status);
    return code == ENOMEM ? "out of memory" : "exit code " + std::to_string(code);
  }
  const int signal = WTERMSIG(wait_status);
  const char* name = sigabbrev_np(signal);
  if (name == nullptr) return "signal " + std::to_string(signal);
  return std::string("SIG") + name;
}

}  // namespace pruner
