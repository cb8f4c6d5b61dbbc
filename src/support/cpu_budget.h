// How many CPUs this process may use at once, and how many threads a kernel should have: what its
// affinity, its control groups (cgroups, versions 1 and 2), the kinds of cores and OMP_NUM_THREADS
// leave of the machine. In C: modules ask for it, too.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int32_t allowed; /* logical CPUs that are online and in the affinity, which cpusets narrow */
  int32_t fast;    /* those of them that are no efficient cores; all if all are of one kind */
  int32_t cores;   /* physical cores that the fast ones lie on */
  double quota;    /* PrunerGroupLimits::cpus */
  int32_t wished;  /* OMP_NUM_THREADS; 0: it says nothing */
  /* `cpus` is the number of logical CPUs that may be busy at once, `threads` the number of a
     kernel's threads, a core each. Both are at least 1, and whole CPUs of the quota: threads that
     spend more than the quota are stopped in the middle of a kernel. */
  int32_t cpus, threads;
} PrunerCpuBudget;

/* The CPU time and the memory that a process's control group and all groups above it allow. */
typedef struct {
  double cpus;         /* seconds of CPU time a second; INFINITY: no quota */
  double memory_bytes; /* INFINITY: no limit */
} PrunerGroupLimits;
PrunerGroupLimits pruner_group_limits(const char* root);

/* PrunerCpuBudget's `cpus` alone, for which the cores' files are not read. */
int32_t pruner_usable_cpus(const char* root);

/* `root` stands before every path, for tests; "" is this machine. `omp_num_threads`: the variable's
   value, of which the first number counts; NULL: it is not set. */
PrunerCpuBudget pruner_cpu_budget(const char* root, const char* omp_num_threads);

#ifdef __cplusplus
}

#include <cstdlib>

namespace pruner {

/// The budget now: affinity, quotas and OMP_NUM_THREADS may change.
inline PrunerCpuBudget cpu_budget() {
  return pruner_cpu_budget("", std::getenv("OMP_NUM_THREADS"));
}

/// Logical CPUs that this process may use at once.
inline int usable_cpus() { return pruner_usable_cpus(""); }

}  // namespace pruner
#endif
