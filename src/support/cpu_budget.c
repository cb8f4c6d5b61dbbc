#include "support/cpu_budget.h"

#include <math.h>
#include <math.h> /* its macros alone: a module does not link libm */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A path or a line at most; longer ones are passed over. */
enum { kPath = 4096 };

typedef struct {
  char text[kPath];
} Path;

__attribute__((format(printf, 1, 2))) static Path path_of(const char* format, ...) {
  Path path;
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(path.text, sizeof path.text, format, arguments);
  va_end(arguments);
  if (length < 0 || length >= kPath) path.text[0] = 0; /* a file that is not there */
  return path;
}

/* The first line of a file, without its end; 0: there is none. */
static int read_line(const Path* path, char* line, int size) {
  FILE* file = fopen(path->text, "re");
  if (file == NULL) return 0;
  const int found = fgets(line, size, file) != NULL;
  fclose(file);
  if (found) line[strcspn(line, "\n")] = 0;
  return found;
}

/* The number that a text begins with; NAN: none, as "max" is. */
static double number_at(const char* text, const char** rest) {
  char* end = NULL;
  const double number = strtod(text, &end);
  if (rest != NULL) *rest = end;
  return end == text || !isfinite(number) ? NAN : number;
}

static double read_number(const Path* path) {
  char line[128];
  return read_line(path, line, sizeof line) ? number_at(line, NULL) : NAN;
}

static void keep_least(double* limit, double value) {
  if (value > 0 && value < *limit) *limit = value;
}

/* Lists of CPUs: "0-3,8,10-11". Numbers that a cpu_set_t has no room for are passed over. */
static cpu_set_t listed(const char* text) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  while (*text >= '0' && *text <= '9') {
    char* end = NULL;
    const unsigned long first = strtoul(text, &end, 10);
    unsigned long last = first;
    if (*end == '-') last = strtoul(end + 1, &end, 10);
    for (unsigned long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++) CPU_SET(cpu, &cpus);
    text = *end == ',' ? end + 1 : end;
  }
  return cpus;
}

/* Leaves of `cpus` those that a file lists; all of them if it lists none of them. */
static int keep_listed(const Path* path, cpu_set_t* cpus) {
  char line[kPath];
  if (!read_line(path, line, sizeof line)) return 0;
  const cpu_set_t named = listed(line);
  cpu_set_t both;
  CPU_AND(&both, cpus, &named);
  if (CPU_COUNT(&both) == 0) return 0;
  *cpus = both;
  return 1;
}

static cpu_set_t allowed_cpus(const char* root) {
  static const char kField[] = "Cpus_allowed_list:";
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  const Path path = path_of("%s/proc/thread-self/status", root);
  FILE* file = fopen(path.text, "re");
  char line[kPath];
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, kField, sizeof kField - 1) != 0) continue;
    cpus = listed(line + sizeof kField - 1 + strspn(line + sizeof kField - 1, " \t"));
    break;
  }
  if (file != NULL) fclose(file);
  if (CPU_COUNT(&cpus) == 0 && root[0] == 0) sched_getaffinity(0, sizeof cpus, &cpus);
  const Path online = path_of("%s/sys/devices/system/cpu/online", root);
  if (CPU_COUNT(&cpus) == 0) {
    memset(&cpus, 0xff, sizeof cpus);
    if (!keep_listed(&online, &cpus)) CPU_ZERO(&cpus);
  } else {
    keep_listed(&online, &cpus);
  }
  return cpus;
}

/* ARM's: how much each CPU does in a time; those are kept that do most together if each has an
   equal share, so that the slowest is waited for. */
