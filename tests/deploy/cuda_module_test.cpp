// label: cuda-fake
// Modules for CUDA on the fake driver: they give what the interpreter gives, and say what failed.
#include <map>

#include "deploy/loaded_module.h"
#include "fakes/driver_log.h"
#include "fakes/fake_cuda.h"
#include "golden.h"
#include "graph/networks/network_builder.h"
#include "network_case.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

Target sm_80() { return *parse_target("cuda --arch=sm_80", 0); }

void expect_right_on_cuda(const Result<Case>& c,
                          Precision precision = Precision::kFloat32,
                          double tolerance = 1e-4) {
  ASSERT_TRUE(c.ok()) << c.error().message();
  const FakeCuda cuda;
  expect_right(*c, sm_80(), nullptr, precision, tolerance);
  EXPECT_EQ(cuda.end(), "");
}

TEST(FakeCudaModule, GivesWhatTheInterpreterGives) {
  expect_right_on_cuda(make_case(small_convolutional()));
  expect_right_on_cuda(make_case(small_upsampling()));
  expect_right_on_cuda(make_case(small_dense()));
  expect_right_on_cuda(make_case(small_video()));
  expect_right_on_cuda(make_case(small_gathering()));
  for (const DTypeRow& row : kDTypes) expect_right_on_cuda(make_case(small_casts(row.dtype)));
}

