// label: codegen
// A service that loads, runs and unloads modules over and over, from several threads and in a
// forked process: memory, descriptors and threads stay as many. PRUNER_SOAK in the environment says
// how often (bench/soak.sh: 10,000).
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "deploy/loaded_module.h"
#include "golden.h"
#include "own_path.h"
#include "tiny_module.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

int rounds() {
  const char* const text = std::getenv("PRUNER_SOAK");
  return text == nullptr ? 200 : std::max(1, std::atoi(text));
}

int64_t entries(const char* folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

int64_t resident_pages() {
  int64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident;
}

// "" or what is wrong.
std::string load_and_run(const std::string& path, int threads) {
  Result<LoadedModule> module = load_module(path, threads);
  if (!module.ok()) return module.error().message();
  const Result<std::vector<Tensor>> outputs = module->run(seeded_inputs(module->inputs(), 0));
  return outputs.ok() ? "" : outputs.error().message();
}

class LongRun : public testing::Test {
 protected:
  void SetUp() override {
#if !defined(__x86_64__)
    GTEST_SKIP() << "the kernels are x86-64 assembly";
#endif
    ASSERT_TRUE(make_tiny_module(path_).ok());
  }
  void TearDown() override { fs::remove(path_); }

  std::string path_ = own_path("long_run.so");
};

TEST_F(LongRun, LoadsRunsAndUnloads) {
  for (int i = 0; i < 50; ++i) ASSERT_EQ(load_and_run(path_, 2), "");  // caches fill
  const int64_t descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  const int64_t pages = resident_pages();
  for (int i = 0; i < rounds(); ++i) ASSERT_EQ(load_and_run(path_, 2), "") << "round " << i;
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
  EXPECT_EQ(entries("/proc/self/task"), threads);
  constexpr int64_t kMorePages = 256;  // 1 MiB, whatever the number of rounds
  EXPECT_LE(resident_pages(), pages + kMorePages);
}

TEST_F(LongRun, FromEightThreads) {
  std::vector<std::string> problems(8);
  std::vector<std::thread> threads;
  for (std::string& problem : problems) {
    threads.emplace_back([&] {
      for (int i = 0; i < rounds() / 8 + 1 && problem.empty(); ++i)
        problem = load_and_run(path_, 2);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) EXPECT_EQ(problem, "");
}

TEST_F(LongRun, AfterFork) {
  Result<LoadedModule> parents = load_module(path_, 2);
  ASSERT_TRUE(parents.ok());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  // The parent's threads are not in the child, which makes an instance of its own.
  if (child == 0) _exit(load_and_run(path_, 2).empty() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(parents->run(seeded_inputs(parents->inputs(), 0)).ok());
}

}  // namespace
}  // namespace pruner
