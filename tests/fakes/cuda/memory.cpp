#include "memory.h"

#include <sys/mman.h>

#include <cstring>

namespace fakes {
namespace {

constexpr size_t kPage = 4096, kAlignment = 256;
constexpr size_t kGuard = 256 << 10;                     // on either side of an allocation's pages
constexpr unsigned char kWatched = 0xfb, kFresh = 0xff;  // floats of such bytes are huge, and NaN

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

DeviceMemory::~DeviceMemory() {
  for (const auto& [address, block] : blocks_) {
    munmap(block.pages - kGuard, block.page_bytes + 2 * kGuard);
  }
}

// An allocation ends as near to the last page's end as its alignment allows.
uint64_t DeviceMemory::allocate(size_t bytes) {
  const size_t aligned = round_up(bytes, kAlignment), inside = round_up(aligned, kPage);
  void* const all = mmap(
      nullptr, inside + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return 0;
  char* const pages = static_cast<char*>(all) + kGuard;
  mprotect(pages, inside, PROT_READ | PROT_WRITE);
  char* const data = pages + inside - aligned;
  std::memset(pages, kWatched, inside);
  std::memset(data, kFresh, bytes);
  mprotect(pages, inside, PROT_NONE);
  const auto address = reinterpret_cast<uint64_t>(data);
  blocks_[address] = {bytes, pages, inside, true};
  used_bytes_ += bytes;
  ++count_;
  return address;
}

bool DeviceMemory::release(uint64_t address) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end() || !found->second.live) return false;
  Block& block = found->second;
  madvise(block.pages, block.page_bytes, MADV_DONTNEED);  // the addresses stay taken
  mprotect(block.pages, block.page_bytes, PROT_NONE);
  block.live = false;
  used_bytes_ -= block.bytes;
  --count_;
  return true;
}

bool DeviceMemory::holds(uint64_t address, size_t bytes) const {
  auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return false;
  const auto& [start, block] = *--next;
  return block.live && address - start <= block.bytes && bytes <= block.bytes - (address - start);
}

std::string DeviceMemory::describe(uint64_t address) const {
  const auto of = [](const Block& block) {
    return (block.live ? " an allocation of " : " freed memory of ") + std::to_string(block.bytes) +
           " bytes";
  };
  const auto next = blocks_.upper_bound(address);
  if (next != blocks_.begin()) {
    const auto& [start, block] = *std::prev(next);
    const uint64_t offset = address - start;
    if (offset < block.bytes) return std::to_string(offset) + " bytes inside" + of(block);
    const uint64_t past = offset - block.bytes;
    if (past < kGuard) return std::to_string(past) + " bytes after" + of(block);
  }
  if (next != blocks_.end() && next->first - address < kGuard) {
    return std::to_string(next->first - address) + " bytes before" + of(next->second);
  }
  return "far from every allocation";
}

std::string DeviceMemory::find_damage() {
  std::string damage;
  for (auto& [address, block] : blocks_) {
    if (!block.live) continue;
    char* const data = reinterpret_cast<char*>(address);
    const auto look = [&](char* from, const char* end) {
      for (char* at = from; at != end; ++at) {
        if (static_cast<unsigned char>(*at) == kWatched) continue;
        if (damage.empty()) damage = describe(reinterpret_cast<uint64_t>(at));
        *at = static_cast<char>(kWatched);
      }
    };
    look(block.pages, data);
    look(data + block.bytes, block.pages + block.page_bytes);
  }
  return damage;
}

void DeviceMemory::open(bool readable) {
  for (const auto& [address, block] : blocks_) {
    if (block.live)
      mprotect(block.pages, block.page_bytes, readable ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
}

}  // namespace fakes