// Constants of some kernels are transformed, in a form that is asked for and in all of them.
TEST(FakeCudaModule, TransformsWeights) {
  const Result<Case> c = make_case(small_dense());
  ASSERT_TRUE(c.ok()) << c.error().message();
  const auto folder = TemporaryFolder::make("");
  ASSERT_TRUE(folder.ok());
  const auto cut = partition(c->graph, sm_80());
  ASSERT_TRUE(cut.ok()) << cut.error().message();
  int64_t bytes = 0;
  for (const char* form : {"direct", "winograd-2x2", "winograd-4x4"}) {
    const FakeCuda cuda;
    {
      const std::string path = folder->path(std::string(form) + ".so");
      const auto built =
          build_module(*cut, sm_80(), nullptr, {.jobs = 2, .work_dir = "", .forms = {form}}, path);
      ASSERT_TRUE(built.ok()) << built.error().message();
      EXPECT_GT(built->weight_bytes, bytes) << "16 and 36 points in place of 9";
      bytes = built->weight_bytes;
      Result<LoadedModule> module = load_module(path);
      ASSERT_TRUE(module.ok()) << module.error().message();
      const auto outputs = module->run(c->inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.error().message();
      expect_close(*outputs, c->expected);
    }
    EXPECT_EQ(cuda.end(), "");
  }
}

TEST(FakeCudaModule, TimesItsKernelsWithoutTheCopies) {
  const Result<Case> c = make_case(small_convolutional());
  ASSERT_TRUE(c.ok()) << c.error().message();
  const auto folder = TemporaryFolder::make("");
  const auto cut = partition(c->graph, sm_80());
  ASSERT_TRUE(folder.ok() && cut.ok());
  const FakeCuda cuda;
  {
    const std::string path = folder->path("m.so");
    ASSERT_TRUE(build_module(*cut, sm_80(), nullptr, {.jobs = 2, .work_dir = ""}, path).ok());
    Result<LoadedModule> module = load_module(path);
    ASSERT_TRUE(module.ok()) << module.error().message();
    for (int i = 0; i < 2; ++i) {  // recorded, and replayed
      const Result<double> seconds = module->time_kernels(c->inputs, 3);
      ASSERT_TRUE(seconds.ok()) << seconds.error().message();
      EXPECT_GT(*seconds, 0);
      EXPECT_LT(*seconds, 10);
    }
    const auto outputs = module->run(c->inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message();
    expect_close(*outputs, c->expected);
  }
  EXPECT_EQ(cuda.end(), "");
}

TEST(FakeCudaModule, RunsANetwork) {
  expect_right_on_cuda(make_case(
      build_network("bert_tiny", {.image_size = 32, .sequence_length = 12, .input_shapes = {}})));
}

// Warps multiply what the network's contractions read; sums and the rest are float32.
TEST(FakeCudaModule, RunsANetworkOfEachPrecision) {
  const Result<Case> c = make_case(
      build_network("bert_tiny", {.image_size = 32, .sequence_length = 16, .input_shapes = {}}));
  expect_right_on_cuda(c, Precision::kFloat16, 0.004);
  expect_right_on_cuda(c, Precision::kBFloat16, 0.03);
  expect_right_on_cuda(c, Precision::kTf32, 0.004);
}

// Launches of a run begin before those before them have ended, where the driver has such launches
// and records them in graphs. Steps that are timed alone do not.
TEST(FakeCudaModule, BeginsLaunchesEarlyOnHopper) {
  const Target sm_90 = *parse_target("cuda --arch=sm_90", 0);
  const Result<Case> c = make_case(small_dense());
  ASSERT_TRUE(c.ok()) << c.error().message();
  const auto folder = TemporaryFolder::make("");
  const auto cut = partition(c->graph, sm_90);
  ASSERT_TRUE(folder.ok() && cut.ok());
  const std::string path = folder->path("m.so");
  {
    const FakeCuda cuda("arch=90");
    const auto built = build_module(*cut, sm_90, nullptr, {.jobs = 2, .work_dir = ""}, path);
    ASSERT_TRUE(built.ok()) << built.error().message();
  }
  const struct {
    const char *settings, *wanted;
    bool early;
  } kCases[] = {{"arch=90", "1", true},
                {"arch=90", "0", false},
                {"arch=90,version=12020", "1", false},
                {"arch=90,lacks=cuLaunchKernelEx", "1", false}};
  for (const auto& [settings, wanted, early] : kCases) {
    SCOPED_TRACE(std::string(settings) + " " + wanted);
    setenv("PRUNER_EARLY_LAUNCH", wanted, 1);
    const FakeCuda cuda(settings);
    {
      Result<LoadedModule> module = load_module(path);
      ASSERT_TRUE(module.ok()) << module.error().message();
      for (int i = 0; i < 3; ++i) {
        const auto outputs = module->run(c->inputs);
        ASSERT_TRUE(outputs.ok()) << outputs.error().message();
        expect_close(*outputs, c->expected);
      }
      std::map<std::string, int> calls = driver_calls(cuda.log());
      EXPECT_EQ(calls["cuLaunchKernelEx"] > 0, early);
      EXPECT_EQ(calls["cuLaunchKernel"] > 0, !early);
      const int launched = calls["cuLaunchKernelEx"];
      ASSERT_TRUE(module->profile(c->inputs, {}).ok());
      calls = driver_calls(cuda.log());
      EXPECT_GT(calls["cuLaunchKernel"], 0);
      EXPECT_GE(calls["cuLaunchKernelEx"], launched);
    }
    EXPECT_EQ(cuda.end(), "");
    unsetenv("PRUNER_EARLY_LAUNCH");
  }
}

// An output that is an input, and two of the same bytes.
TEST(FakeCudaModule, CopiesWhatNoKernelWrites) {
  NetworkBuilder b("copies");
  const ValueId x = b.input("x", {4, 6}, DType::kFloat32);
  const ValueId flat = b.node("Flatten", {x}, {{"axis", int64_t{0}}});
  const ValueId relu = b.node("Relu", {x});
  const ValueId both = b.node("Flatten", {relu}, {{"axis", int64_t{0}}});
  expect_right_on_cuda(make_case(b.finish({{flat, "flat"}, {relu, "relu"}, {both, "both"}})));
}

/// A module of small_convolutional().
class FakeCudaModuleFile : public testing::Test {
 protected:
  void SetUp() override {
    const FakeCuda cuda;
    const Result<Partition> cut = partition(case_->graph, sm_80());
    ASSERT_TRUE(cut.ok()) << cut.error().message();
    const Result<ModuleSummary> built = build_module(*cut, sm_80(), nullptr, {}, module_);
    ASSERT_TRUE(built.ok()) << built.error().message();
  }

  /// Loads and runs it.
  Result<std::vector<Tensor>> run() const {
    TRY_ASSIGN(LoadedModule module, load_module(module_));
    return module.run(case_->inputs);
  }

  const Result<Case> case_ = make_case(small_convolutional());
  const Result<TemporaryFolder> folder_ = TemporaryFolder::make("");
  const std::string module_ = folder_->path("module.so");
};

TEST_F(FakeCudaModuleFile, RunsBesideAnother) {
  const FakeCuda cuda;
  {
    Result<LoadedModule> one = load_module(module_), other = load_module(module_);
    ASSERT_TRUE(one.ok() && other.ok());
    const auto first = one->run(case_->inputs), second = other->run(case_->inputs);
    ASSERT_TRUE(first.ok() && second.ok());
    expect_close(*first, case_->expected);
    expect_close(*second, case_->expected);
  }
  EXPECT_EQ(cuda.end(), "");
}

// Each call fails, the first and the last time that it is made. An error is said, what was made
// until then is released, and after it all goes on.
TEST_F(FakeCudaModuleFile, SaysWhichCallFailedAndLeavesNothing) {
  std::map<std::string, int> calls;
  {
    const FakeCuda cuda;
    ASSERT_TRUE(run().ok());
    calls = driver_calls(cuda.log());
  }
  EXPECT_GT(calls.size(), 15u);
  for (const auto& [function, count] : calls) {
    for (const int call : {1, count}) {
      for (const int status : {2, 719}) {
        const std::string rule =
            function + "@" + std::to_string(call) + "=" + std::to_string(status);
        SCOPED_TRACE(rule);
        const FakeCuda cuda(rule);
        const Result<std::vector<Tensor>> outputs = run();
        if (may_fail(function, call)) continue;
        EXPECT_EQ(cuda.end(), "") << cuda.log();
        EXPECT_FALSE(outputs.ok());
        if (!outputs.ok()) {
          EXPECT_TRUE(names(outputs.error().message(), function)) << outputs.error().message();
        }
      }
    }
  }
  const FakeCuda cuda;
  EXPECT_TRUE(run().ok());
}

TEST_F(FakeCudaModuleFile, SaysWhatToMend) {
  const struct {
    const char *settings, *words;
  } kCases[] = {
      {"arch=90",
       "Fake GPU sm_90 is sm_90, the code was compiled for sm_80: compile it with --target "
       "\"cuda --arch=sm_90\""},
      {"arch=75", "compile it with --target \"cuda --arch=sm_75\""},
      {"memory=100000", "bytes of memory left"},
      {"lacks=cuLaunchKernel", "is too old: it has no cuLaunchKernel"},
  };
  for (const auto& [settings, words] : kCases) {
    const FakeCuda cuda(settings);
    EXPECT_ERROR(run(), words);
    EXPECT_EQ(cuda.end(), "");
  }
  for (const char* settings : {"arch=86", "arch=80", "devices=2,arch=89+75"}) {
    const FakeCuda cuda(settings);
    const Result<std::vector<Tensor>> outputs = run();
    EXPECT_TRUE(outputs.ok()) << outputs.error().message();
  }
}

}  // namespace
}  // namespace pruner
