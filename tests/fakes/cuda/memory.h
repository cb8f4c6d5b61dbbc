// The memory of a fake device: pages of this process that the host must not touch. An address is
// given once; what is around an allocation, and what was freed, is forbidden or watched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace fakes {

class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  ~DeviceMemory();

  /// An address; 0: this machine has no more.
  uint64_t allocate(size_t bytes);
  /// False: nothing was allocated there, or it was freed before.
  bool release(uint64_t address);
  /// Whether all of it lies in one allocation.
  bool holds(uint64_t address, size_t bytes) const;
  /// "8 bytes after an allocation of 4096 bytes"
  std::string describe(uint64_t address) const;
  /// Describes what was written around allocations, and mends it; empty: nothing.
  std::string find_damage();
  /// Makes the memory the device's to read and write, or forbids it again.
  void open(bool readable);

  size_t used_bytes() const { return used_bytes_; }
  size_t count() const { return count_; }

 private:
  struct Block {
    size_t bytes;
    char* pages;        // the first that may be opened
    size_t page_bytes;  // all of those
    bool live;
  };
  std::map<uint64_t, Block> blocks_;  // key: address
  size_t used_bytes_ = 0, count_ = 0;
};

}  // namespace fakes
