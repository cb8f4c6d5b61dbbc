#include "support/cpu_budget.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
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
  Machine& allowed(const std::string& list) {
    return file(
        "/proc/thread-self/status",
        "Name:\tpruner\nCpus_allowed:\tff\nCpus_allowed_list:\t" + list + "\nMems_allowed:\t1\n");
  }
  Machine& online(const std::string& list) {
    return file("/sys/devices/system/cpu/online", list + "\n");
  }
  /// Cores of one CPU and of two: of `cores` CPUs c the second one is c + `distance`.
  Machine& cores(int cores, int distance = 0, int first = 0) {
    for (int c = first; c < first + cores; ++c) {
      const std::string list =
          distance == 0 ? fmt::format("{}", c) : fmt::format("{},{}", c, c + distance);
      siblings(c, list);
      if (distance > 0) siblings(c + distance, list);
    }
    return *this;
  }
  Machine& capacity(int cpu, int value) {
    return file(fmt::format("/sys/devices/system/cpu/cpu{}/cpu_capacity", cpu),
                fmt::format("{}\n", value));
  }
  PrunerCpuBudget budget(const char* omp_num_threads = nullptr) const {
    return pruner_cpu_budget(folder_.path("").c_str(), omp_num_threads);
  }
  PrunerGroupLimits limits() const { return pruner_group_limits(folder_.path("").c_str()); }
  int usable_cpus() const { return pruner_usable_cpus(folder_.path("").c_str()); }
  double quota() const { return budget().quota; }

 private:
  void siblings(int cpu, const std::string& list) {
    file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu),
         list + "\n");
  }

  TemporaryFolder folder_;
};

constexpr char kUnified[] =
    "29 1 8:1 / / rw - ext4 /dev/sda rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 master:1 - cgroup2 cgroup2 rw,nsdelegate\n";

