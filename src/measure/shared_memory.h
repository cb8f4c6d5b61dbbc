// Memory that a process shares with the children it forks: what they leave there outlives them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace pruner {

/// The owner of a mapping of zeros, whose pages are there when they are first touched.
class SharedMemory {
 public:
  explicit SharedMemory(size_t bytes) : bytes_(bytes) {
    constexpr int kFlags = MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE;
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() {
    if (mapped()) munmap(memory_, bytes_);
  }

  /// Whether there was room for it.
  bool mapped() const { return memory_ != MAP_FAILED; }
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  size_t bytes_;
  void* memory_;
};

/// A T in such memory.
template <typename T>
class Shared {
 public:
  Shared() : memory_(sizeof(T)) {
    if (mapped()) new (memory_.data()) T;
  }
  bool mapped() const { return memory_.mapped(); }
  T& operator*() const { return *reinterpret_cast<T*>(memory_.data()); }
  T* operator->() const { return &**this; }

 private:
  SharedMemory memory_;
};

}  // namespace pruner