static void keep_capable(const char* root, cpu_set_t* cpus) {
  int capacity[CPU_SETSIZE] = {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, cpus)) continue;
    const Path path = path_of("%s/sys/devices/system/cpu/cpu%d/cpu_capacity", root, cpu);
    const double number = read_number(&path);
    if (!(number >= 1 && number <= 1 << 20)) return; /* not all have one */
    capacity[cpu] = (int)number;
  }
  int64_t most = 0;
  int least = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (capacity[cpu] == 0) continue;
    int64_t as_fast = 0;
    for (int other = 0; other < CPU_SETSIZE; other++) as_fast += capacity[other] >= capacity[cpu];
    const int64_t together = as_fast * capacity[cpu];
    if (together < most || (together == most && capacity[cpu] < least)) continue;
    most = together;
    least = capacity[cpu];
  }
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (capacity[cpu] < least) CPU_CLR(cpu, cpus);
}

static cpu_set_t fast_cpus(const char* root, cpu_set_t cpus) {
  const Path hybrid = path_of("%s/sys/devices/cpu_core/cpus", root); /* Intel's */
  if (!keep_listed(&hybrid, &cpus)) keep_capable(root, &cpus);
  return cpus;
}

static int count_cores(const char* root, const cpu_set_t* cpus) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, cpus)) continue;
    const Path path =
        path_of("%s/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", root, cpu);
    char line[kPath];
    int first = cpu; /* the core's first CPU stands for it */
    if (read_line(&path, line, sizeof line)) {
      const cpu_set_t siblings = listed(line);
      for (int other = CPU_SETSIZE - 1; other >= 0; other--)
        if (CPU_ISSET(other, &siblings)) first = other;
    }
    CPU_SET(first, &cores);
  }
  return CPU_COUNT(&cores);
}

/* A hierarchy of groups, where it is mounted (proc_pid_mountinfo(5)). */
typedef struct {
  char type[16];       /* "cgroup" or "cgroup2" */
  char group[kPath];   /* the group whose folder is the mount point */
  char point[kPath];   /* the folder */
  char options[kPath]; /* options of version 1: "rw,cpu,cpuacct" */
} Mount;

/* "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu"; before the dash stand any
   number of optional fields. */
static int parse_mount(const char* line, Mount* mount) {
  if (sscanf(line, "%*s %*s %*s %4095s %4095s", mount->group, mount->point) != 2) return 0;
  const char* dash = strstr(line, " - ");
  if (dash == NULL || sscanf(dash, " - %15s %*s %4095s", mount->type, mount->options) != 2)
    return 0;
  return strcmp(mount->type, "cgroup") == 0 || strcmp(mount->type, "cgroup2") == 0;
}

static int is_version_2(const Mount* mount) { return mount->type[6] == '2'; }

/* Whether a list such as "rw,cpu,cpuacct" has a word of so many letters. */
static int has_word(const char* list, const char* word, size_t length) {
  while (*list != 0) {
    const size_t next = strcspn(list, ",");
    if (next == length && strncmp(list, word, length) == 0) return 1;
    list += next + (list[next] == ',');
  }
  return 0;
}

static void add_limits(const char* root,
                       const Mount* mount,
                       const char* folder,
                       PrunerGroupLimits* limits) {
  const char* const point = mount->point;
  if (is_version_2(mount)) {
    char line[128];
    const Path cpus = path_of("%s%s%s/cpu.max", root, point, folder);
    if (read_line(&cpus, line, sizeof line)) { /* "max 100000", "150000 100000": microseconds */
      const char* rest = line;
      const double quota = number_at(line, &rest), period = number_at(rest, NULL);
      if (period > 0) keep_least(&limits->cpus, quota / period);
    }
    const Path memory = path_of("%s%s%s/memory.max", root, point, folder);
    keep_least(&limits->memory_bytes, read_number(&memory));
    return;
  }
  if (has_word(mount->options, "cpu", 3)) {
    const Path quota = path_of("%s%s%s/cpu.cfs_quota_us", root, point, folder); /* -1: none */
    const Path period = path_of("%s%s%s/cpu.cfs_period_us", root, point, folder);
    const double microseconds = read_number(&period);
    if (microseconds > 0) keep_least(&limits->cpus, read_number(&quota) / microseconds);
  }
  if (has_word(mount->options, "memory", 6)) {
    const Path memory = path_of("%s%s%s/memory.limit_in_bytes", root, point, folder);
    keep_least(&limits->memory_bytes, read_number(&memory));
  }
}

