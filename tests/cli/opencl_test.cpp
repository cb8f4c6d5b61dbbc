// label: device
// Probing the OpenCL device of this machine and tuning for it, as a user does.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "cli/run_program.h"
#include "golden.h"
#include "support/json.h"
#include "target/device_file.h"

namespace pruner {
namespace {

namespace fs = std::filesystem;

struct OpenClCommands : testing::Test {
  OpenClCommands() {
    fs::remove_all(dir);
    fs::create_directories(dir);
    setenv("POCL_CACHE_DIR", dir.c_str(), 1);
  }
  ~OpenClCommands() override { fs::remove_all(dir); }

  /// A command on `matmul 16 32 24` for OpenCL.
  static ProgramRun run(std::vector<std::string> words) {
    const std::vector<std::string> task = {"--op", "matmul 16 32 24", "--target", "opencl"};
    words.insert(words.begin() + 1, task.begin(), task.end());
    return run_program(words);
  }

  const std::string dir =
      (fs::temp_directory_path() / ("pruner_opencl_" + std::to_string(getpid()))).string();
};

TEST_F(OpenClCommands, ProbeTheDeviceIntoAFile) {
  const std::string file = dir + "/mine.json";
  const ProgramRun probed =
      run_program({"device", "probe", "--target", "opencl", "--min-time", "0.02", "-o", file});
  if (probed.err.find("no OpenCL") != std::string::npos) GTEST_SKIP() << probed.err;
  ASSERT_EQ(probed.exit_code, 0) << probed.err;
  EXPECT_NE(probed.out.find("--target 'opencl --device=" + file + "'"), std::string::npos);
  const Result<Target> read = read_device(file);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->backend, Backend::kOpenCl);
  EXPECT_NE(read->source.find("measured by pruner device probe on"), std::string::npos);
  const Gpu &gpu = read->gpu, typical = parse_target("opencl", 0)->gpu;
  for (const double rate :
       {gpu.peak_flops, gpu.dram_bandwidth, gpu.l2_bandwidth, gpu.shared_bandwidth}) {
    EXPECT_GE(rate, 0.1e9);
    EXPECT_LT(rate, 1e15);
  }
  EXPECT_LT(gpu.launch_s, 0.01);
  EXPECT_EQ(gpu.psa.glbmem_bandwidth, gpu.dram_bandwidth * 1e-9);
  EXPECT_EQ(gpu.max_threads_per_block, typical.max_threads_per_block);
  const ProgramRun shown = run_program({"device", "show", file, "--json"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ((*parse_json(shown.out))["peak_flops"].get<double>(), gpu.peak_flops);
  const ProgramRun compiled = run_program({"compile",
                                           "--op",
                                           "matmul 16 32 24",
                                           "--target",
                                           "opencl",
                                           "--psa",
                                           file,
                                           "--print=opencl"});
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
}

TEST_F(OpenClCommands, TuneAnOperatorThenSeeItsCode) {
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

  const ProgramRun made = run({"compile", "--records", records, "-o", dir + "/best.so"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(run_program({"bench", "--module", dir + "/best.so", "--min-time", "0"}).exit_code, 0);
}

TEST_F(OpenClCommands, CompileThenTimeIt) {
  const std::string module = dir + "/mm.so";
  const ProgramRun made = run({"compile", "--n-trials", "0", "-o", module});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const ProgramRun timed = run_program({"bench", "--module", module, "--min-time", "0"});
  if (timed.err.find("OpenCL") != std::string::npos) GTEST_SKIP() << timed.err;
  EXPECT_NE(timed.out.find("runs, on the device"), std::string::npos) << timed.out;
  const ProgramRun profiled =
      run_program({"bench", "--module", module, "--min-time", "0", "--profile", "--json"});
  const Result<Json> profile = parse_json(profiled.out);
  ASSERT_TRUE(profile.ok()) << profiled.out << profiled.err;
  EXPECT_EQ((*profile)["threads"], 0);
  EXPECT_EQ((*profile)["kernels"].size(), 1u);
  EXPECT_TRUE((*profile)["kernels"][0]["peak_percent"].is_null());
}

TEST_F(OpenClCommands, TuneANetworkEndsWithItsModule) {
  const ProgramRun tuned = run_program({"tune",
                                        "--network",
                                        "mobilenet_v2",
                                        "--image-size",
                                        "32",
                                        "--target",
                                        "opencl",
                                        "--tasks",
                                        "dense",
                                        "--n-trials",
                                        "1",
                                        "--work-dir",
                                        dir + "/out"});
  if (tuned.err.find("no OpenCL") != std::string::npos) GTEST_SKIP() << tuned.err;
  EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_NE(tuned.out.find("Mean inference time"), std::string::npos) << tuned.out;
  EXPECT_TRUE(fs::exists(dir + "/out/mobilenet_v2.so"));
}

}  // namespace
}  // namespace pruner
