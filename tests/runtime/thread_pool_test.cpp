#include "runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <set>
#include <thread>
#include <vector>

#include "runtime/module/float_mode.h"
#include "runtime/module/thread_pool.h"

namespace pruner {
namespace {

// How often each of n items was run.
std::vector<int> visits(PrunerPool& pool, int64_t n) {
  std::vector<std::atomic<int>> counts(static_cast<size_t>(n));
  parallel_for(pool, n, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) counts[static_cast<size_t>(i)]++;
  });
  return {counts.begin(), counts.end()};
}

TEST(ThreadPool, RunsEveryItemOnce) {
  for (const int threads : {1, 2, 3, 8, 16, 17, 40, 130}) {
    const ThreadPool pool = make_thread_pool(threads, false);
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(pool->threads, threads);
    for (const int64_t n : {0, 1, 2, 3, 7, 8, 9, 1000}) {
      EXPECT_EQ(visits(*pool, n), std::vector<int>(static_cast<size_t>(n), 1))
          << threads << " " << n;
    }
  }
}

TEST(ThreadPool, CutsIntoOneContiguousPartAThread) {
  const ThreadPool pool = make_thread_pool(4, false);
  std::vector<std::atomic<int64_t>> part_end(10);
  parallel_for(*pool, 10, [&](int64_t begin, int64_t end) { part_end[begin] = end; });
  std::vector<std::pair<int64_t, int64_t>> parts;
  for (int64_t i = 0; i < 10; ++i) {
    if (part_end[i] != 0) parts.emplace_back(i, part_end[i]);
  }
  const std::vector<std::pair<int64_t, int64_t>> expected = {{0, 2}, {2, 5}, {5, 7}, {7, 10}};
  EXPECT_EQ(parts, expected);
}

TEST(ThreadPool, AllThreadsRunAtTheSameTime) {
  for (const int threads : {4, 70}) {
    const ThreadPool pool = make_thread_pool(threads, false);
    for (int round = 0; round < 100; ++round) {
      std::atomic<int> met = 0;
      Meeting meeting(threads);
      parallel_for(*pool, threads, [&](int64_t, int64_t) {
        meeting.arrive_and_wait();  // ends only when each part has a thread of its own
        met++;
      });
      EXPECT_EQ(met, threads);
    }
  }
}

TEST(ThreadPool, KeepsCountUnderStressWithMoreThreadsThanCores) {
  for (const auto& [threads, rounds] : {std::pair{2, 20000}, {16, 20000}, {70, 4000}}) {
    const ThreadPool pool = make_thread_pool(threads, false);
    int64_t plain = 0;  // written by the caller, read by the workers: ordered by fork and join
    std::atomic<int64_t> sum = 0;
    for (int round = 0; round < rounds; ++round) {
      plain = round;
      parallel_for(
          *pool, 1 + round % 80, [&](int64_t begin, int64_t end) { sum += plain * (end - begin); });
    }
    int64_t expected = 0;
    for (int round = 0; round < rounds; ++round)
      expected += static_cast<int64_t>(round) * (1 + round % 80);
    EXPECT_EQ(sum, expected);
  }
}

TEST(ThreadPool, WakesSleepingWorkers) {
  const ThreadPool pool = make_thread_pool(3, false);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(visits(*pool, 30), std::vector<int>(30, 1));
  }
}

