// label: cuda-fake
// Tuning for CUDA as a user does, on the fake driver: what is printed and recorded, and the line
// that says what to mend where the device does not serve.
#include <cstdlib>

#include "cli/run_program.h"
#include "fakes/fake_cuda.h"
#include "golden.h"
#include "record/record.h"
#include "support/json.h"
#include "target/device_file.h"

namespace pruner {
namespace {

class CudaCommands : public testing::Test {
 protected:
  /// `tune` of a small product, for so many trials.
  static ProgramRun tune(const FakeCuda& driver,
                         const std::string& trials,
                         const std::vector<std::string>& more = {},
                         const std::string& target = "cuda",
                         const std::string& op = "matmul 16 32 24") {
    std::vector<std::string> words = {"tune",
                                      "--op",
                                      op,
                                      "--target",
                                      target,
                                      "--cost-model",
                                      "draft-only",
                                      "--n-trials",
                                      trials,
                                      "--work-dir",
                                      driver.path("out")};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }

  static std::vector<Record> records(const FakeCuda& driver) {
    const Result<RecordFile> file = read_records(driver.path("out/records.json"));
    return file.ok() ? file->records : std::vector<Record>();
  }
};

TEST_F(CudaCommands, TuneAnOperatorWithTheClocksInItsRecords) {
  const FakeCuda driver("arch=80");
  const ProgramRun tuned = tune(driver, "4", {"--json"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_EQ((*parse_json(tuned.out))["trials"], 4);
  ASSERT_GE(records(driver).size(), 4u);
  for (const Record& record : records(driver)) {
    EXPECT_TRUE(record.result.ok()) << record.result.error_text;
    ASSERT_TRUE(record.result.clocks.has_value());
    EXPECT_GT(record.result.clocks->sm_mhz, 0);
    EXPECT_EQ(record.hardware, (std::vector<int64_t>{-1, 16, 64, 49152, 2147483647, 1024, 8, 32}));
    EXPECT_NE(record.target.find("sm_80"), std::string::npos) << "the arch of the GPU that is here";
  }
  EXPECT_EQ(driver.lines("VIOLATION"), "");
}

TEST_F(CudaCommands, MeasureABundleAsTuneMeasures) {
  const FakeCuda driver("arch=90");
  const std::string bundle = driver.path("b"), records_file = driver.path("out/records.json");
  const ProgramRun built = tune(driver, "4", {"--build-only", bundle}, "cuda --arch=sm_90");
  ASSERT_EQ(built.exit_code, 0) << built.err;
  EXPECT_EQ(driver.lines("cuLaunchKernel"), "") << "nothing runs";
  const ProgramRun measured =
      run_program({"measure", bundle, "--records", records_file, "--unsigned"});
  ASSERT_EQ(measured.exit_code, 0) << measured.err;
  const std::vector<Record> by_bundle = records(driver);
  ASSERT_EQ(by_bundle.size(), 4u);
  std::filesystem::remove_all(driver.path("out"));
  ASSERT_EQ(tune(driver, "4", {}, "cuda --arch=sm_90").exit_code, 0);
  const std::vector<Record> by_tune = records(driver);
  ASSERT_GE(by_tune.size(), 4u);
  for (size_t i = 0; i < 2; ++i) {  // only the first round: the second has learned from it
    EXPECT_TRUE(by_bundle[i].result.ok()) << by_bundle[i].result.error_text;
    EXPECT_TRUE(by_bundle[i].result.clocks.has_value());
    EXPECT_EQ(by_bundle[i].decisions, by_tune[i].decisions);
    EXPECT_EQ(by_bundle[i].device, by_tune[i].device);
    EXPECT_EQ(by_bundle[i].mode, by_tune[i].mode);
  }
  EXPECT_EQ(driver.lines("VIOLATION"), "");
}

TEST_F(CudaCommands, RefuseABundleOfAnotherCard) {
  const FakeCuda driver("arch=80");
  const std::string bundle = driver.path("b");
  const auto refused = [&](const std::string& target, const std::string& why) {
    ASSERT_EQ(tune(driver, "1", {"--build-only", bundle}, target).exit_code, 0);
    const ProgramRun run =
        run_program({"measure", bundle, "--records", driver.path("r.json"), "--unsigned"});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_NE(run.err.find(why), std::string::npos) << run.err;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
  };
  refused("cuda --arch=sm_90", "is sm_80, code for sm_90 does not run on it");
  refused("cuda --model=a100_40", "its programs are for a100_40, and cuda:0 is");
}

TEST_F(CudaCommands, TuneANetworkOnTwoDevicesEndsWithItsModule) {
  const FakeCuda driver("arch=80,devices=2");
  const ProgramRun tuned = run_program({"tune",
                                        "--network",
                                        "bert_tiny",
                                        "--seq-len",
                                        "12",
                                        "--target",
                                        "cuda",
                                        "--devices",
                                        "cuda:0,cuda:1",
                                        "--tasks",
                                        "dense",
                                        "--cost-model",
                                        "draft-only",
                                        "--n-trials",
                                        "4",
                                        "--work-dir",
                                        driver.path("out")});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_NE(tuned.out.find("Mean inference time"), std::string::npos) << tuned.out;
  EXPECT_TRUE(std::filesystem::exists(driver.path("out/bert_tiny.so")));
  EXPECT_EQ(driver.lines("VIOLATION"), "");
}

TEST_F(CudaCommands, ProfileBesideThePeakOfTensorCores) {
  const FakeCuda driver("arch=80");
  const std::string module = driver.path("m.so");
  const ProgramRun compiled =
      run_program({"compile", "--op", "matmul 64 64 64 bits=16", "--target", "cuda", "-o", module});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  const ProgramRun run =
      run_program({"bench", "--module", module, "--min-time", "0", "--profile", "--json"});
  const Result<Json> profile = parse_json(run.out);
  ASSERT_TRUE(profile.ok()) << run.out << run.err;
  EXPECT_EQ((*profile)["kernels"][0]["precision"], "f16_f32");
  EXPECT_GT((*profile)["unit_gflops"]["f16_f32"], 0);
  EXPECT_FALSE((*profile)["unit_gflops"].contains("s8")) << "no kernel uses it";
  EXPECT_GT((*profile)["kernels"][0]["peak_percent"], 0);
}

// Values of float16 take half the bytes and are computed in float32.
TEST_F(CudaCommands, TuneFloat16WithoutTensorCores) {
  const FakeCuda driver("arch=70");
  const ProgramRun tuned = tune(driver, "2", {}, "cuda", "matmul 16 32 24 bits=16");
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  ASSERT_GE(records(driver).size(), 2u);
  for (const Record& record : records(driver))
    EXPECT_TRUE(record.result.ok()) << record.result.error_text;
  const ProgramRun network =
      run_program({"tasks", "--network", "bert_tiny", "--precision", "f16", "--target", "cuda"});
  EXPECT_EQ(network.exit_code, 0);
  EXPECT_NE(network.err.find("has no unit that multiplies f16 faster than float32; its values take "
                             "half the bytes"),
            std::string::npos)
      << network.err;
}

TEST_F(CudaCommands, ProbeADeviceIntoAFile) {
  const FakeCuda driver("arch=75");
  const std::string file = driver.path("mine.json");
  const ProgramRun probed =
      run_program({"device", "probe", "--target", "cuda", "--min-time", "0.01", "-o", file});
  ASSERT_EQ(probed.exit_code, 0) << probed.err;
  EXPECT_NE(probed.out.find("--target 'cuda --device=" + file + "'"), std::string::npos);
  const Result<Target> read = read_device(file);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->gpu.arch, "sm_75");
  EXPECT_GT(read->gpu.tensor_rates.f16_f32, 0);
  EXPECT_EQ(read->gpu.tensor_rates.bf16, 0);
  EXPECT_EQ(probed.err, "");
  const ProgramRun listed = run_program({"devices"});
  EXPECT_NE(listed.out.find("CUDA 12.4"), std::string::npos) << listed.out;
}

TEST_F(CudaCommands, ProbeADeviceWithoutTensorCores) {
  const FakeCuda driver("arch=70");
  const ProgramRun probed = run_program({"device", "probe", "--target", "cuda", "--min-time", "0"});
  ASSERT_EQ(probed.exit_code, 0) << probed.err;
  EXPECT_NE(probed.err.find("sm_70 has no tensor cores that mma.sync reaches"), std::string::npos)
      << probed.err;
  EXPECT_EQ(std::ranges::count(probed.err, '\n'), 1) << probed.err;
}

TEST_F(CudaCommands, KeepTheRecordsWhenTheDeviceIsLost) {
  const FakeCuda driver("arch=80,cuStreamSynchronize@90=719");
  const ProgramRun tuned = tune(driver, "12");  // a worker's context is spoilt now and then
  EXPECT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_GE(records(driver).size(), 12u);
  setenv("FAKE_CUDA", "arch=80,cuDevicePrimaryCtxRetain@*=999", 1);
  const ProgramRun lost = tune(driver, "30");
  EXPECT_EQ(lost.exit_code, 2);
  EXPECT_NE(lost.err.find("CUDA: cuDevicePrimaryCtxRetain: "), std::string::npos) << lost.err;
  EXPECT_GE(records(driver).size(), 12u);
}

TEST_F(CudaCommands, WarnOfOthersOnTheDevice) {
  const FakeCuda driver("arch=80,busy");
  const ProgramRun tuned = tune(driver, "1");
  EXPECT_EQ(tuned.exit_code, 0);
  EXPECT_NE(tuned.err.find("is used by process"), std::string::npos) << tuned.err;
}

TEST_F(CudaCommands, NameTheArchThatTheCompilerDoesNotKnow) {
  const FakeCuda driver("arch=120");
  const ProgramRun tuned = tune(driver, "1");
  EXPECT_EQ(tuned.exit_code, 2);
  EXPECT_NE(tuned.err.find("NVRTC 12.4 makes no code for \"sm_120\"; it knows sm_70, sm_75, sm_80"),
            std::string::npos)
      << tuned.err;
  EXPECT_EQ(std::ranges::count(tuned.err, '\n'), 1) << tuned.err;
}

TEST_F(CudaCommands, SayWhatToMend) {
  const std::pair<const char*, const char*> cases[] = {
      {"lacks=cuGraphLaunch", "libcuda.so.1 is too old: it has no cuGraphLaunch"},
      {"devices=0", "sees no GPU: see nvidia-smi and CUDA_VISIBLE_DEVICES"},
      {"arch=90", "is sm_90, code for sm_80 does not run on it: use \"cuda --arch=sm_90\""},
      {"cuInit@*=803", "CUDA: cuInit: "}};
  for (const auto& [settings, words] : cases) {
    const FakeCuda driver(settings);
    const ProgramRun tuned = tune(driver, "1", {}, "cuda --model=a100");
    EXPECT_EQ(tuned.exit_code, 2) << settings;
    EXPECT_NE(tuned.err.find(words), std::string::npos) << tuned.err;
    EXPECT_EQ(std::ranges::count(tuned.err, '\n'), 1) << tuned.err;
  }
}

}  // namespace
}  // namespace pruner
