// When a candidate has been timed long enough, whatever it is that is timed.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace pruner {

/// The value that stands for repeated timings: their median.
double typical(std::vector<double> costs_s);

struct TimingRules {
  double min_repeat_s = 0.002;  // a repeat makes as many calls as take this long
  int max_repeats = 20;
  double budget_s = 0.15;   // no further repeat is begun after this long
  double cut_off_s = 1e10;  // a candidate slower than this is not timed a third time
  double near_s = 0;        // a candidate faster than this gets all repeats that the budget allows
};

struct Timing {
  std::vector<double> costs_s;  // seconds of a call, one a repeat
  bool cut_off = false;
};

/// Times by `average_s(calls)`, which makes so many calls and returns the seconds of one.
Timing time_repeats(const std::function<double(int64_t calls)>& average_s,
                    const TimingRules& rules);

}  // namespace pruner
