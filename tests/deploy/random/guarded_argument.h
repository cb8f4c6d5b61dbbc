// The memory of a tensor that a module is given, for tests that watch what is touched beside it.
#pragma once

#include "runtime/guarded_buffer.h"
#include "tensor/tensor.h"

namespace pruner {

/// A tensor between two guard pages. Where it is `at_end`, it ends right before the upper page, and
/// its address is no multiple of 64.
class GuardedArgument {
 public:
  GuardedArgument(int64_t bytes, bool at_end);
  /// Writes 0xa5 into each byte; a float32 of it is -2.9e-16.
  void clear();
  /// Copies a tensor of as many bytes, and lets nobody write to it from now on.
  void set(const Tensor& tensor);
  std::byte* data() const { return buffer_.data() + pad_; }
  /// Whether nobody wrote beside the tensor since clear().
  bool intact() const;

 private:
  GuardedBuffer buffer_;
  int64_t pad_, bytes_;
};

}  // namespace pruner
