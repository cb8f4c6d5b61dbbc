// Files that do not outlive a failure: a folder of temporary files, and an output that takes its
// name only when it is complete.
#pragma once

#include <string>
#include <utility>

#include "support/result.h"

namespace pruner {

/// A fresh folder, removed with all that is in it.
class TemporaryFolder {
 public:
  /// Inside `parent`; empty: where the system keeps temporary files.
  static Result<TemporaryFolder> make(std::string parent);
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  std::string path(const std::string& file) const { return path_ + "/" + file; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;  // empty: moved from
};

/// A file written under another name beside `target`, then renamed over it.
class PendingFile {
 public:
  /// The error says at once that `target` cannot be written.
  static Result<PendingFile> next_to(const std::string& target);
  PendingFile(PendingFile&& other) noexcept
      : target_(std::move(other.target_)), path_(std::exchange(other.path_, "")) {}
  PendingFile& operator=(PendingFile&&) = delete;
  ~PendingFile();

  const std::string& path() const { return path_; }
  /// Puts the file in the place of `target`.
  Result<Unit> commit() const;

 private:
  PendingFile(std::string target, std::string path)
      : target_(std::move(target)), path_(std::move(path)) {}
  std::string target_, path_;  // path_ is empty when moved from
};

}  // namespace pruner
