#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "golden.h"
#include "measure/local_measurer.h"
#include "test_kernels.h"

namespace pruner {
namespace {

// The workers are this program itself (main.cpp).
std::unique_ptr<LocalMeasurer> make_measurer(const std::function<bool()>& stop = {}) {
  MeasureOptions options;
  options.build_timeout_s = 2;
  options.time_budget_s = 0.01;
  options.stop = stop;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  Result<std::unique_ptr<LocalMeasurer>> measurer = LocalMeasurer::make(options, program);
  EXPECT_TRUE(measurer.ok()) << measurer.error().message();
  return *std::move(measurer);
}

Candidate candidate(TestBuild build) { return {SketchId{0}, {build}}; }

// Returns what can be read of a file of a process, which may end meanwhile.
std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Whether this process started the one at `proc` and has not seen its end.
bool is_running_child(const std::filesystem::path& proc) {
  const std::string stat = contents(proc / "stat");  // pid (name) state parent ...
  const size_t after_name = stat.rfind(')');
  if (after_name == std::string::npos || stat[after_name + 2] == 'Z') return false;
  return std::stoi(stat.substr(after_name + 4)) == getpid();
}

// Processes that this one started: "run" or "build" workers.
std::vector<pid_t> workers(const std::string& command) {
  std::vector<pid_t> pids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    // posix_spawn() returns a moment before exec gives the process its command line.
    std::string line;
    while (is_running_child(entry.path()) && line.empty())
      line = contents(entry.path() / "cmdline");
    if (line.find(std::string("worker\0", 7) + command) != std::string::npos) {
      pids.push_back(std::stoi(name));
    }
  }
  return pids;
}

TEST(LocalMeasurer, MeasuresABatchInOrder) {
  const auto measurer = make_measurer();
  const Task task = matmul_16(1);
  const std::vector<Candidate> batch = {candidate(kBuildRight),
                                        candidate(kBuildWrong),
                                        candidate(kBuildRight),
                                        candidate(kBuildError)};
  const std::vector<MeasureResult> results = *measurer->measure(task, batch, kFailedCost);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_TRUE(results[0].ok()) << results[0].error_text;
  EXPECT_EQ(results[1].error, MeasureError::kWrongAnswer);
  EXPECT_TRUE(results[2].ok()) << results[2].error_text;
  EXPECT_EQ(results[3].error, MeasureError::kCompileHost);
  EXPECT_EQ(results[3].error_text, "does not compile");
  EXPECT_EQ(results[0].build_s, 0.001);
  EXPECT_GT(measurer->times().run_s, 0);
  // In two halves, of which another measurer has the second.
  const std::vector<Build> builds = *measurer->build(task, batch);
  ASSERT_EQ(builds.size(), 4u);
  EXPECT_EQ(builds[3].error_text, "does not compile");
  const std::vector<MeasureResult> run = *make_measurer()->run(task, builds, kFailedCost);
  ASSERT_EQ(run.size(), 4u);
  for (size_t i = 0; i < run.size(); ++i) {
    EXPECT_EQ(run[i].error, results[i].error) << i;
    EXPECT_EQ(run[i].error_text, results[i].error_text) << i;
    EXPECT_EQ(run[i].build_s, results[i].build_s) << i;
  }
  EXPECT_GT(measurer->times().build_s, 0);
}

TEST(LocalMeasurer, MeasuresAgainWhatWasComparedWithAWrongKernel) {
  const auto measurer = make_measurer();
  const std::vector<Candidate> batch = {
      candidate(kBuildWrong), candidate(kBuildWrong), candidate(kBuildRight)};
  const std::vector<MeasureResult> results = *measurer->measure(wide_matmul(1), batch, kFailedCost);
  ASSERT_EQ(results.size(), 3u);
  for (const int i : {0, 1}) {
    EXPECT_EQ(results[i].error, MeasureError::kWrongAnswer);
    EXPECT_NE(results[i].error_text.find("[170, 131]"), std::string::npos) << results[i].error_text;
  }
  EXPECT_TRUE(results[2].ok()) << results[2].error_text;
}

TEST(LocalMeasurer, ReplacesACompilerThatCrashesHangsOrEatsAllMemory) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer takes signals and address space for itself";
#endif
  const auto measurer = make_measurer();
  const Task task = matmul_16(2);
  const std::vector<Candidate> batch = {candidate(kBuildCrash),
                                        candidate(kBuildRight),
                                        candidate(kBuildHang),
                                        candidate(kBuildRight),
                                        candidate(kBuildMemory),
                                        candidate(kBuildRight)};
  const std::vector<MeasureResult> results = *measurer->measure(task, batch, kFailedCost);
  ASSERT_EQ(results.size(), 6u);
  EXPECT_EQ(results[0].error, MeasureError::kCompileHost);
  EXPECT_EQ(results[0].error_text, "the compiler ended: SIGSEGV");
  EXPECT_EQ(results[2].error, MeasureError::kBuildTimeout);
  EXPECT_EQ(results[4].error, MeasureError::kCompileHost);
  EXPECT_EQ(results[4].error_text, "the compiler ended: out of memory");
  for (const int i : {1, 3, 5}) EXPECT_TRUE(results[i].ok()) << i << results[i].error_text;
}

