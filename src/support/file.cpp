#include "support/file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/memory.h"

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

Result<Unit> write_file(const std::string& path, std::string_view content) {
  const std::string temporary = path + ".tmp" + std::to_string(getpid());
  {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    if (out) out.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!out || !out.flush()) {
      const Error error(path, ": cannot be written: ", std::strerror(errno));
      std::error_code ignored;
      std::filesystem::remove(temporary, ignored);
      return error;
    }
  }
  std::error_code code;
  std::filesystem::rename(temporary, path, code);
  if (code) return Error(path, ": cannot be written: ", code.message());
  return Unit{};
}

Result<Unit> append_file(const std::string& path, std::string_view content) {
  std::ofstream out(path, std::ios::binary | std::ios::app);
  if (out) out.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!out || !out.flush()) return Error(path, ": cannot be written: ", std::strerror(errno));
  return Unit{};
}

}  // namespace pruner
