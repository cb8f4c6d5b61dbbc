// Sorts more lines than memory holds: runs of them lie beside the output until they are merged.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace pruner {

class LineSorter {
 public:
  /// Runs are `path`.run0, ...; they go with the sorter.
  explicit LineSorter(std::string path, size_t memory_bytes = size_t{64} << 20)
      : path_(std::move(path)), memory_bytes_(memory_bytes) {}
  LineSorter(const LineSorter&) = delete;
  LineSorter& operator=(const LineSorter&) = delete;
  ~LineSorter();

  Result<Unit> add(std::string key, std::string_view line);
  /// Gives all lines by their keys' bytes; those of one key in the order they were added.
  Result<Unit> finish(const std::function<Result<Unit>(std::string_view line)>& take);

 private:
  struct Entry {
    std::string key, line;
  };
  Result<Unit> spill();

  std::string path_;
  size_t memory_bytes_, used_bytes_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::string> runs_;
};

}  // namespace pruner
