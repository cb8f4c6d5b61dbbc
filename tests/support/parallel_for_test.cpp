#include "support/parallel_for.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace pruner {
namespace {

TEST(ParallelFor, RunsEveryIndexOnceForAnyNumberOfJobs) {
  for (const int jobs : {0, 1, 2, 3, 16}) {
    std::vector<std::atomic<int>> runs(101);
    parallel_for(101, jobs, [&](int64_t i) { ++runs[i]; });
    for (const auto& n : runs) EXPECT_EQ(n, 1) << jobs << " jobs";
  }
}

TEST(ParallelFor, DoesNothingForAnEmptyRange) {
  parallel_for(0, 4, [](int64_t) { FAIL(); });
}

TEST(ParallelFor, RunsOnTheCallersThreadWithOneJob) {
  std::set<std::thread::id> threads;
  parallel_for(10, 1, [&](int64_t) { threads.insert(std::this_thread::get_id()); });
  EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
}

}  // namespace
}  // namespace pruner
