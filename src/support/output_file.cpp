#include "support/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace pruner {
namespace fs = std::filesystem;

namespace {

// /dev/stdout leads there: no name of a file, though the file behind it may have one.
bool of_process(const fs::path& path) {
  return path.native().starts_with("/proc/") || path.native().starts_with("/dev/fd/");
}

/// Returns the path that links lead to; no file need exist there.
fs::path follow(fs::path path) {
  constexpr int kMostLinks = 40;
  std::error_code code;
  for (int links = 0; links < kMostLinks && !of_process(path) && fs::is_symlink(path, code);
       ++links)
    path = path.parent_path() / fs::read_symlink(path, code);
  return path;
}

Result<Unit> copy_into(const std::string& from, const std::string& place) {
  const int in = open(from.c_str(), O_RDONLY | O_CLOEXEC);
  if (in < 0) return Error(from, ": cannot be read back: ", std::strerror(errno));
  const int out = open(place.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  std::array<char, 1 << 16> piece;
  ssize_t size = 0;
  bool done = out >= 0;
  while (done && (size = read(in, piece.data(), piece.size())) > 0)
    done = write_whole(out, {piece.data(), static_cast<size_t>(size)});
  const Error error = cannot_write(place);
  close(in);
  if (out >= 0) close(out);
  return done && size == 0 ? Result<Unit>(Unit{}) : error;
}

}  // namespace

bool write_whole(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

Result<Unit> append_whole(int fd, const std::string& path, std::string_view text) {
  struct stat before;
  if (fstat(fd, &before) != 0) return cannot_write(path);
  if (write_whole(fd, text)) return Unit{};
  const Error error = cannot_write(path);
  static_cast<void>(!ftruncate(fd, before.st_size));  // the file system is at fault already
  return error;
}

Error cannot_write(const std::string& path) {
  const char* const reason = std::strerror(errno);
  return Error(path, ": cannot be written: ", reason);
}

OutputFile::OutputFile(std::string target, std::string place, bool straight, TemporaryFolder folder)
    : target_(std::move(target)),
      place_(std::move(place)),
      straight_(straight),
      folder_(std::move(folder)),
      path_(folder_.path(fs::path(place_).filename())) {}

Result<OutputFile> OutputFile::open(const std::string& target) {
  const fs::path place = follow(target);
  std::error_code code;
  const fs::file_status status = fs::status(place, code);
  if (fs::is_directory(status) || !place.has_filename())
    return Error(target, ": cannot be written: it is a folder");
  const bool straight = of_process(place) || (fs::exists(status) && !fs::is_regular_file(status));
  if (straight && access(place.c_str(), W_OK) != 0) return cannot_write(target);
  std::string parent =
      straight ? fs::temp_directory_path(code).string() : place.parent_path().string();
  if (parent.empty()) parent = ".";
  std::optional<TemporaryFolder> folder = TemporaryFolder::make_in(parent);
  if (!folder) return cannot_write(target);
  return OutputFile(target, place, straight, *std::move(folder));
}

Result<Unit> OutputFile::commit() const {
  if (straight_) return copy_into(path_, place_);
  // rename() is atomic.
  if (std::rename(path_.c_str(), place_.c_str()) != 0) return cannot_write(target_);
  return Unit{};
}

}  // namespace pruner
