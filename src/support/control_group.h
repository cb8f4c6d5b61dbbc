// How many CPUs and how much memory this process may use: what its affinity and the control groups
// (cgroups, versions 1 and 2) that it is in leave of the machine.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace pruner {

/// What the groups of a process and all groups above them allow; infinity: no limit.
struct GroupLimits {
  double cpus = std::numeric_limits<double>::infinity();  // seconds of CPU time a second
  double memory_bytes = std::numeric_limits<double>::infinity();
};

/// Reads the limits through /proc/self/cgroup and /proc/self/mountinfo. `root` stands before every
/// path, for tests.
GroupLimits read_group_limits(const std::string& root = "");

/// Returns as many of `cpus` as the limits leave: whole CPUs, at least one. A part of a CPU is left
/// out, because threads that spend more than the quota are stopped in the middle of a kernel.
int within(const GroupLimits& limits, int cpus);

/// Returns the number of CPUs that this process may use at once: those of its affinity, within the
/// limits of its groups.
int usable_cpus();

}  // namespace pruner
