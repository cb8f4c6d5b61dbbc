// label: device
// GPU programs on oclgrind's simulated device, which looks at every access: it finds nothing in the
// right ones and what is wrong with the others. Its reports are read from its log: the exit status
// of what runs on it says nothing.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "golden.h"
#include "lower/gpu_programs.h"
#include "runtime/opencl.h"

namespace pruner {
namespace {

constexpr const char* kLibrary = "/usr/lib/oclgrind/liboclgrind-rt-icd.so";
constexpr const char* kProgramVariable = "PRUNER_OCLGRIND_PROGRAM";

std::vector<NamedProgram> all_programs() {
  std::vector<NamedProgram> programs = gpu_programs();
  programs.push_back({"no_barrier", gpu_matmul({}, Plant::kNoBarrier)});
  programs.push_back({"past_global", gpu_matmul({}, Plant::kPastGlobal)});
  programs.push_back({"past_shared", gpu_matmul({}, Plant::kPastShared)});
  programs.push_back({"two_blocks", gpu_matmul({}, Plant::kTwoBlocks)});
  return programs;
}

// What runs on the simulated device, in a process of its own: the environment says what.
TEST(OclgrindChild, RunsOneProgram) {
  const char* name = std::getenv(kProgramVariable);
  if (name == nullptr) GTEST_SKIP() << "started by the other tests";
  for (const NamedProgram& p : all_programs()) {
    if (p.name != name) continue;
    const Result<Artifact> artifact = compile(p.program, *parse_target("opencl", 0), "kernel");
    ASSERT_TRUE(artifact.ok()) << artifact.error().message();
    const auto loaded = load_opencl(*artifact);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    std::vector<Tensor> args = gpu_arguments(p.program);
    for (size_t i = 0; i < args.size(); ++i) {
      ASSERT_TRUE((*loaded)->write_argument(static_cast<int>(i), args[i].data()).ok());
    }
    ASSERT_TRUE((*loaded)->run(1).ok());
    return;
  }
  FAIL() << "no program " << name;
}

class OclgrindTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kLibrary)) GTEST_SKIP() << "oclgrind is not installed";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    ASSERT_TRUE(write_file(folder_ + "/oclgrind.icd", kLibrary).ok());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // What oclgrind has to say of a program.
  std::string reports(const std::string& program) {
    const std::string log = folder_ + "/" + program + ".log";
    std::vector<std::string> environment = {std::string(kProgramVariable) + "=" + program,
                                            "OCL_ICD_VENDORS=" + folder_,
                                            "LD_LIBRARY_PATH=/usr/lib/oclgrind",
                                            "OCLGRIND_LOG=" + log,
                                            "OCLGRIND_DATA_RACES=1",
                                            "OCLGRIND_UNIFORM_WRITES=1",
                                            "OCLGRIND_MAX_ERRORS=20"};
    std::vector<std::string> words = {"/proc/self/exe", "--gtest_filter=OclgrindChild.*"};
    const auto pointers = [](std::vector<std::string>& texts) {
      std::vector<char*> result;
      for (std::string& text : texts) result.push_back(text.data());
      result.push_back(nullptr);
      return result;
    };
    pid_t child = 0;
    EXPECT_EQ(posix_spawn(&child,
                          "/proc/self/exe",
                          nullptr,
                          nullptr,
                          pointers(words).data(),
                          pointers(environment).data()),
              0);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << program;
    const Result<std::string> text = read_file(log);
    EXPECT_TRUE(text.ok()) << "oclgrind wrote no log";
    return text.ok() ? *text : "";
  }

  const std::string folder_ =
      (std::filesystem::path(testing::TempDir()) / ("pruner-oclgrind-" + std::to_string(getpid())))
          .string();
};

TEST_F(OclgrindTest, FindsNothingInTheRightPrograms) {
  for (const NamedProgram& p : gpu_programs()) EXPECT_EQ(reports(p.name), "") << p.name;
}

TEST_F(OclgrindTest, FindsWhatThePlantedMistakesDo) {
  for (const auto& [program, words] : {std::pair{"no_barrier", "data race at local"},
                                       std::pair{"past_global", "Invalid write"},
                                       std::pair{"past_shared", "Invalid write"},
                                       std::pair{"two_blocks", "data race at global"}}) {
    const std::string found = reports(program);
    EXPECT_NE(found.find(words), std::string::npos) << program << ": " << found;
  }
}

}  // namespace
}  // namespace pruner
