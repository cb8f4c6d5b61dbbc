// Says when a candidate has been timed long enough, whatever it is that is timed, and what its
// repeats say.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace pruner {

/// The value that stands for repeated timings: the lower quartile. What disturbs a timing only ever
/// makes it longer, and the least of all is a lucky one.
double typical(std::vector<double> costs_s);

/// Some calls timed together.
struct Repeat {
  double cost_s;           // time of one call
  bool disturbed = false;  // something else is known to have had a core meanwhile
};

struct TimingRules {
  double min_repeat_s = 50e-6;  // a repeat makes as many calls as take this long
  int max_repeats = 20;         // not counting disturbed ones, of which there may be twice as many
  double budget_s = 0.15;       // no further repeat is begun after this long
  double cut_off_s = 1e10;      // a candidate slower than this is not timed a third time
  double near_s = 0;            // a faster one gets all repeats that the budget allows
};

struct Timing {
  std::vector<double> costs_s;  // one a repeat that was not disturbed
  bool cut_off = false;
  bool disturbed = false;  // hardly one was not: costs_s is the fastest quarter of all
};

/// Times by `repeat(calls)`, which makes so many calls.
Timing time_repeats(const std::function<Repeat(int64_t calls)>& repeat, const TimingRules& rules);

}  // namespace pruner
