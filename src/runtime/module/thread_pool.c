/* The pool behind pruner/kernel.h, for our own process and for deployed modules: C11, pthreads and
 * futexes only. [0, n) is cut into one contiguous part a thread, always the same part for the same
 * thread, so that data stays in the caches of its core. A thread claims its part; parts whose
 * thread has not woken up by the time the caller is done with its own are taken over by the caller.
 * So the caller only ever waits for threads that have begun. One of those may lose its core to
 * another process meanwhile, for the milliseconds of a time slice: the waiting caller fetches it
 * onto its own core, where it ends its part at once.
 *
 * A word that every thread writes goes from core to core as often as there are threads, some 0.1 us
 * each. So more than kGroupParts count down by groups, and of so many the caller looks at the
 * claims only when they do not end by themselves. */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/module/float_mode.h"
#include "runtime/module/thread_pool.h"
#include "support/cpu_budget.h"

enum {
  kWorkerSpins = 20000, /* 0.3 to 1 ms: longer than the gap between two kernels of a network */
  kJoinSpins = 2000,    /* the ragged end of a job; what is awaited runs on another core */
  kWatchSpins = 500,    /* some 10 us, in which a thread that has a core uses it */
  kClaimSpins = 100,    /* some 2 us, as long as looking at 20 claims that others have written */
  kGroupParts = 16,
  kStackBytes = 16 << 20, /* generated code keeps local buffers on the stack */
};
static const uint32_t kCallerSleeps = 1u << 31;

/* The job's number, the parts left and each part's claim have cache lines of their own (64 bytes):
   who waits for one of them is not disturbed when another is written. */
typedef struct Pool Pool;

typedef struct {
  _Alignas(64) _Atomic uint32_t claimed; /* number of the last job whose part i was claimed */
  _Atomic uint32_t done;                 /* number of the last job whose part i was done */
  Pool* pool;
  /* Parts 1 and up have the members below; the caller runs part 0. */
  pthread_t thread;
  clockid_t clock; /* CPU time of the thread */
  _Atomic pid_t tid;
  /* The caller uses the number below while it waits. */
  int64_t ran_ns;
  cpu_set_t cpus;          /* CPUs that the thread may use when it is not fetched */
  _Atomic int32_t fetched; /* 1: the thread may run on one CPU only, the caller's */
} Part;

typedef struct {
  _Alignas(64) _Atomic uint32_t left; /* parts of the group that are not done */
} Group;

struct Pool {
  PrunerPool base; /* first: a PrunerPool* is a Pool* */
  PrunerBody body; /* the job; it stands still while one of its parts is claimed and not done */
  void* closure;
  int64_t n;
  uint64_t float_mode; /* the caller's at the job's begin: every part computes as the caller does */
  int64_t parts;       /* parts of the job: min(n, threads) */
  int64_t taken_over;  /* parts that the caller ran for others, of all jobs */
  int32_t spins;       /* spins of a worker before it sleeps; 0 with more threads than CPUs */
  int32_t started;     /* threads that are there, the caller included */
  int32_t pinned;
  cpu_set_t caller_cpus;             /* to give back when a pinned caller destroys the pool */
  _Alignas(64) _Atomic uint32_t job; /* number of the job; sleeping workers wait for it to change */
  _Atomic int32_t caller_cpu;        /* CPU of the caller when it announced the job */
  _Atomic uint32_t sleepers;         /* workers in futex(), or about to be */
  _Atomic uint32_t stop;             /* 1: workers end instead of claiming */
  Group* groups; /* groups of kGroupParts parts; NULL: there are no more threads than that */
  /* Parts, or groups, that are not done, | kCallerSleeps; a sleeping caller waits. */
  _Alignas(64) _Atomic uint32_t left;
  Part part[];
};

static void futex(_Atomic uint32_t* word, int op, uint32_t value) {
  syscall(SYS_futex, word, op, value, NULL, NULL, 0);
}

