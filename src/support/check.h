// CHECK and DCHECK: our own invariants. A broken one prints where and what, then aborts; what a
// user can cause is an Error instead (support/result.h).
#pragma once

#include <cstdlib>
#include <iostream>
#include <sstream>

namespace pruner {

/// Collects the message of a failed check and aborts when the statement ends.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition) {
    out_ << file << ":" << line << ": check failed: " << condition << " ";
  }
  [[noreturn]] ~CheckFailure() {
    std::cerr << out_.str() << std::endl;
    std::abort();
  }
  std::ostream& stream() { return out_; }

 private:
  std::ostringstream out_;
};

}  // namespace pruner

#define CHECK(condition)      \
  if (condition) [[likely]] { \
  } else                      \
    ::pruner::CheckFailure(__FILE__, __LINE__, #condition).stream()

#ifdef NDEBUG
#define DCHECK(condition) CHECK(true || (condition))
#else
#define DCHECK(condition) CHECK(condition)
#endif