TEST(LocalMeasurer, KeepsWorkersAcrossBatchesAndTasks) {
  const auto measurer = make_measurer();
  const std::vector<Candidate> batch = {candidate(kBuildRight)};
  ASSERT_TRUE(measurer->measure(matmul_16(1), batch, kFailedCost).ok());
  const std::vector<pid_t> before = workers("run");
  for (const int threads : {2, 1, 2}) {
    const auto results = *measurer->measure(matmul_16(threads), batch, kFailedCost);
    ASSERT_EQ(results.size(), 1u);
    EXPECT_TRUE(results[0].ok()) << results[0].error_text;
    EXPECT_EQ(workers("run"), before);
  }
}

TEST(LocalMeasurer, StartsADeadRunnerAgainAndTellsItTheTask) {
  const auto measurer = make_measurer();
  const Task task = matmul_16(2);
  const std::vector<Candidate> batch = {candidate(kBuildRight)};
  ASSERT_TRUE((*measurer->measure(task, batch, kFailedCost))[0].ok());
  for (const char* kind : {"run", "build"}) {
    for (const pid_t pid : workers(kind)) kill(pid, SIGKILL);
    usleep(20000);
    const MeasureResult result = (*measurer->measure(task, batch, kFailedCost))[0];
    EXPECT_TRUE(result.ok()) << kind << ": " << result.error_text;
  }
}

/// While one lives, this process can open no file more.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = dup(STDIN_FILENO);
    close(next);
    const rlimit few{static_cast<rlim_t>(next), before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
};

TEST(LocalMeasurer, TriesAgainWhatTheMachineHasFailed) {
  const auto measurer = make_measurer();
  const Task task = matmul_16(2);
  const std::vector<Candidate> batch = {candidate(kBuildRight), candidate(kBuildRight)};
  auto none = std::make_unique<NoMoreFiles>();  // no runner can be started
  std::jthread mender([&] {
    usleep(400000);
    none.reset();
  });
  const std::vector<MeasureResult> results = *measurer->measure(task, batch, kFailedCost);
  ASSERT_EQ(results.size(), 2u);
  for (const MeasureResult& result : results) EXPECT_TRUE(result.ok()) << result.error_text;
}

TEST(LocalMeasurer, GivesUpWhenTheMachineStaysSo) {
  const auto measurer = make_measurer();
  const Task task = matmul_16(2);
  const std::vector<Candidate> batch = {candidate(kBuildRight)};
  {
    const NoMoreFiles none;
    EXPECT_ERROR(measurer->measure(task, batch, kFailedCost),
                 "nothing can be measured, after 7 attempts: no socket for a worker: Too many open "
                 "files");
  }
  EXPECT_TRUE((*measurer->measure(task, batch, kFailedCost))[0].ok());
}

TEST(LocalMeasurer, StopsBetweenCandidates) {
  int asked = 0;
  const auto measurer = make_measurer([&] { return ++asked > 6; });
  const std::vector<Candidate> batch(50, candidate(kBuildRight));
  EXPECT_LT(measurer->measure(matmul_16(2), batch, kFailedCost)->size(), 50u);
}

TEST(LocalMeasurer, LeavesNoProcessBehind) {
  {
    const auto measurer = make_measurer();
    EXPECT_EQ(workers("build").size(), 2u);
  }
  EXPECT_EQ(workers("build").size() + workers("run").size(), 0u);
}

// Ctrl-C goes to all processes of the terminal, and what ends a service or a job to all of its; the
// measurer decides what becomes of its workers.
TEST(LocalMeasurer, KeepsItsWorkersWhenAllAreSignalled) {
  const auto measurer = make_measurer();
  const std::vector<Candidate> batch = {candidate(kBuildRight)};
  ASSERT_TRUE((*measurer->measure(matmul_16(2), batch, kFailedCost))[0].ok());
  const std::vector<pid_t> before = workers("run");
  for (const char* kind : {"run", "build"}) {
    for (const pid_t pid : workers(kind)) {
      for (const int each : {SIGINT, SIGTERM, SIGHUP}) kill(pid, each);
    }
  }
  usleep(20000);
  EXPECT_TRUE((*measurer->measure(matmul_16(2), batch, kFailedCost))[0].ok());
  EXPECT_EQ(workers("run"), before);
}

TEST(LocalMeasurer, TakesItsWorkersAlongWhenKilled) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto measurer = make_measurer();
    const std::vector<Candidate> batch(3, candidate(kBuildRight));
    (void)measurer->measure(matmul_16(1), batch, kFailedCost);
    std::vector<pid_t> pids = workers("build");
    pids.push_back(workers("run").at(0));
    static_cast<void>(!write(ends[1], pids.data(), 3 * sizeof(pid_t)));
    pause();
  }
  pid_t pids[3] = {};
  ASSERT_EQ(read(ends[0], pids, sizeof pids), static_cast<ssize_t>(sizeof pids));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const pid_t pid : pids) {
    bool gone = false;
    for (int i = 0; i < 500 && !gone; ++i, usleep(10000)) {
      const std::string stat = contents("/proc/" + std::to_string(pid) + "/stat");
      gone = stat.empty() || stat.find(") Z ") != std::string::npos;
    }
    EXPECT_TRUE(gone) << pid;
  }
}

TEST(LocalMeasurer, SaysThatTheProgramCannotBeStarted) {
  EXPECT_ERROR(LocalMeasurer::make({}, "/nowhere/pruner"),
               "/nowhere/pruner: cannot be started as a worker: No such file or directory");
}

}  // namespace
}  // namespace pruner
