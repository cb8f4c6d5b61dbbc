// Zip archives: the entries of a file in, entries stored uncompressed out. The door to libzip.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/result.h"

namespace pruner {

struct ZipEntry {
  std::string name;
  std::string bytes;
};

/// An archive that is open for reading.
class ZipReader {
 public:
  static Result<ZipReader> open(const std::string& path);

  const std::vector<std::string>& names() const { return names_; }
  /// The content of entry `index`, its checksum verified. Errors do not name the file.
  Result<std::string> read(size_t index) const;

 private:
  struct Archive;
  std::shared_ptr<const Archive> archive_;
  std::vector<std::string> names_;
};

/// A failure leaves an old file as it was. Errors name the file.
Result<Unit> write_zip(const std::string& path, std::span<const ZipEntry> entries);

}  // namespace pruner
