#include "measure/runner.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <iterator>

#include "own_path.h"
#include "support/file.h"
#include "test_kernels.h"

namespace pruner {
namespace {

class RunnerTest : public testing::Test {
 protected:
  RunnerTest() : runner_(load_test_kernel) {
    MeasureOptions options;
    options.run_timeout_s = 2;
    options.time_budget_s = 0.02;
    runner_.set_options(options);
    const Result<Unit> set = runner_.set_task(matmul_16(2));
    EXPECT_TRUE(set.ok()) << set.error().message();
  }

  // The candidate fails as it should, and the next runs normally.
  void expect_failure(const char* kernel, MeasureError error, const std::string& text) {
    const MeasureResult result = runner_.run(test_artifact(kernel), kFailedCost);
    EXPECT_EQ(result.error, error) << kernel << ": " << result.error_text;
    EXPECT_NE(result.error_text.find(text), std::string::npos)
        << kernel << ": " << result.error_text << "\nexpected: " << text;
    EXPECT_EQ(result.cost_s(), kFailedCost);
    const MeasureResult next = runner_.run(test_artifact("right"), kFailedCost);
    EXPECT_TRUE(next.ok()) << "after " << kernel << ": " << next.error_text;
  }

  Runner runner_;
};

TEST_F(RunnerTest, TimesARightKernel) {
  const MeasureResult result = runner_.run(test_artifact("right"), kFailedCost);
  ASSERT_TRUE(result.ok()) << result.error_text;
  EXPECT_GE(result.costs_s.size(), 1u);
  EXPECT_GT(result.cost_s(), 1e-8);
  EXPECT_LT(result.cost_s(), 1e-2);
  EXPECT_FALSE(result.cut_off);
  EXPECT_GT(result.timestamp, 1700000000);
}

TEST_F(RunnerTest, TakesSubnormalNumbersForZeros) {
  const MeasureResult result = runner_.run(test_artifact("flushed"), kFailedCost);
  EXPECT_TRUE(result.ok()) << result.error_text;
}

TEST_F(RunnerTest, CutsASlowKernelOff) {
  const MeasureResult result = runner_.run(test_artifact("slow"), 1e-3);
  ASSERT_TRUE(result.ok()) << result.error_text;
  EXPECT_TRUE(result.cut_off);
  EXPECT_EQ(result.costs_s.size(), 1u);
  EXPECT_GT(result.cost_s(), 0.019);
}

TEST_F(RunnerTest, RefusesWrongNumbers) {
  expect_failure("wrong", MeasureError::kWrongAnswer, "output 0 (float32 16x16) [15, 15] is ");
  expect_failure(
      "nan", MeasureError::kWrongAnswer, "output 0 (float32 16x16) [0, 0] is nan, expected ");
  expect_failure(
      "unwritten", MeasureError::kWrongAnswer, "output 0 (float32 16x16) [6, 4] was not written");
  expect_failure("changes", MeasureError::kWrongAnswer, "when run again");
  expect_failure("rarely", MeasureError::kWrongAnswer, "[4, 13] is 0, expected ");
}

TEST_F(RunnerTest, WantsEveryBitOfNarrowWholeNumbers) {
  ASSERT_TRUE(runner_.set_task(narrow_dense_16(2)).ok());
  const MeasureResult right = runner_.run(narrow_artifact("narrow"), kFailedCost);
  EXPECT_TRUE(right.ok()) << right.error_text;
  const MeasureResult near = runner_.run(narrow_artifact("nearly"), kFailedCost);
  EXPECT_EQ(near.error, MeasureError::kWrongAnswer);
  EXPECT_NE(near.error_text.find("exactly, of whole numbers"), std::string::npos)
      << near.error_text;
  EXPECT_TRUE(runner_.run(narrow_artifact("nearly"), 1e-12).ok()) << "not the best";
}

TEST_F(RunnerTest, SurvivesCrashes) {
  expect_failure("crash", MeasureError::kRuntimeDevice, "SIGSEGV in its first run");
  expect_failure("illegal", MeasureError::kRuntimeDevice, "SIGILL in its first run");
  expect_failure("deep_stack", MeasureError::kRuntimeDevice, "SIGSEGV in its first run");
  expect_failure("worker_crash", MeasureError::kRuntimeDevice, "SIGSEGV in its first run");
}

TEST_F(RunnerTest, NamesWhereMemoryWasTouchedThatIsNotTheKernels) {
  expect_failure("past_end",
                 MeasureError::kRuntimeDevice,
                 "SIGSEGV in its first run, 0 bytes past the end of output 0 (float32 16x16)");
  expect_failure("writes_input",
                 MeasureError::kRuntimeDevice,
                 "SIGSEGV in its first run, writing to input 1 (float32 16x16)");
  expect_failure("just_past_end", MeasureError::kWrongAnswer, "wrote outside the workspace");
}

TEST_F(RunnerTest, EndsAHangAndAMemoryHog) {
  expect_failure("hang", MeasureError::kRunTimeout, "still running after 2 s, in its first run");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  expect_failure("memory", MeasureError::kRuntimeDevice, "out of memory in its first run");
#endif
}

// A loader that is called in the child, and kills it the first `times` times.
KernelLoader killing_loader(const std::string& marks, uintmax_t times) {
  return [=](const Artifact& artifact) {
    std::error_code none;
    if (!std::filesystem::exists(marks, none) || std::filesystem::file_size(marks, none) < times) {
      static_cast<void>(append_file(marks, "."));
      raise(SIGKILL);
    }
    return load_test_kernel(artifact);
  };
}

TEST(Runner, RunsACandidateAgainThatAnotherKilled) {
  const std::string marks = own_path("kills");
  for (const uintmax_t times : {2, 3}) {
    Runner runner(killing_loader(marks, times));
    ASSERT_TRUE(runner.set_task(matmul_16(1)).ok());
    const MeasureResult result = runner.run(test_artifact("right"), kFailedCost);
    EXPECT_EQ(result.ok(), times == 2) << result.error_text;
    EXPECT_EQ(result.error_text, times == 2 ? "" : "SIGKILL while it was loaded");
    std::filesystem::remove(marks);
  }
}

// Kernels before 5.3 have no pidfd_open(); older container engines forbid it.
TEST(Runner, NeedsNoDescriptorOfAProcess) {
  const pid_t child = fork();
  if (child == 0) {
    sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program = {std::size(rules), rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      _exit(77);
    Runner runner(load_test_kernel);
    const bool ok = runner.set_task(matmul_16(1)).ok() &&
                    runner.run(test_artifact("right"), kFailedCost).ok() &&
                    runner.run(test_artifact("crash"), kFailedCost).error_text.starts_with("SIG");
    _exit(ok ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "system calls cannot be forbidden here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(RunnerTest, SaysWhatCannotBeLoadedOrCalled) {
  expect_failure("unknown", MeasureError::kCompileDevice, "no test kernel unknown");
  Artifact artifact = test_artifact("right");
  artifact.workspace_bytes = int64_t{1} << 60;
  EXPECT_NE(runner_.run(artifact, kFailedCost).error_text.find("no memory for a buffer"),
            std::string::npos);
  artifact = test_artifact("right");
  artifact.arguments[1].shape = {16, 17};
  EXPECT_EQ(runner_.run(artifact, kFailedCost).error_text,
            "input 1 (float32 16x17) is 1088 bytes to the kernel, 1024 to the task");
  artifact.arguments.pop_back();
  EXPECT_EQ(runner_.run(artifact, kFailedCost).error_text,
            "the kernel has 2 arguments, the task 3");
}

}  // namespace
}  // namespace pruner
