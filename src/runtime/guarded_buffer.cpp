#include "runtime/guarded_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "support/ceil_div.h"
#include "support/memory.h"

namespace pruner {

namespace {
Error no_memory(int64_t bytes) {
  return Error("no memory for a buffer of ", bytes, " bytes: ", std::strerror(ENOMEM));
}

constexpr int64_t kPage = 4096;      // bytes; what mprotect() can guard
constexpr int64_t kAlignment = 64;   // bytes: what data() is a multiple of
constexpr std::byte kWatched{0x5c};  // any value that kernels seldom write

constexpr int64_t round_up(int64_t n, int64_t unit) { return ceil_div(n, unit) * unit; }

std::byte* round_up(std::byte* address, int64_t unit) {
  const auto n = reinterpret_cast<intptr_t>(address);
  return address + (round_up(n, unit) - n);
}
}  // namespace

Result<GuardedBuffer> GuardedBuffer::make(int64_t bytes) {
  const int64_t content = std::max(round_up(bytes, kPage), kPage);
  const int64_t unit = content >= kHugePage ? kHugePage : kPage;
  GuardedBuffer buffer;
  // Room to begin the content at a multiple of `unit`, and a page before and after it.
  buffer.mapped_bytes_ = unit + content + kPage;
  // Pages are there when they are first touched; no swap is set aside for them.
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* mapping = mmap(nullptr, buffer.mapped_bytes_, PROT_NONE, flags, -1, 0);
  if (mapping == MAP_FAILED) return no_memory(bytes);
  buffer.mapping_ = static_cast<std::byte*>(mapping);
  std::byte* begin = round_up(buffer.mapping_ + kPage, unit);
  if (mprotect(begin, content, PROT_READ | PROT_WRITE) != 0) return no_memory(bytes);
  if (unit == kHugePage) madvise(begin, content, MADV_HUGEPAGE);
  buffer.content_ = begin;
  buffer.place_at_end(begin + content, bytes);
  return buffer;
}

GuardedBuffer GuardedBuffer::resized(int64_t bytes) && {
  std::byte* const end = this->end();
  mprotect(content_, end - content_, PROT_READ | PROT_WRITE);
  place_at_end(end, bytes);
  if (begin() != content_) mprotect(content_, begin() - content_, PROT_NONE);
  return std::move(*this);
}

void GuardedBuffer::place_at_end(std::byte* end, int64_t bytes) {
  bytes_ = bytes;
  data_ = end - std::max(round_up(bytes, kAlignment), kAlignment);
  std::fill(begin(), data_, kWatched);
  std::fill(data_ + bytes_, end, kWatched);
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept { *this = std::move(other); }

// Swapped: the other's destructor unmaps what was here.
GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  std::swap(content_, other.content_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

GuardedBuffer::~GuardedBuffer() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
}

std::byte* GuardedBuffer::begin() const {
  return data_ - reinterpret_cast<intptr_t>(data_) % kPage;
}

std::byte* GuardedBuffer::end() const {
  return data_ + std::max(round_up(bytes_, kAlignment), kAlignment);
}

void GuardedBuffer::fill(std::byte value) { std::memset(data_, static_cast<int>(value), bytes_); }

void GuardedBuffer::copy_from(const void* source) { std::memcpy(data_, source, bytes_); }

void GuardedBuffer::protect(int protection) const {
  mprotect(begin(), end() - begin(), protection);
}

void GuardedBuffer::make_read_only() const { protect(PROT_READ); }

void GuardedBuffer::make_writable() const { protect(PROT_READ | PROT_WRITE); }

bool GuardedBuffer::intact() const {
  const auto watched = [](std::byte b) { return b == kWatched; };
  return std::all_of(begin(), data_, watched) && std::all_of(data_ + bytes_, end(), watched);
}

bool GuardedBuffer::holds(const void* address) const {
  const auto* byte = static_cast<const std::byte*>(address);
  return mapping_ != nullptr && byte >= mapping_ && byte < mapping_ + mapped_bytes_;
}

}  // namespace pruner
