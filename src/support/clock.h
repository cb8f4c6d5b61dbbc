// Time that only goes on.
#pragma once

#include <chrono>

namespace pruner {

/// Seconds by this process's steady clock, of which differences mean something.
inline double steady_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A span between two times of steady_s().
struct TimeSpan {
  double from_s = 0, to_s = 0;

  double seconds() const { return to_s - from_s; }
};

}  // namespace pruner
