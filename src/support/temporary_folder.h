// A folder of files that do not outlive their use, however the process ends: the folder goes with
// its owner, with a process that ends by exit_now(), and, of a process that was killed, when the
// next one makes such a folder at the same place.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "support/result.h"

namespace pruner {

/// A fresh folder, removed with all that is in it.
class TemporaryFolder {
 public:
  /// Makes a folder inside `parent`; if `parent` is empty, where the system keeps temporary files.
  /// A process's first call for a place removes the folders there that killed processes have left.
  static Result<TemporaryFolder> make(std::string parent);
  /// Like make(), inside a `parent` that is not empty. Returns nullopt if this fails; errno says
  /// why.
  static std::optional<TemporaryFolder> make_in(const std::string& parent);
  TemporaryFolder(TemporaryFolder&& other) noexcept
      : path_(std::exchange(other.path_, "")), lock_(std::exchange(other.lock_, -1)) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  std::string path(const std::string& file) const { return path_ + "/" + file; }

 private:
  TemporaryFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::string path_;  // empty: moved from
  int lock_;          // a descriptor whose lock ends with the process
};

/// Removes the temporary folders inside `parent` whose processes are gone.
void sweep_temporary_folders(const std::string& parent);

/// Removes the temporary folders of this process and ends it, without anything else.
[[noreturn]] void exit_now(int code);

}  // namespace pruner
