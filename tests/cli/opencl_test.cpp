// label: device
// Tuning for the OpenCL device of this machine, as a user runs it.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "cli/run_program.h"
#include "golden.h"
#include "support/json.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

TEST(OpenClCommands, TuneAnOperatorThenSeeItsCode) {
  const std::string dir =
      (fs::temp_directory_path() / ("pruner_opencl_" + std::to_string(getpid()))).string();
  setenv("POCL_CACHE_DIR", dir.c_str(), 1);
  fs::create_directories(dir);
  const std::vector<std::string> task = {"--op", "matmul 16 32 24", "--target", "opencl"};
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin() + 1, task.begin(), task.end());
    return run_program(words);
  };
  const std::string work_dir = dir + "/out";
  const ProgramRun tuned = run({"tune", "--n-trials", "3", "--work-dir", work_dir, "--json"});
  if (tuned.err.find("no OpenCL") != std::string::npos) GTEST_SKIP() << tuned.err;
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const Result<Json> summary = parse_json(tuned.out);
  ASSERT_TRUE(summary.ok()) << tuned.out;
  EXPECT_EQ((*summary)["trials"], 3);
  EXPECT_GT((*summary)["estimated_total_latency_ms"].get<double>(), 0);

  const std::string records = work_dir + "/records.json";
  const ProgramRun printed = run({"compile", "--records", records, "--print=opencl"});
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_NE(printed.out.find("__kernel "), std::string::npos);
  fs::remove_all(dir);
}

}  // namespace
}  // namespace pruner
