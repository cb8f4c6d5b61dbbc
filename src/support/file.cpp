#include "support/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/memory.h"
#include "support/output_file.h"

namespace pruner {

Result<Unit> check_readable(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return Error(path, ": no such file");
  if (std::filesystem::is_directory(path, code)) return Error(path, ": is a folder, not a file");
  // A pipe may never end, nor even open.
  if (!std::filesystem::is_regular_file(path, code))
    return Error(path, ": is a pipe or a device, expected a file");
  return Unit{};
}

Result<std::string> read_file(const std::string& path) {
  TRY(check_readable(path));
  std::error_code unknown;
  const uintmax_t size = std::filesystem::file_size(path, unknown);
  if (!unknown) TRY(check_memory(path, static_cast<double>(size)));
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error(path, ": cannot be read: ", std::strerror(errno));
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

// Writes to the file `at`, which stands for `path` in errors.
static Result<Unit> write_to(const std::string& path,
                             const std::string& at,
                             int how,
                             std::string_view content) {
  const int fd = open(at.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666);
  const bool written = fd >= 0 && write_whole(fd, content);
  const Error error = cannot_write(path);
  const bool closed = fd < 0 || close(fd) == 0;  // some file systems tell of a full disk here
  if (!written) return error;
  return closed ? Result<Unit>(Unit{}) : cannot_write(path);
}

Result<Unit> write_file(const std::string& path, std::string_view content) {
  TRY_ASSIGN(const OutputFile output, OutputFile::open(path));
  TRY(write_to(path, output.path(), O_TRUNC, content));
  return output.commit();
}

Result<Unit> append_file(const std::string& path, std::string_view content) {
  return write_to(path, path, O_APPEND, content);
}

}  // namespace pruner