TEST(ThreadPool, WaitsForAPartThatTakesLong) {
  const ThreadPool pool = make_thread_pool(2, false);
  Meeting meeting(2);
  std::atomic<bool> done = false;
  parallel_for(*pool, 2, [&](int64_t begin, int64_t) {
    meeting.arrive_and_wait();
    if (begin == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    done = true;
  });
  EXPECT_TRUE(done);
}

TEST(ThreadPool, CountsThePartsThatTheCallerTookOver) {
  const ThreadPool pool = make_thread_pool(2, false);
  for (int round = 0; round < 10; ++round) {
    Meeting meeting(2);
    parallel_for(*pool, 2, [&](int64_t, int64_t) { meeting.arrive_and_wait(); });
  }
  EXPECT_EQ(pruner_pool_taken_over(pool.get()), 0);
  // A sleeping worker mostly comes too late for a part of nothing.
  for (int round = 0; round < 1000 && pruner_pool_taken_over(pool.get()) == 0; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    parallel_for(*pool, 2, [](int64_t, int64_t) {});
  }
  EXPECT_GT(pruner_pool_taken_over(pool.get()), 0);
}

// CPUs that the calling thread may run on.
int allowed_cpus() {
  cpu_set_t cpus;
  return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 0;
}

// A thread that sleeps is one that does not run, to the caller that waits for it.
TEST(ThreadPool, FetchesAThreadThatDoesNotRun) {
  const int cpus = allowed_cpus();
  if (cpus < 2) GTEST_SKIP() << "one core";
  for (const bool pinned : {false, true}) {
    const ThreadPool pool = make_thread_pool(2, pinned);
    std::atomic<bool> begun = false;
    std::atomic<int> slept_on = 0, later_on = 0;
    parallel_for(*pool, 2, [&](int64_t begin, int64_t) {
      if (begin == 1) {
        begun = true;
        usleep(50000);
        slept_on = allowed_cpus();
      }
      while (!begun) std::this_thread::yield();
    });
    EXPECT_EQ(slept_on, 1) << "the caller's, or its own";
    begun = false;
    parallel_for(*pool, 2, [&](int64_t begin, int64_t) {
      if (begin == 1) {
        begun = true;
        later_on = allowed_cpus();
      }
      while (!begun) std::this_thread::yield();
    });
    EXPECT_EQ(later_on, pinned ? 1 : cpus) << "it went back";
  }
}

TEST(ThreadPool, PinsEachThreadAndGivesTheCallerItsCoresBack) {
  cpu_set_t before, inside, after;
  sched_getaffinity(0, sizeof before, &before);
  ThreadPool pool = make_thread_pool(2, true);
  sched_getaffinity(0, sizeof inside, &inside);
  EXPECT_EQ(CPU_COUNT(&inside), 1);
  pool.reset();
  sched_getaffinity(0, sizeof after, &after);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

// The calling thread's mode without the flags of exceptions that there were.
uint64_t mode_here() { return pruner_float_mode() & ~uint64_t{0x3f}; }

TEST(ThreadPool, ComputesInTheModeOfTheCallerOnAllThreads) {
  const ThreadPool pool = make_thread_pool(3, false);
  const uint64_t before = pruner_float_mode();
  for (const int rounding : {FE_TOWARDZERO, FE_UPWARD, FE_TONEAREST}) {
    for (const bool flushing : {true, false}) {
      std::fesetround(rounding);
      const uint64_t mode = flushing ? pruner_flushing(mode_here()) : mode_here();
      pruner_set_float_mode(mode);
      Meeting meeting(3);
      std::atomic<int> alike = 0;
      parallel_for(*pool, 3, [&](int64_t, int64_t) {
        alike += mode_here() == mode;
        meeting.arrive_and_wait();  // ends only when each part has a thread of its own
      });
      pruner_set_float_mode(before);
      EXPECT_EQ(alike, 3) << "rounding " << rounding << ", flushing " << flushing;
    }
  }
  std::fesetround(FE_TONEAREST);
}

TEST(ThreadPool, WorkersHaveRoomForLocalBuffers) {
  const ThreadPool pool = make_thread_pool(2, false);
  Meeting meeting(2);
  std::atomic<size_t> worker_bytes = 0;
  parallel_for(*pool, 2, [&](int64_t begin, int64_t) {
    pthread_attr_t attributes;
    size_t bytes = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_destroy(&attributes);
    if (begin != 0) worker_bytes = bytes;  // begin 0: the caller, whose stack is the program's own
    meeting.arrive_and_wait();
  });
  EXPECT_GE(worker_bytes, size_t{8} << 20);
}

TEST(ThreadPool, WorksInAForkedChildThatMakesItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer allows no threads after a fork";
#endif
  const ThreadPool parents = make_thread_pool(2, false);
  visits(*parents, 10);
  const pid_t child = fork();
  if (child == 0) {
    const ThreadPool pool = make_thread_pool(2, false);
    _exit(visits(*pool, 100) == std::vector<int>(100, 1) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(visits(*parents, 10), std::vector<int>(10, 1));
}

TEST(ThreadPool, RefusesLessThanOneThread) { EXPECT_EQ(make_thread_pool(0, false), nullptr); }

}  // namespace
}  // namespace pruner
