#include "support/temporary_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>

namespace pruner {
namespace fs = std::filesystem;

namespace {

constexpr const char* kPrefix = ".pruner-";
constexpr const char* kLock = "/.lock";

// The state that exit_now() needs: the folders of this process, and the places that were swept.
struct Folders {
  std::mutex mutex;
  std::set<std::string> mine, swept;
};

Folders& folders() {
  static auto& all = *new Folders;  // exit_now() may come after static objects are gone
  return all;
}

void remove_folder(const std::string& path) {
  std::error_code ignored;
  // Another thread may still be writing into it.
  for (int attempt = 0; attempt < 3; ++attempt) {
    fs::remove_all(path, ignored);
    if (!ignored) return;
  }
}

// A descriptor that holds the lock of a new folder; -1: errno says why, ENOENT where a sweep was
// faster.
int hold(const std::string& folder) {
  const int fd = ::open((folder + kLock).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  const bool taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  struct stat state;
  if (!taken && fstat(fd, &state) == 0 && state.st_nlink > 0) return fd;
  close(fd);
  errno = ENOENT;
  return -1;
}

// Removes a folder unless a living process holds its lock. One without a lock is being made, or was
// left before it had any file.
void sweep(const std::string& folder) {
  struct stat state;
  if (lstat(folder.c_str(), &state) != 0 || !S_ISDIR(state.st_mode) || state.st_uid != geteuid())
    return;
  const int fd = ::open((folder + kLock).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) {
    rmdir(folder.c_str());
    return;
  }
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) remove_folder(folder);
  close(fd);
}

}  // namespace

void sweep_temporary_folders(const std::string& parent) {
  std::error_code ignored;
  for (fs::directory_iterator at(parent, ignored), end; at != end; at.increment(ignored)) {
    if (at->path().filename().native().starts_with(kPrefix)) sweep(at->path());
    if (ignored) return;
  }
}

std::optional<TemporaryFolder> TemporaryFolder::make_in(const std::string& parent) {
  Folders& all = folders();
  {
    const std::lock_guard lock(all.mutex);
    if (all.swept.insert(parent).second) sweep_temporary_folders(parent);
  }
  constexpr int kAttempts = 8;  // another process may sweep a folder that has no lock yet
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string path = parent + "/" + kPrefix + "XXXXXX";
    const std::lock_guard lock(all.mutex);
    if (mkdtemp(path.data()) == nullptr) return std::nullopt;
    if (const int fd = hold(path); fd >= 0) {
      all.mine.insert(path);
      return TemporaryFolder(std::move(path), fd);
    }
    const int error = errno;
    remove_folder(path);
    errno = error;
    if (error != ENOENT) break;
  }
  return std::nullopt;
}

Result<TemporaryFolder> TemporaryFolder::make(std::string parent) {
  std::error_code error;
  if (parent.empty()) parent = fs::temp_directory_path(error).string();
  if (parent.empty()) return Error("no folder for temporary files: ", error.message());
  if (std::optional<TemporaryFolder> folder = make_in(parent)) return *std::move(folder);
  return Error(parent, ": cannot make a folder in it: ", std::strerror(errno));
}

TemporaryFolder::~TemporaryFolder() {
  if (path_.empty()) return;
  Folders& all = folders();
  const std::lock_guard lock(all.mutex);
  remove_folder(path_);
  all.mine.erase(path_);
  close(lock_);
}

void exit_now(int code) {
  Folders& all = folders();
  all.mutex.lock();  // and never given back: no folder is made any more
  for (const std::string& folder : all.mine) remove_folder(folder);
  _exit(code);
}

}  // namespace pruner
