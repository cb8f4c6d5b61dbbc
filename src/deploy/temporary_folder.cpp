#include "deploy/temporary_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace pruner {
namespace fs = std::filesystem;

Result<TemporaryFolder> TemporaryFolder::make(std::string parent) {
  std::error_code error;
  if (parent.empty()) parent = fs::temp_directory_path(error).string();
  if (parent.empty()) return Error("no folder for temporary files: ", error.message());
  std::string path = parent + "/pruner-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) {
    return Error(parent, ": cannot make a folder in it: ", std::strerror(errno));
  }
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Result<PendingFile> PendingFile::next_to(const std::string& target) {
  if (fs::is_directory(target)) return Error(target, ": cannot write: it is a folder");
  // mkstemp's mode would keep others from reading; the linker makes the file anew.
  std::string path = target + ".XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) return Error(target, ": cannot write: ", std::strerror(errno));
  close(file);
  return PendingFile(target, std::move(path));
}

PendingFile::~PendingFile() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove(path_, ignored);  // gone already when it was committed
}

Result<Unit> PendingFile::commit() const {
  std::error_code error;
  // rename() is atomic: who opens the target finds the old file, or the new one and all of it.
  fs::rename(path_, target_, error);
  if (error) return Error(target_, ": cannot write: ", error.message());
  return Unit{};
}

}  // namespace pruner
