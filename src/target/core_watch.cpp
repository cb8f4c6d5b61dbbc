#include "target/core_watch.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace pruner {
namespace {

std::vector<int> first_cpus(int most) {
  std::vector<int> cpus;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && (most <= 0 || static_cast<int>(cpus.size()) < most))
      cpus.push_back(cpu);
  }
  return cpus;
}

double own_cpu_s() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double busy_now_s(const std::vector<int>& cpus) {
  std::ostringstream text;
  text << std::ifstream("/proc/stat").rdbuf();
  return busy_seconds(text.view(), cpus);
}

}  // namespace

double CoreTime::share() const {
  return cores_s > 0 ? std::clamp(others_s / cores_s, 0.0, 1.0) : 0;
}

CoreTime& CoreTime::operator+=(const CoreTime& other) {
  cores_s += other.cores_s;
  others_s += other.others_s;
  return *this;
}

CoreWatch::CoreWatch(int cpus)
    : cpus_(first_cpus(cpus)),
      start_(std::chrono::steady_clock::now()),
      own_s_(own_cpu_s()),
      busy_s_(busy_now_s(cpus_)) {}

CoreTime CoreWatch::time() const {
  const double busy_s = busy_now_s(cpus_);
  if (busy_s_ < 0 || busy_s < 0) return {};
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  return {elapsed.count() * static_cast<double>(cpus_.size()),
          busy_s - busy_s_ - (own_cpu_s() - own_s_)};
}

// A line a CPU: "cpu3 user nice system idle iowait irq softirq steal guest guest_nice"; user holds
// guest.
double busy_seconds(std::string_view stat, const std::vector<int>& cpus) {
  constexpr int kCounted = 8, kIdle = 3, kWaiting = 4;
  static const auto ticks_s = static_cast<double>(sysconf(_SC_CLK_TCK));
  double busy = 0;
  size_t found = 0;
  std::istringstream lines{std::string(stat)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (!name.starts_with("cpu") || name.size() == 3) continue;
    if (std::ranges::find(cpus, std::atoi(name.c_str() + 3)) == cpus.end()) continue;
    ++found;
    double ticks = 0;
    for (int i = 0; i < kCounted && words >> ticks; ++i)
      busy += i == kIdle || i == kWaiting ? 0 : ticks / ticks_s;
  }
  return found == cpus.size() && found > 0 ? busy : -1;
}

std::string print_busy(const CoreTime& time) {
  if (time.share() < kBusyShare) return "";
  return fmt::format("other processes had {:.0f} % of the cores' time", 100 * time.share());
}

}  // namespace pruner
