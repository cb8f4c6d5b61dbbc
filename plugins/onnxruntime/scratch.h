// A folder for files on their way, and a file of some bytes.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/result.h"

namespace pruner::ort {

/// A folder that goes with its owner; no path where it cannot be made.
class Scratch {
 public:
  explicit Scratch(const std::string& within) : path_(within + "/pruner-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Result<Unit> write_bytes(const std::string& bytes, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  if (!file) return Error(path, ": cannot be written");
  return Unit{};
}

}  // namespace pruner::ort
