// Runs kernels outside of modules as modules run them: subnormal numbers are zeros.
#pragma once

#include "runtime/module/float_mode.h"

namespace pruner {

/// Takes subnormal numbers for zeros in the calling thread, and in parts of its pools, during the
/// object's life. Then the thread has its own mode again.
class FlushDenormals {
 public:
  FlushDenormals() : before_(pruner_float_mode()) {
    pruner_set_float_mode(pruner_flushing(before_));
  }
  ~FlushDenormals() { pruner_set_float_mode(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  const uint64_t before_;
};

}  // namespace pruner
