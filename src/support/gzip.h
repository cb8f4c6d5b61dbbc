// The door to zlib: whole files, packed with gzip or not.
#pragma once

#include <string>

#include "support/result.h"

namespace pruner {

/// The content of a file; one that starts as a gzip file is unpacked. A packed file that is damaged
/// or cut off gives what comes before, and `damaged` says so.
struct UnpackedFile {
  std::string content;
  bool damaged = false;
};
Result<UnpackedFile> read_unpacked(const std::string& path);

}  // namespace pruner