static void pause_briefly(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Whether the calling thread is the one that runs part i of `job`: of worker and caller, the first
   to come. It fails for a worker that is late by a job, too. */
static int claim(Pool* pool, int64_t i, uint32_t job) {
  uint32_t previous = job - 1;
  return atomic_compare_exchange_strong_explicit(
      &pool->part[i].claimed, &previous, job, memory_order_acq_rel, memory_order_acquire);
}

/* Parts differ by at most one iteration. */
static void run_part(Pool* pool, int64_t i) {
  const int64_t n = pool->n, parts = pool->parts;
  pool->body(pool->closure, n * i / parts, n * (i + 1) / parts);
}

static int64_t num_groups(int64_t parts) { return (parts + kGroupParts - 1) / kGroupParts; }

static void count_parts(Pool* pool) {
  if (pool->groups == NULL) {
    atomic_store_explicit(&pool->left, (uint32_t)pool->parts, memory_order_relaxed);
    return;
  }
  const int64_t groups = num_groups(pool->parts);
  for (int64_t g = 0; g < groups; g++) {
    const int64_t rest = pool->parts - g * kGroupParts;
    const uint32_t parts = (uint32_t)(rest < kGroupParts ? rest : kGroupParts);
    atomic_store_explicit(&pool->groups[g].left, parts, memory_order_relaxed);
  }
  atomic_store_explicit(&pool->left, (uint32_t)groups, memory_order_relaxed);
}

/* Part i is done; the last one wakes a caller that sleeps. */
static void end_part(Pool* pool, int64_t i, uint32_t job) {
  atomic_store_explicit(&pool->part[i].done, job, memory_order_relaxed);
  if (pool->groups != NULL &&
      atomic_fetch_sub_explicit(&pool->groups[i / kGroupParts].left, 1, memory_order_acq_rel) != 1)
    return;
  if (atomic_fetch_sub_explicit(&pool->left, 1, memory_order_acq_rel) == (kCallerSleeps | 1))
    futex(&pool->left, FUTEX_WAKE_PRIVATE, 1);
}

static uint32_t wait_for_job(Pool* pool, uint32_t last) {
  for (int32_t spin = 0;; spin++) {
    const uint32_t job = atomic_load_explicit(&pool->job, memory_order_acquire);
    if (job != last) return job;
    /* On the caller's core, spinning would keep the caller itself from running. */
    if (spin < pool->spins &&
        sched_getcpu() != atomic_load_explicit(&pool->caller_cpu, memory_order_relaxed)) {
      pause_briefly();
      continue;
    }
    /* Sequentially consistent with the caller's "change job, look at sleepers": one sees the other.
     */
    atomic_fetch_add(&pool->sleepers, 1);
    if (atomic_load(&pool->job) == last) futex(&pool->job, FUTEX_WAIT_PRIVATE, last);
    atomic_fetch_sub(&pool->sleepers, 1);
  }
}

/* A thread that was fetched leaves the caller's core again, to which it would be woken otherwise.
 */
static void go_back(Part* part) {
  if (!atomic_load_explicit(&part->fetched, memory_order_acquire)) return;
  atomic_store_explicit(&part->fetched, 0, memory_order_relaxed);
  cpu_set_t others = part->cpus;
  CPU_CLR(sched_getcpu(), &others);
  sched_setaffinity(0, sizeof others, &others);
  sched_setaffinity(0, sizeof part->cpus, &part->cpus);
}

static void* work(void* argument) {
  Part* part = argument;
  Pool* pool = part->pool;
  const int64_t i = part - pool->part;
  uint32_t job = 0;
  atomic_store(&part->tid, (pid_t)syscall(SYS_gettid));
  for (;;) {
    job = wait_for_job(pool, job);
    go_back(part); /* fetched when it was done already */
    if (atomic_load_explicit(&pool->stop, memory_order_acquire)) return NULL;
    if (!claim(pool, i, job)) continue; /* too late, or the job has fewer parts */
    pruner_adopt_float_mode(pool->float_mode);
    run_part(pool, i);
    end_part(pool, i, job);
    go_back(part);
  }
}

static int ends_within(Pool* pool, int32_t spins) {
  for (int32_t spin = 0; spin < spins; spin++) {
    if (atomic_load_explicit(&pool->left, memory_order_acquire) == 0) return 1;
    pause_briefly();
  }
  return 0;
}

static int64_t ran_ns(const Part* part) {
  struct timespec time = {0, 0};
  clock_gettime(part->clock, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Whether the part of `job` is begun and not done. */
static int is_at(Part* part, uint32_t job) {
  return atomic_load_explicit(&part->claimed, memory_order_relaxed) == job &&
         atomic_load_explicit(&part->done, memory_order_relaxed) != job;
}

static void fetch(Part* part) {
  const pid_t tid = atomic_load(&part->tid);
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(sched_getcpu(), &here);
  if (atomic_load(&part->fetched) || sched_getaffinity(tid, sizeof part->cpus, &part->cpus) != 0 ||
      CPU_COUNT(&part->cpus) < 2) {
    return;
  }
  /* The flag comes last: a thread that is done meanwhile sees it at its next job. */
  if (sched_setaffinity(tid, sizeof here, &here) == 0)
    atomic_store_explicit(&part->fetched, 1, memory_order_release);
}

/* Fetches the threads that have begun their parts and do not run. Whether all ended meanwhile. */
static int fetch_stopped(Pool* pool, uint32_t job) {
  for (int64_t i = 1; i < pool->parts; i++) {
    if (is_at(&pool->part[i], job)) pool->part[i].ran_ns = ran_ns(&pool->part[i]);
  }
  if (ends_within(pool, kWatchSpins)) return 1;
  for (int64_t i = 1; i < pool->parts; i++) {
    Part* part = &pool->part[i];
    if (is_at(part, job) && ran_ns(part) == part->ran_ns) fetch(part);
  }
  return 0;
}

/* The caller's end of a job. It waits by futex for the word as it last read it, so a part that is
   done in between is not missed; the worker that does the last part wakes it. */
static void join(Pool* pool, uint32_t job) {
  if (ends_within(pool, kJoinSpins)) return;
  if (!pool->pinned && fetch_stopped(pool, job)) return;
  uint32_t left = atomic_fetch_or(&pool->left, kCallerSleeps) | kCallerSleeps;
  while (left != kCallerSleeps) {
    futex(&pool->left, FUTEX_WAIT_PRIVATE, left);
    left = atomic_load_explicit(&pool->left, memory_order_acquire);
  }
}

/* Announces a job. All that workers read of the job is written before its number: a worker that
   sees the number sees the rest. */
static void announce(Pool* pool, uint32_t job) {
  atomic_store_explicit(&pool->caller_cpu, sched_getcpu(), memory_order_relaxed);
  atomic_store(&pool->job, job);
  if (atomic_load(&pool->sleepers) != 0) futex(&pool->job, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

static void parallel_for(PrunerPool* base, PrunerBody body, void* closure, int64_t n) {
  Pool* pool = (Pool*)base;
  if (n <= 0) return;
  if (n == 1 || base->threads == 1) {
    body(closure, 0, n);
    return;
  }
  const uint32_t job = atomic_load_explicit(&pool->job, memory_order_relaxed) + 1;
  pool->body = body;
  pool->closure = closure;
  pool->n = n;
  pool->float_mode = pruner_float_mode();
  pool->parts = n < base->threads ? n : base->threads;
  /* Threads without a part count as claimed, so that a thread that wakes goes on waiting. */
  for (int64_t i = pool->parts; i < base->threads; i++) {
    atomic_store_explicit(&pool->part[i].claimed, job, memory_order_relaxed);
  }
  count_parts(pool);
  announce(pool, job);
  for (int64_t i = 0; i < pool->parts; i++) {
    if (i == 1 && pool->groups != NULL && ends_within(pool, kClaimSpins)) return;
    if (!claim(pool, i, job)) continue;
    run_part(pool, i);
    end_part(pool, i, job);
    pool->taken_over += i > 0;
  }
  if (atomic_load_explicit(&pool->left, memory_order_acquire) != 0) join(pool, job);
}

/* The CPU that thread i is pinned to: the i-th that this process may use, around again at the end.
 */
static cpu_set_t cpu_of(const cpu_set_t* allowed, int32_t i) {
  cpu_set_t one;
  CPU_ZERO(&one);
  int skip = i % CPU_COUNT(allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, allowed) || skip-- > 0) continue;
    CPU_SET(cpu, &one);
    break;
  }
  return one;
}

/* 0, or the error number of pthread_create(). Affinity is an attribute: it never runs elsewhere. */
static int start_worker(Pool* pool, int32_t i) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  if (pool->pinned) {
    const cpu_set_t cpu = cpu_of(&pool->caller_cpus, i);
    pthread_attr_setaffinity_np(&attributes, sizeof cpu, &cpu);
  }
  const int error = pthread_create(&pool->part[i].thread, &attributes, work, &pool->part[i]);
  pthread_attr_destroy(&attributes);
  if (!error) pthread_getcpuclockid(pool->part[i].thread, &pool->part[i].clock);
  return error;
}

PrunerPool* pruner_pool_create(int32_t threads, int32_t pin) {
  if (threads < 1) return NULL;
  const size_t groups = threads > kGroupParts ? (size_t)num_groups(threads) : 0;
  const size_t bytes = sizeof(Pool) + (size_t)threads * sizeof(Part) + groups * sizeof(Group);
  Pool* pool = aligned_alloc(64, bytes);
  if (pool == NULL) return NULL;
  memset(pool, 0, bytes);
  pool->base.parallel_for = parallel_for;
  pool->base.threads = threads;
  if (groups > 0) pool->groups = (Group*)&pool->part[threads];
  pool->started = 1;
  const int known = sched_getaffinity(0, sizeof pool->caller_cpus, &pool->caller_cpus) == 0;
  /* Spinning threads that outnumber the CPUs would only keep each other from running, and spend the
     time of a quota. */
  pool->spins = threads > 1 && threads > pruner_usable_cpus("") ? 0 : kWorkerSpins;
  pool->pinned = pin && known;
  if (pool->pinned) {
    const cpu_set_t first = cpu_of(&pool->caller_cpus, 0);
    sched_setaffinity(0, sizeof first, &first);
  }
  sigset_t all, before; /* signals are the business of the program's own threads */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = 0;
  for (int32_t i = 1; i < threads && !error; i++) {
    pool->part[i].pool = pool;
    error = start_worker(pool, i);
    pool->started += !error;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!error) return &pool->base;
  pruner_pool_destroy(&pool->base);
  return NULL;
}

int64_t pruner_pool_taken_over(const PrunerPool* pool) { return ((const Pool*)pool)->taken_over; }

void pruner_pool_destroy(PrunerPool* base) {
  if (base == NULL) return;
  Pool* pool = (Pool*)base;
  atomic_store(&pool->stop, 1);
  announce(pool, atomic_load(&pool->job) + 1);
  for (int32_t i = 1; i < pool->started; i++) pthread_join(pool->part[i].thread, NULL);
  if (pool->pinned) sched_setaffinity(0, sizeof pool->caller_cpus, &pool->caller_cpus);
  free(pool);
}
