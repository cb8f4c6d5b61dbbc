// Memory between two pages that may not be touched, so that a kernel which reads or writes past
// either end of an argument dies at once instead of damaging its neighbour. Big ones lie on huge
// pages, as a deployed module's do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "support/result.h"

namespace pruner {

/// An argument of a kernel that is measured; the owner of its mapping.
class GuardedBuffer {
 public:
  /// `bytes` of zeros, 64-byte aligned; only its first and last page are there yet. The upper
  /// guard page begins less than 64 bytes after the end, the lower one ends less than 4096 bytes
  /// before the beginning; the bytes between are watched by intact().
  static Result<GuardedBuffer> make(int64_t bytes);
  /// The same in the memory of this one, whose capacity() is enough; the bytes are whatever they
  /// were.
  GuardedBuffer resized(int64_t bytes) &&;
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;
  ~GuardedBuffer();

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  /// The most bytes that resized() can have.
  int64_t capacity() const { return end() - content_; }
  std::span<std::byte> span() const { return {data_, static_cast<size_t>(bytes_)}; }

  /// Sets every byte; from now on all pages are there.
  void fill(std::byte value);
  /// Reads bytes() bytes.
  void copy_from(const void* source);
  /// Writing is an access violation from now on; or is not, any more.
  void make_read_only() const;
  void make_writable() const;
  /// Whether the bytes between the guard pages and the memory are as they were.
  bool intact() const;
  /// Whether `address` lies in this buffer or its guard pages.
  bool holds(const void* address) const;

 private:
  GuardedBuffer() = default;
  void place_at_end(std::byte* end, int64_t bytes);
  void protect(int protection) const;
  std::byte* begin() const;  // end of the lower guard page
  std::byte* end() const;    // start of the upper guard page

  std::byte* mapping_ = nullptr;  // lower guard page, memory, upper guard page
  int64_t mapped_bytes_ = 0;      // size of all three parts
  std::byte* content_ = nullptr;  // end of the largest buffer's lower guard page
  std::byte* data_ = nullptr;     // a multiple of 64, as near the upper guard page as that allows
  int64_t bytes_ = 0;
};

}  // namespace pruner
