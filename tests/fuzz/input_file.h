// An input as a file, for what reads files only.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace pruner {

/// A path for one file, which goes with the process.
inline const std::string& input_path() {
  struct Path {
    std::string text =
        std::filesystem::temp_directory_path() / ("pruner_fuzz_" + std::to_string(getpid()));
    ~Path() { unlink(text.c_str()); }
  };
  static const Path path;
  return path.text;
}

/// Writes `bytes` to the file input_path(), and returns the path.
inline const std::string& file_of(std::string_view bytes) {
  std::ofstream(input_path(), std::ios::binary) << bytes;
  return input_path();
}

}  // namespace pruner