/* The limits of a group below its mount point and of all above it. A group that is not below the
   mounted one is that of another namespace; the mounted one is what can be read. */
static void add_group(const char* root,
                      const Mount* mount,
                      const char* group,
                      PrunerGroupLimits* limits) {
  const size_t above = strcmp(mount->group, "/") == 0 ? 0 : strlen(mount->group);
  char folder[kPath] = "";
  const int is_below = strncmp(group, mount->group, above) == 0 && group[above] == '/' &&
                       strstr(group, "/..") == NULL;
  if (is_below) snprintf(folder, sizeof folder, "%s", group + above);
  size_t length = strlen(folder);
  while (length > 0 && folder[length - 1] == '/') folder[--length] = 0;
  for (;;) {
    add_limits(root, mount, folder, limits);
    char* const last = strrchr(folder, '/');
    if (last == NULL) return;
    *last = 0;
  }
}

/* Lines of /proc/self/cgroup (cgroups(7)): "4:cpu,cpuacct:/docker/1a2b", "0::/user.slice". */
static void add_membership(const char* root,
                           const Mount* mount,
                           char* line,
                           PrunerGroupLimits* limits) {
  line[strcspn(line, "\n")] = 0;
  const char* controllers = strchr(line, ':');
  const char* group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
  if (group == NULL) return;
  controllers++;
  const size_t first = strcspn(controllers, ",:");
  const int shows = first == 0
                        ? is_version_2(mount)
                        : !is_version_2(mount) && has_word(mount->options, controllers, first);
  if (shows) add_group(root, mount, group + 1, limits);
}

PrunerGroupLimits pruner_group_limits(const char* root) {
  PrunerGroupLimits limits = {INFINITY, INFINITY};
  const Path mounts = path_of("%s/proc/self/mountinfo", root);
  const Path memberships = path_of("%s/proc/self/cgroup", root);
  FILE* file = fopen(mounts.text, "re");
  char* line = NULL;
  size_t room = 0;
  Mount* mount = malloc(sizeof *mount);
  while (file != NULL && mount != NULL && getline(&line, &room, file) >= 0) {
    if (!parse_mount(line, mount)) continue;
    FILE* groups = fopen(memberships.text, "re");
    char group[kPath];
    while (groups != NULL && fgets(group, sizeof group, groups) != NULL)
      add_membership(root, mount, group, &limits);
    if (groups != NULL) fclose(groups);
  }
  free(mount);
  free(line);
  if (file != NULL) fclose(file);
  return limits;
}

static int32_t within(double quota, int32_t cpus) {
  const int32_t whole = quota < cpus ? (int32_t)quota : cpus;
  return whole < 1 ? 1 : whole;
}

int32_t pruner_usable_cpus(const char* root) {
  const cpu_set_t allowed = allowed_cpus(root);
  return within(pruner_group_limits(root).cpus, CPU_COUNT(&allowed));
}

PrunerCpuBudget pruner_cpu_budget(const char* root, const char* omp_num_threads) {
  PrunerCpuBudget b = {.quota = pruner_group_limits(root).cpus};
  const cpu_set_t allowed = allowed_cpus(root), fast = fast_cpus(root, allowed);
  b.allowed = CPU_COUNT(&allowed);
  b.fast = CPU_COUNT(&fast);
  b.cores = count_cores(root, &fast);
  if (omp_num_threads != NULL) { /* "4", or "4,2" for loops in loops */
    const double wished = number_at(omp_num_threads, NULL);
    if (wished >= 1 && wished <= CPU_SETSIZE) b.wished = (int32_t)wished;
  }
  b.cpus = within(b.quota, b.allowed);
  b.threads = within(b.quota, b.cores);
  if (b.wished > 0 && b.wished < b.threads) b.threads = b.wished;
  return b;
}
