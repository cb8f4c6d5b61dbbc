// A whole file as read-only bytes that the operating system pages in when they are read.
#pragma once

#include <string>
#include <string_view>

#include "support/result.h"

namespace pruner {

class MappedFile {
 public:
  /// The error names the path. An empty file has no bytes.
  static Result<MappedFile> open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::string_view bytes() const { return {data_, size_}; }

 private:
  MappedFile(const char* data, size_t size) : data_(data), size_(size) {}

  const char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace pruner
