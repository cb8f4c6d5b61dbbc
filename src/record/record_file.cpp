// Record files: read as far as they are readable, appended to without ever losing a line.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "record/record.h"
#include "support/file.h"
#include "support/output_file.h"

namespace pruner {

std::vector<RecordLine> record_lines(std::string_view content) {
  std::vector<RecordLine> lines;
  int64_t number = 0;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    const std::string_view line = content.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos || line.front() == '#') continue;
    lines.push_back({line, number});
  }
  return lines;
}

bool look_like_records(std::span<const RecordLine> lines) {
  return std::ranges::any_of(
      lines, [](const RecordLine& line) { return line.text.starts_with("{\"i\""); });
}

namespace {

// Mends the end of a file that a writer was killed at: a whole record gets its line end, a torn one
// goes to `path`.torn.
Result<Unit> mend_end(int fd, const std::string& path) {
  TRY_ASSIGN(const std::string text, read_file(path));
  if (text.empty() || text.back() == '\n') return Unit{};
  const size_t begin = text.rfind('\n') + 1;  // start of the last line; npos + 1 is 0
  const std::string line = text.substr(begin);
  if (parse_line(line).ok()) return append_whole(fd, path, "\n");
  const std::string torn_path = path + ".torn";
  const int torn = ::open(torn_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (torn < 0) return cannot_write(torn_path);
  const Result<Unit> saved = append_whole(torn, torn_path, line + "\n");
  close(torn);
  TRY(saved);
  if (ftruncate(fd, static_cast<off_t>(begin)) != 0)
    return Error(path, ": cannot be mended: ", std::strerror(errno));
  return Unit{};
}

}  // namespace

Result<RecordFile> read_records(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_file(path));
  RecordFile file;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (line.front() == '#') continue;
    Result<Record> record = parse_line(line);
    if (record.ok()) {
      file.records.push_back(*std::move(record));
    } else if (file.skipped++ == 0) {
      file.first_skipped = path + ":" + std::to_string(number) + ": " + record.error().message();
    }
  }
  return file;
}

Result<RecordWriter> RecordWriter::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return cannot_write(path);
  RecordWriter writer(fd, path);
  const bool held = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  // Another may have set the file aside since it was opened.
  struct stat opened {
  }, named{};
  const bool moved = fstat(fd, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
                     (opened.st_ino != named.st_ino || opened.st_dev != named.st_dev);
  if (held || moved) {
    return Error(path, ": another pruner is writing to it");
  }
  TRY(mend_end(fd, path));
  return writer;
}

Result<Unit> RecordWriter::append(const Record& record) {
  return append_whole(fd_, path_, print_line(record) + "\n");
}

RecordWriter::RecordWriter(RecordWriter&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

RecordWriter& RecordWriter::operator=(RecordWriter&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

RecordWriter::~RecordWriter() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace pruner
