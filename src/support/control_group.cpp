#include "support/control_group.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

namespace pruner {

namespace {

constexpr char kVersion2[] = "cgroup2";

/// A hierarchy of groups, where it is mounted.
struct Mount {
  std::string type;     // "cgroup" or "cgroup2"
  std::string group;    // the group whose folder is the mount point
  std::string point;    // the folder
  std::string options;  // of version 1: "rw,cpu,cpuacct"
};

/// The group of this process in a hierarchy.
struct Membership {
  std::string controllers;  // "cpu,cpuacct"; empty: version 2
  std::string group;        // "/docker/1a2b"
};

bool has_word(const std::string& text, const std::string& word) {
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');)
    if (part == word) return true;
  return false;
}

// A line of mountinfo (proc_pid_mountinfo(5)): "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime -
// cgroup cgroup rw,cpu"; before the dash stand any number of optional fields.
std::vector<Mount> read_mounts(const std::string& root) {
  std::vector<Mount> mounts;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string skipped, word, source;
    Mount mount;
    in >> skipped >> skipped >> skipped >> mount.group >> mount.point;
    while (in >> word && word != "-") continue;
    in >> mount.type >> source >> mount.options;
    if (mount.type == "cgroup" || mount.type == kVersion2) mounts.push_back(std::move(mount));
  }
  return mounts;
}

// Lines of /proc/self/cgroup (cgroups(7)): "4:cpu,cpuacct:/docker/1a2b", "0::/user.slice".
std::vector<Membership> read_memberships(const std::string& root) {
  std::vector<Membership> memberships;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    memberships.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return memberships;
}

/// The group's folder below its mount point: "" for the mount point itself. A group that is not
/// below the mounted one is that of another namespace; the mounted one is what can be read.
std::string folder_below(const Mount& mount, const std::string& group) {
  const std::string above = mount.group == "/" ? "" : mount.group;
  const bool below = group.starts_with(above + "/") && group.find("/..") == std::string::npos;
  if (!below) return "";
  std::string folder = group.substr(above.size());
  while (folder.ends_with('/')) folder.pop_back();
  return folder;
}

/// The number that a file begins with; nothing for "max", and where there is no such file.
std::optional<double> read_number(std::istream& in) {
  double number = 0;
  return in >> number ? std::optional(number) : std::nullopt;
}
std::optional<double> read_number(const std::string& path) {
  std::ifstream in(path);
  return read_number(in);
}

void keep_least(double& limit, std::optional<double> value) {
  if (value && *value > 0) limit = std::min(limit, *value);
}

/// Version 2: "max 100000" or "150000 100000", quota and period in microseconds.
std::optional<double> cpus_of_version_2(const std::string& folder) {
  std::ifstream in(folder + "/cpu.max");
  const std::optional<double> quota = read_number(in);
  const std::optional<double> period = quota ? read_number(in) : std::nullopt;
  return period && *period > 0 ? std::optional(*quota / *period) : std::nullopt;
}

/// Version 1: a quota of -1 is none.
std::optional<double> cpus_of_version_1(const std::string& folder) {
  const std::optional<double> quota = read_number(folder + "/cpu.cfs_quota_us");
  const std::optional<double> period = read_number(folder + "/cpu.cfs_period_us");
  if (!quota || !period || !(*quota > 0) || !(*period > 0)) return std::nullopt;
  return *quota / *period;
}

void add_limits(const Mount& mount, const std::string& folder, GroupLimits& limits) {
  if (mount.type == kVersion2) {
    keep_least(limits.cpus, cpus_of_version_2(folder));
    keep_least(limits.memory_bytes, read_number(folder + "/memory.max"));
    return;
  }
  if (has_word(mount.options, "cpu")) keep_least(limits.cpus, cpus_of_version_1(folder));
  if (has_word(mount.options, "memory"))
    keep_least(limits.memory_bytes, read_number(folder + "/memory.limit_in_bytes"));
}

/// Whether the mount shows the hierarchy that the membership is in.
bool shows(const Mount& mount, const Membership& membership) {
  if (membership.controllers.empty()) return mount.type == kVersion2;
  if (mount.type == kVersion2) return false;
  std::istringstream in(membership.controllers);
  std::string first;
  std::getline(in, first, ',');
  return has_word(mount.options, first);
}

}  // namespace

GroupLimits read_group_limits(const std::string& root) {
  GroupLimits limits;
  const std::vector<Mount> mounts = read_mounts(root);
  for (const Membership& membership : read_memberships(root)) {
    for (const Mount& mount : mounts) {
      if (!shows(mount, membership)) continue;
      std::string folder = folder_below(mount, membership.group);
      while (true) {
        add_limits(mount, root + mount.point + folder, limits);
        if (folder.empty()) break;
        folder.resize(folder.rfind('/'));
      }
    }
  }
  return limits;
}

int within(const GroupLimits& limits, int cpus) {
  const double allowed = std::min(std::floor(limits.cpus), static_cast<double>(cpus));
  return std::max(1, static_cast<int>(allowed));
}

int usable_cpus() {
  cpu_set_t allowed;
  const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
  const int cpus =
      known ? CPU_COUNT(&allowed) : static_cast<int>(std::thread::hardware_concurrency());
  return within(read_group_limits(), cpus);
}

}  // namespace pruner
