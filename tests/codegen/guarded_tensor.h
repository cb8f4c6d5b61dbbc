// Tensors between pages that must not be touched: one byte beyond either chosen end is a crash.
#pragma once

#include <sys/mman.h>

#include <cstring>

#include "tensor/tensor.h"

namespace pruner {

/// A copy of a tensor that ends (or starts) at a forbidden page.
class GuardedTensor {
 public:
  GuardedTensor(const Tensor& tensor, bool at_end) : bytes_(static_cast<size_t>(tensor.bytes())) {
    const size_t inside = (bytes_ + kPage - 1) / kPage * kPage;
    total_ = inside + 2 * kPage;
    start_ = static_cast<char*>(
        mmap(nullptr, total_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    CHECK(start_ != MAP_FAILED);
    mprotect(start_, kPage, PROT_NONE);
    mprotect(start_ + kPage + inside, kPage, PROT_NONE);
    data_ = start_ + kPage + (at_end ? inside - bytes_ : 0);
    std::memcpy(data_, tensor.data(), bytes_);
  }
  GuardedTensor(GuardedTensor&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)),
        data_(other.data_),
        total_(other.total_),
        bytes_(other.bytes_) {}
  ~GuardedTensor() {
    if (start_) munmap(start_, total_);
  }
  void* data() { return data_; }
  void copy_to(Tensor& tensor) const { std::memcpy(tensor.data(), data_, bytes_); }

 private:
  static constexpr size_t kPage = 4096;
  char* start_;
  char* data_;
  size_t total_, bytes_;
};

}  // namespace pruner
