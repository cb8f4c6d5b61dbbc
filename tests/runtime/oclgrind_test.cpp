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

#include "codegen/launch.h"
#include "golden.h"
#include "loaded_program.h"
#include "lower/gpu_programs.h"
#include "lower/lower.h"
#include "space/operator_task.h"

namespace pruner {
namespace {

constexpr const char* kLibrary = "/usr/lib/oclgrind/liboclgrind-rt-icd.so";
constexpr const char* kProgramVariable = "PRUNER_OCLGRIND_PROGRAM";

// Operators small enough to be simulated, one of each kind.
constexpr const char* kOperators[] = {"matmul 7 13 11",
                                      "dense 5 19 24",
                                      "conv2d 1 16 7 7 8 3 3 padding=1 +bias +relu",
                                      "conv2d_transpose 1 8 6 6 4 4 4 stride=2 padding=1",
                                      "depthwise_conv2d 1 24 9 9 3 3 padding=1 +bias +relu",
                                      "max_pool2d 1 19 7 7 3 3 stride=2 padding=1",
                                      "sum 5 37",
                                      "softmax 4 19",
                                      "layernorm 5 48"};
constexpr int64_t kSharedBytes = 32 << 10;  // shared memory of the simulated device

void add_candidates(const std::string& op, std::vector<NamedProgram>& programs) {
  const Space space = make_space(operator_task(op, *parse_target("opencl", 0)));
  Rng rng(23);
  for (int drawn = 0; drawn < 2;) {
    const Candidate candidate = sample(space, rng);
    if (!is_legal(space, candidate)) continue;
    const Result<Program> program = lower(space, candidate, "k");
    ASSERT_TRUE(program.ok()) << program.error().message();
    if (plan_launches(*program, "k", INT64_MAX)[0].shared_bytes > kSharedBytes) continue;
    programs.push_back({op + " " + std::to_string(drawn++), *program});
  }
}

// Those of one name, or of the beginning of one.
std::vector<NamedProgram> programs_of(const std::string& name) {
  std::vector<NamedProgram> programs = gpu_programs();
  programs.push_back({"no_barrier", gpu_matmul({}, Plant::kNoBarrier)});
  programs.push_back({"past_global", gpu_matmul({}, Plant::kPastGlobal)});
  programs.push_back({"past_shared", gpu_matmul({}, Plant::kPastShared)});
  programs.push_back({"two_blocks", gpu_matmul({}, Plant::kTwoBlocks)});
  for (const char* op : kOperators) {
    if (op == name) add_candidates(op, programs);
  }
  std::erase_if(programs, [&](const NamedProgram& p) { return !p.name.starts_with(name); });
  return programs;
}

void run_on_device(const Program& program) {
  const Result<Artifact> artifact = compile(program, *parse_target("opencl", 0), "kernel");
  ASSERT_TRUE(artifact.ok()) << artifact.error().message();
  const auto loaded = LoadedProgram::load(*artifact);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message();
  std::vector<Tensor> args = gpu_arguments(program);
  for (size_t i = 0; i < args.size(); ++i) {
    ASSERT_TRUE((*loaded)->write_argument(i, args[i].data()).ok());
  }
  ASSERT_TRUE((*loaded)->run(1).ok());
}

// Runs the programs that the environment names on the simulated device, in a process of its own.
TEST(OclgrindChild, RunsWhatItIsTold) {
  const char* name = std::getenv(kProgramVariable);
  if (name == nullptr) GTEST_SKIP() << "started by the other tests";
  const std::vector<NamedProgram> programs = programs_of(name);
  ASSERT_FALSE(programs.empty()) << "no program " << name;
  for (const NamedProgram& p : programs) run_on_device(p.program);
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

  // Returns oclgrind's reports on a program.
  std::string reports(const std::string& program) {
    const std::string log = folder_ + "/reports.log";
    std::filesystem::remove(log);
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

TEST_F(OclgrindTest, FindsNothingInCandidates) {
  for (const char* op : kOperators) EXPECT_EQ(reports(op), "") << op;
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
