#include "support/control_group.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>

#include "support/temporary_folder.h"

namespace pruner {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

/// A folder that stands for the root of a machine's file system.
class Machine {
 public:
  Machine() : folder_(*TemporaryFolder::make("")) {}

  Machine& file(const std::string& path, const std::string& text) {
    const std::filesystem::path full = folder_.path("") + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
    return *this;
  }
  Machine& groups(const std::string& lines) { return file("/proc/self/cgroup", lines); }
  Machine& mounts(const std::string& lines) { return file("/proc/self/mountinfo", lines); }
  GroupLimits limits() const { return read_group_limits(folder_.path("")); }
  double cpus() const { return limits().cpus; }

 private:
  TemporaryFolder folder_;
};

constexpr char kUnified[] =
    "29 1 8:1 / / rw - ext4 /dev/sda rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 master:1 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(GroupLimits, AreThoseOfTheProcesssOwnGroupInVersion2) {
  Machine machine;
  machine.mounts(kUnified).groups("0::/user.slice/job\n");
  EXPECT_EQ(machine.cpus(), kNone);
  machine.file("/sys/fs/cgroup/user.slice/job/cpu.max", "200000 100000\n");
  EXPECT_EQ(machine.cpus(), 2);
  machine.file("/sys/fs/cgroup/user.slice/other/cpu.max", "100000 100000\n");
  EXPECT_EQ(machine.cpus(), 2);
  machine.file("/sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
  EXPECT_EQ(machine.cpus(), kNone);
}

TEST(GroupLimits, OfEveryGroupAboveCountToo) {
  Machine machine;
  machine.mounts(kUnified).groups("0::/a/b/c\n");
  machine.file("/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
  machine.file("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  machine.file("/sys/fs/cgroup/a/cpu.max", "75000 50000\n");
  EXPECT_EQ(machine.cpus(), 1.5);
  // A container's own namespace mounts its group as the root.
  machine.file("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(machine.cpus(), 0.5);
}

TEST(GroupLimits, AreReadInVersion1) {
  Machine machine;
  machine.mounts(
      "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
      "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  machine.groups("5:cpuset:/\n4:memory:/docker/1a\n2:cpu,cpuacct:/docker/1a\n0::/\n");
  const std::string cpu = "/sys/fs/cgroup/cpu,cpuacct/docker";
  machine.file(cpu + "/1a/cpu.cfs_quota_us", "-1\n")
      .file(cpu + "/1a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(machine.cpus(), kNone);
  machine.file(cpu + "/1a/cpu.cfs_quota_us", "350000\n");
  EXPECT_EQ(machine.cpus(), 3.5);
  machine.file(cpu + "/cpu.cfs_quota_us", "100000\n").file(cpu + "/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(machine.cpus(), 2);
  EXPECT_EQ(machine.limits().memory_bytes, kNone);
  machine.file("/sys/fs/cgroup/memory/docker/1a/memory.limit_in_bytes", "1073741824\n");
  EXPECT_EQ(machine.limits().memory_bytes, 1 << 30);
}

// Without a namespace of its own, a container sees its path from the host's root, and its group
// alone is mounted.
TEST(GroupLimits, AreFoundWhereAGroupIsMountedAsTheRoot) {
  Machine machine;
  machine.mounts("31 23 0:28 /docker/1a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  machine.file("/sys/fs/cgroup/cpu.max", "300000 100000\n");
  machine.file("/sys/fs/cgroup/job/cpu.max", "100000 100000\n");
  machine.file("/sys/fs/cgroup/memory.max", "4096\n");
  machine.groups("0::/docker/1a\n");
  EXPECT_EQ(machine.cpus(), 3);
  EXPECT_EQ(machine.limits().memory_bytes, 4096);
  machine.groups("0::/docker/1a/job\n");
  EXPECT_EQ(machine.cpus(), 1);
  for (const char* elsewhere : {"0::/\n", "0::/../../system.slice\n", "0::/docker/1ab\n"}) {
    machine.groups(elsewhere);
    EXPECT_EQ(machine.cpus(), 3) << elsewhere;
  }
}

TEST(GroupLimits, BothVersionsMayBeMounted) {
  Machine machine;
  machine.mounts(
      "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  machine.groups("1:cpu:/a\n0::/b\n");
  machine.file("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "400000");
  machine.file("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000");
  EXPECT_EQ(machine.cpus(), 4);
  machine.file("/sys/fs/cgroup/unified/b/cpu.max", "300000 100000");
  EXPECT_EQ(machine.cpus(), 3);
}

TEST(GroupLimits, WhatCannotBeReadIsNoLimit) {
  EXPECT_EQ(Machine().cpus(), kNone);
  Machine machine;
  machine.mounts("a\n\n31 23 0:28 /\n" + std::string(kUnified)).groups("x\n:\n0::\n0::/a\n");
  for (const char* text : {"", "100000", "100000 0", "-1 100000", "0 100000", "many few"}) {
    machine.file("/sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(machine.cpus(), kNone) << text;
  }
}

TEST(GroupLimits, LeaveWholeCpusAndAtLeastOne) {
  EXPECT_EQ(within({}, 8), 8);
  EXPECT_EQ(within({.cpus = 2}, 8), 2);
  EXPECT_EQ(within({.cpus = 2.9}, 8), 2);
  EXPECT_EQ(within({.cpus = 0.5}, 8), 1);
  EXPECT_EQ(within({.cpus = 64}, 8), 8);
  EXPECT_EQ(within({.cpus = 1e300}, 8), 8);
}

TEST(UsableCpus, AreThoseOfTheAffinity) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_LE(usable_cpus(), CPU_COUNT(&before));
  int cpu = 0;
  while (!CPU_ISSET(cpu, &before)) ++cpu;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cpus(), 1);
  sched_setaffinity(0, sizeof before, &before);
}

}  // namespace
}  // namespace pruner
