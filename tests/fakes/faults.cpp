// A library to be put before the C library (LD_PRELOAD): the machine's faults, at a moment that the
// environment names. It goes into every process of a run; the workers are told by their arguments.
//
//   FAULT_DISK=N            the Nth write to a file, and all after it, find the disk full
//   FAULT_READ_ONLY=N       the Nth file that is made or renamed, and all after it, find the disk
//                           read-only
//   FAULT_CLOCK=1           the wall clock jumps years forth and back at each look
//   FAULT_WORKERS=KINDS,N   each Nth candidate and each Nth answer of a compiler ends as one of
//                           the letters says, in turn: c crashes, k is killed, h hangs, l leaks
//                           memory; the turns are counted in the files FAULT_RUNS and FAULT_BUILDS
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

template <typename F>
F real(const char* name, F) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

long number_of(const char* variable) {
  const char* text = getenv(variable);
  return text == nullptr ? 0 : atol(text);
}

std::atomic<long> disk_writes{0}, changes{0};

bool disk_is_full(int fd) {
  static const long from = number_of("FAULT_DISK");
  struct stat state;
  if (from == 0 || fstat(fd, &state) != 0 || !S_ISREG(state.st_mode)) return false;
  if (++disk_writes < from) return false;
  errno = ENOSPC;
  return true;
}

bool is_read_only() {
  static const long from = number_of("FAULT_READ_ONLY");
  if (from == 0 || ++changes < from) return false;
  errno = EROFS;
  return true;
}

/// Returns the kind of worker that this process is: 'b'uilds, 'r'uns; 0: none.
char worker() {
  static const char kind = [] {
    char line[4096] = {};
    const int fd = real("open", &open)("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t size = read(fd, line, sizeof line - 1);
    close(fd);
    const char* second = line + strlen(line) + 1;
    if (second >= line + size || strcmp(second, "worker") != 0) return '\0';
    return second[strlen(second) + 1];
  }();
  return kind;
}

[[noreturn]] void leak() {
  for (;;) {
    constexpr size_t kBytes = 10 << 20;
    memset(malloc(kBytes), 1, kBytes);  // touched, as a leak would be
    usleep(100000);                     // 100 MB a second
  }
}

/// Ends this process in the way that FAULT_WORKERS names, if it is the process's turn.
void come_to_an_end(long turn) {
  const char* text = getenv("FAULT_WORKERS");
  const char* comma = text == nullptr ? nullptr : strchr(text, ',');
  if (comma == nullptr) return;
  const long every = atol(comma + 1), kinds = comma - text;
  if (turn % every != every - 1) return;
  switch (text[turn / every % kinds]) {
    case 'c': raise(SIGSEGV); break;
    case 'k': raise(SIGKILL); break;
    case 'h':
      for (;;) pause();
    case 'l': leak();
    default: break;
  }
}

/// Turns are counted over all processes of a run, in a file that the environment names.
long next_turn(const char* variable) {
  const char* path = getenv(variable);
  if (path == nullptr) return 0;
  const int fd = real("open", &open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  static const auto real_write = real("write", &write);
  static_cast<void>(!real_write(fd, ".", 1));
  const long turn = static_cast<long>(lseek(fd, 0, SEEK_CUR)) - 1;
  close(fd);
  return turn;
}

timespec jumped(timespec now) {
  static const bool jumps = number_of("FAULT_CLOCK") != 0;
  static std::atomic<int> looks{0};
  constexpr time_t kYears = 20L * 365 * 24 * 3600;
  if (jumps) now.tv_sec += ++looks % 2 == 0 ? kYears : -kYears;
  return now;
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  static const auto next = real("write", &write);
  return disk_is_full(fd) ? -1 : next(fd, bytes, size);
}
ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  static const auto next = real("send", &send);
  if (worker() == 'b') come_to_an_end(next_turn("FAULT_BUILDS"));  // this is an answer
  return next(fd, bytes, size, flags);
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  static const auto next = real("pwrite", &pwrite);
  return disk_is_full(fd) ? -1 : next(fd, bytes, size, offset);
}
int fallocate(int fd, int mode, off_t offset, off_t size) {
  static const auto next = real("fallocate", &fallocate);
  return disk_is_full(fd) ? -1 : next(fd, mode, offset, size);
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  static const auto next = real("open", &open);
  if ((flags & O_CREAT) != 0 && is_read_only()) return -1;
  return next(path, flags, mode);
}
int rename(const char* from, const char* to) noexcept {
  static const auto next = real("rename", &rename);
  return is_read_only() ? -1 : next(from, to);
}

pid_t fork() noexcept {
  static const auto next = real("fork", &fork);
  const bool candidate = worker() == 'r';
  const long turn = candidate ? next_turn("FAULT_RUNS") : 0;
  const pid_t child = next();
  if (child == 0 && candidate) come_to_an_end(turn);
  return child;
}

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static const auto next = real("clock_gettime", &clock_gettime);
  const int result = next(clock, now);
  if (clock == CLOCK_REALTIME) *now = jumped(*now);
  return result;
}
time_t time(time_t* into) noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (into != nullptr) *into = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
