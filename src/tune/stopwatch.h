// Time that belongs to one of several who take turns.
#pragma once

#include <chrono>
#include <optional>

namespace pruner {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Adds up the time during which a Lap of it lives.
class Stopwatch {
 public:
  class Lap {
   public:
    explicit Lap(Stopwatch& watch) : watch_(watch) {
      watch_.start_ = std::chrono::steady_clock::now();
    }
    ~Lap() {
      watch_.earlier_s_ = watch_.seconds();
      watch_.start_.reset();
    }
    Lap(const Lap&) = delete;
    Lap& operator=(const Lap&) = delete;

   private:
    Stopwatch& watch_;
  };

  double seconds() const { return earlier_s_ + (start_ ? seconds_since(*start_) : 0); }

 private:
  std::optional<std::chrono::steady_clock::time_point> start_;  // begin of the lap that lives
  double earlier_s_ = 0;
};

}  // namespace pruner
