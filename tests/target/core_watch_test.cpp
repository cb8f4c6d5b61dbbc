#include "target/core_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

namespace pruner {
namespace {

void compute_for(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(CoreWatch, ReadsWhatCpusWereBusyWith) {
  const char* stat =
      "cpu  999 9 9 9 9 9 9 9 9 9\n"
      "cpu0 100 10 20 5000 700 1 2 3 50 0\n"
      "cpu1 200 0 0 5000 0 0 0 0 0 0\n"
      "cpu11 1000 0 0 0 0 0 0 0 0 0\n"
      "intr 12345\n";
  const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(busy_seconds(stat, {0}), 136 * tick);
  EXPECT_DOUBLE_EQ(busy_seconds(stat, {0, 1}), 336 * tick);
  EXPECT_LT(busy_seconds(stat, {0, 2}), 0);
  EXPECT_LT(busy_seconds("", {0}), 0);
  EXPECT_LT(busy_seconds("cpu0", {}), 0);
}

TEST(CoreWatch, AddsUp) {
  CoreTime time{2, 0.5};
  time += {2, -0.1};
  EXPECT_DOUBLE_EQ(time.share(), 0.1);
  EXPECT_EQ((CoreTime{1, -0.5}).share(), 0);
  EXPECT_EQ(CoreTime{}.share(), 0);
  EXPECT_EQ(print_busy({1, 0.01}), "");
  EXPECT_EQ(print_busy({2, 0.5}), "other processes had 25 % of the cores' time");
}

// A child is another process; what this one computes is its own.
TEST(CoreWatch, TellsOthersFromItself) {
  const CoreWatch watch;
  const pid_t child = fork();
  if (child == 0) {
    for (;;) compute_for(1);
  }
  compute_for(0.5);
  const CoreTime time = watch.time();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (time.cores_s == 0) GTEST_SKIP() << "this system does not tell";
  // With one core the two shared it; other programs only add to it.
  EXPECT_GT(time.others_s, 0.1);
  EXPECT_LT(time.others_s, time.cores_s);
}

}  // namespace
}  // namespace pruner
