// How busy others keep this machine's cores, so that what was measured meanwhile explains itself.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace pruner {

/// Time of cores, and what processes other than this one had of it: programs beside it, the
/// kernel's interrupts, and a hypervisor's other guests. From counters of 10 ms, so `others_s` of a
/// short while may be a few of these off, and negative.
struct CoreTime {
  double cores_s = 0, others_s = 0;  // summed over the cores

  double share() const;  // in [0, 1]
  CoreTime& operator+=(const CoreTime& other);
};

/// Below this share nothing needs to be said.
inline constexpr double kBusyShare = 0.05;

/// Watches CPUs from when it is made.
class CoreWatch {
 public:
  /// The first `cpus` of those that the calling thread may run on; 0: all.
  explicit CoreWatch(int cpus = 0);
  /// Since it was made; zeros where the operating system does not tell.
  CoreTime time() const;

 private:
  std::vector<int> cpus_;
  std::chrono::steady_clock::time_point start_;
  double own_s_, busy_s_;  // CPU seconds then
};

/// Seconds that the text of /proc/stat says these CPUs were not idle; negative: it does not say.
double busy_seconds(std::string_view stat, const std::vector<int>& cpus);

/// "other processes had 31 % of the cores' time"; empty below kBusyShare.
std::string print_busy(const CoreTime& time);

}  // namespace pruner
