// The one way in which the program writes whole files: beside their place, until they are complete.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "support/result.h"
#include "support/temporary_folder.h"

namespace pruner {

/// A file that takes its place when it is complete: a reader sees the old file or the whole new
/// one, and a failure leaves the old one. Links are followed; what is no regular file (a device, a
/// FIFO, what lies behind /proc) stays, and the content is written into it.
class OutputFile {
 public:
  /// The error says at once that `target` cannot be written.
  static Result<OutputFile> open(const std::string& target);

  /// Returns the path to write the content to.
  const std::string& path() const { return path_; }
  /// Returns the path of another file that is needed until commit().
  std::string beside(const std::string& name) const { return folder_.path("." + name); }
  /// Puts the file in its place.
  Result<Unit> commit() const;

 private:
  OutputFile(std::string target, std::string place, bool straight, TemporaryFolder folder);

  std::string target_, place_;  // path as named, and the path that its links lead to
  bool straight_;               // the content is written into the file at `place_`
  TemporaryFolder folder_;
  std::string path_;
};

/// All of `bytes`; false: errno says why.
bool write_whole(int fd, std::string_view bytes);

/// Appends all of `text` to an open file, or nothing of it.
Result<Unit> append_whole(int fd, const std::string& path, std::string_view text);

/// "PATH: cannot be written: REASON" with errno's reason.
Error cannot_write(const std::string& path);

}  // namespace pruner