// Machines as they are, with the threads that a kernel should have on them and the logical CPUs
// that may be busy.
TEST(CpuBudget, IsRightOnMachinesOfEveryKind) {
  struct Row {
    const char* what;
    int threads, cpus;
    std::function<void(Machine&)> make;
    const char* omp_num_threads = nullptr;
  };
  const auto plain = [](Machine& m) { m.online("0-7").allowed("0-7").cores(8).mounts(kUnified); };
  const auto hyperthreads = [](Machine& m) {
    m.online("0-7").allowed("0-7").cores(4, 4).mounts(kUnified).groups("0::/user.slice\n");
  };
  const auto hybrid = [](Machine& m) {  // 6 cores of two, 8 efficient ones
    m.online("0-19").allowed("0-19").cores(8, 0, 12);
    for (int core = 0; core < 6; ++core) {
      for (const int cpu : {2 * core, 2 * core + 1})
        m.file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu),
               fmt::format("{}-{}\n", 2 * core, 2 * core + 1));
    }
    m.file("/sys/devices/cpu_core/cpus", "0-11\n").file("/sys/devices/cpu_atom/cpus", "12-19\n");
  };
  const auto big_little = [](Machine& m, int big, int little, int least) {
    m.online(fmt::format("0-{}", big + little - 1)).allowed(fmt::format("0-{}", big + little - 1));
    m.cores(big + little);
    for (int cpu = 0; cpu < big + little; ++cpu) m.capacity(cpu, cpu < little ? least : 1024);
  };
  const Row rows[] = {
      {"bare metal without hyperthreads", 8, 8, plain},
      {"hyperthreads", 4, 8, hyperthreads},
      {"hyperthreads switched off",
       4,
       4,
       [](Machine& m) { m.online("0-3").allowed("0-7").cores(4); }},
      {"one of each core's hyperthreads is allowed",
       4,
       4,
       [&](Machine& m) { hyperthreads(m), m.allowed("0-3"); }},
      {"two hyperthreads of one core are allowed",
       1,
       2,
       [&](Machine& m) { hyperthreads(m), m.allowed("1,5"); }},
      {"two sockets of 24 cores",
       48,
       96,
       [](Machine& m) { m.online("0-95").allowed("0-95").cores(48, 48); }},
      {"the second of two sockets, by taskset",
       24,
       48,
       [](Machine& m) { m.online("0-95").allowed("24-47,72-95").cores(48, 48); }},
      {"docker --cpus=1.5 with cgroup 2",
       1,
       1,
       [&](Machine& m) {
         hyperthreads(m), m.groups("0::/\n").file("/sys/fs/cgroup/cpu.max", "150000 100000\n");
       }},
      {"docker --cpus=3 with cgroup 1",
       3,
       3,
       [&](Machine& m) {
         hyperthreads(m);
         m.mounts(
              "32 31 0:29 /docker/1a /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup "
              "rw,cpu,cpuacct\n")
             .groups("2:cpu,cpuacct:/docker/1a\n")
             .file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n")
             .file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
       }},
      {"docker --cpuset-cpus=2-3", 2, 2, [&](Machine& m) { plain(m), m.allowed("2-3"); }},
      {"a pod of Kubernetes with a limit of 6 CPUs, a quota of its own group and none above",
       4,
       6,
       [&](Machine& m) {
         hyperthreads(m);
         const std::string pod = "/kubepods.slice/kubepods-burstable.slice/pod1";
         m.groups("0::" + pod + "/cri-1.scope\n")
             .file("/sys/fs/cgroup" + pod + "/cri-1.scope/cpu.max", "600000 100000\n")
             .file("/sys/fs/cgroup" + pod + "/cpu.max", "max 100000\n");
       }},
      {"a pod whose slice has the limit",
       2,
       2,
       [&](Machine& m) {
         hyperthreads(m);
         m.groups("0::/kubepods.slice/pod2/cri-2.scope\n")
             .file("/sys/fs/cgroup/kubepods.slice/pod2/cpu.max", "200000 100000\n");
       }},
      {"a quota of a tenth of a CPU",
       1,
       1,
       [&](Machine& m) {
         plain(m), m.groups("0::/\n").file("/sys/fs/cgroup/cpu.max", "10000 100000\n");
       }},
      {"a hybrid laptop", 6, 20, hybrid},
      {"a hybrid laptop's efficient cores alone",
       4,
       4,
       [&](Machine& m) { hybrid(m), m.allowed("16-19"); }},
      {"a phone of four large and four small cores",
       4,
       8,
       [&](Machine& m) { big_little(m, 4, 4, 446); }},
      {"a phone of two large and six small cores",
       8,
       8,
       [&](Machine& m) { big_little(m, 2, 6, 446); }},
      {"an ARM server", 64, 64, [&](Machine& m) { big_little(m, 64, 0, 0); }},
      {"OMP_NUM_THREADS below the cores", 3, 8, hyperthreads, "3"},
      {"OMP_NUM_THREADS of loops in loops", 2, 8, hyperthreads, "2,4"},
      {"OMP_NUM_THREADS above the cores", 4, 8, hyperthreads, "64"},
      {"OMP_NUM_THREADS that is no number", 4, 8, hyperthreads, "all"},
      {"OMP_NUM_THREADS of 0", 4, 8, hyperthreads, "0"},
      {"a virtual machine without a topology", 3, 3, [](Machine& m) { m.allowed("0,2,4"); }},
      {"no /proc", 2, 2, [](Machine& m) { m.online("0-1"); }},
      {"nothing that can be read", 1, 1, [](Machine&) {}},
  };
  for (const Row& row : rows) {
    Machine machine;
    row.make(machine);
    const PrunerCpuBudget budget = machine.budget(row.omp_num_threads);
    EXPECT_EQ(budget.threads, row.threads) << row.what;
    EXPECT_EQ(budget.cpus, row.cpus) << row.what;
    EXPECT_EQ(machine.usable_cpus(), row.cpus) << row.what;
  }
}
TEST(CpuQuota, AreThoseOfTheProcesssOwnGroupInVersion2) {
  Machine machine;
  machine.mounts(kUnified).groups("0::/user.slice/job\n");
  EXPECT_EQ(machine.quota(), kNone);
  machine.file("/sys/fs/cgroup/user.slice/job/cpu.max", "200000 100000\n");
  EXPECT_EQ(machine.quota(), 2);
  machine.file("/sys/fs/cgroup/user.slice/other/cpu.max", "100000 100000\n");
  EXPECT_EQ(machine.quota(), 2);
  machine.file("/sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
  EXPECT_EQ(machine.quota(), kNone);
}

TEST(CpuQuota, OfEveryGroupAboveCountToo) {
  Machine machine;
  machine.mounts(kUnified).groups("0::/a/b/c\n");
  machine.file("/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
  machine.file("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  machine.file("/sys/fs/cgroup/a/cpu.max", "75000 50000\n");
  EXPECT_EQ(machine.quota(), 1.5);
  // A container's own namespace mounts its group as the root.
  machine.file("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(machine.quota(), 0.5);
}

TEST(CpuQuota, AreReadInVersion1) {
  Machine machine;
  machine.mounts(
      "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
      "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  machine.groups("5:cpuset:/\n4:memory:/docker/1a\n2:cpu,cpuacct:/docker/1a\n0::/\n");
  const std::string cpu = "/sys/fs/cgroup/cpu,cpuacct/docker";
  machine.file(cpu + "/1a/cpu.cfs_quota_us", "-1\n")
      .file(cpu + "/1a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(machine.quota(), kNone);
  machine.file(cpu + "/1a/cpu.cfs_quota_us", "350000\n");
  EXPECT_EQ(machine.quota(), 3.5);
  machine.file(cpu + "/cpu.cfs_quota_us", "100000\n").file(cpu + "/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(machine.quota(), 2);
  EXPECT_EQ(machine.limits().memory_bytes, kNone);
  machine.file("/sys/fs/cgroup/memory/docker/1a/memory.limit_in_bytes", "1073741824\n");
  EXPECT_EQ(machine.limits().memory_bytes, 1 << 30);
}

// Without a namespace of its own, a container sees its path from the host's root, and its group
// alone is mounted.
TEST(CpuQuota, AreFoundWhereAGroupIsMountedAsTheRoot) {
  Machine machine;
  machine.mounts("31 23 0:28 /docker/1a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  machine.file("/sys/fs/cgroup/cpu.max", "300000 100000\n");
  machine.file("/sys/fs/cgroup/job/cpu.max", "100000 100000\n");
  machine.file("/sys/fs/cgroup/memory.max", "4096\n");
  machine.groups("0::/docker/1a\n");
  EXPECT_EQ(machine.quota(), 3);
  EXPECT_EQ(machine.limits().memory_bytes, 4096);
  machine.groups("0::/docker/1a/job\n");
  EXPECT_EQ(machine.quota(), 1);
  for (const char* elsewhere : {"0::/\n", "0::/../../system.slice\n", "0::/docker/1ab\n"}) {
    machine.groups(elsewhere);
    EXPECT_EQ(machine.quota(), 3) << elsewhere;
  }
}

TEST(CpuQuota, BothVersionsMayBeMounted) {
  Machine machine;
  machine.mounts(
      "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  machine.groups("1:cpu:/a\n0::/b\n");
  machine.file("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "400000");
  machine.file("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000");
  EXPECT_EQ(machine.quota(), 4);
  machine.file("/sys/fs/cgroup/unified/b/cpu.max", "300000 100000");
  EXPECT_EQ(machine.quota(), 3);
}

TEST(CpuQuota, WhatCannotBeReadIsNoLimit) {
  EXPECT_EQ(Machine().quota(), kNone);
  Machine machine;
  machine.mounts("a\n\n31 23 0:28 /\n" + std::string(kUnified)).groups("x\n:\n0::\n0::/a\n");
  for (const char* text : {"", "100000", "100000 0", "-1 100000", "0 100000", "many few"}) {
    machine.file("/sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(machine.quota(), kNone) << text;
  }
}

TEST(CpuBudget, IsThatOfTheAffinity) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_LE(cpu_budget().allowed, CPU_COUNT(&before));
  int cpu = 0;
  while (!CPU_ISSET(cpu, &before)) ++cpu;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(cpu_budget().threads, 1);
  EXPECT_EQ(usable_cpus(), 1);
  sched_setaffinity(0, sizeof before, &before);
}

}  // namespace
}  // namespace pruner
