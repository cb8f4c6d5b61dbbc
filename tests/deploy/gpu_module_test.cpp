// label: device
// Modules for GPUs: those for OpenCL run here (PoCL on a CPU), those for CUDA are made.
#include <cstdlib>

#include "codegen/cuda/nvrtc_fixture.h"
#include "deploy/loaded_module.h"
#include "golden.h"
#include "graph/networks/network_builder.h"
#include "network_case.h"
#include "runtime/gpu_context.h"
#include "shell.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

Target opencl() { return *parse_target("opencl", 0); }

std::optional<Candidate> first_legal(const Space& space, uint64_t seed) {
  Rng rng(seed);
  for (int i = 0; i < 1000; ++i) {
    Candidate candidate = sample(space, rng);
    if (is_legal(space, candidate)) return candidate;
  }
  return std::nullopt;
}

class OpenClModule : public testing::Test {
 protected:
  void SetUp() override {
    setenv("POCL_CACHE_DIR", testing::TempDir().c_str(), 1);
    const auto devices = list_gpus(Backend::kOpenCl);
    if (!devices.ok()) GTEST_SKIP() << devices.error().message();
  }
};

TEST_F(OpenClModule, GivesWhatTheInterpreterGives) {
  const Result<Case> c = make_case(small_convolutional());
  ASSERT_TRUE(c.ok()) << c.error().message();
  expect_right(*c, opencl());
}

TEST_F(OpenClModule, TakesAnySchedule) {
  const Result<Case> c = make_case(small_convolutional());
  ASSERT_TRUE(c.ok()) << c.error().message();
  for (uint64_t seed = 0; seed < 3; ++seed) {
    expect_right(
        *c, opencl(), [seed](const Task&, const Space& space) { return first_legal(space, seed); });
  }
}

// An output that is an input, and two of the same bytes.
TEST_F(OpenClModule, CopiesWhatNoKernelWrites) {
  NetworkBuilder b("copies");
  const ValueId x = b.input("x", {4, 6}, DType::kFloat32);
  const ValueId flat = b.node("Flatten", {x}, {{"axis", int64_t{0}}});
  const ValueId relu = b.node("Relu", {x});
  const ValueId both = b.node("Flatten", {relu}, {{"axis", int64_t{0}}});
  const Result<Case> c = make_case(b.finish({{flat, "flat"}, {relu, "relu"}, {both, "both"}}));
  ASSERT_TRUE(c.ok()) << c.error().message();
  expect_right(*c, opencl());
}

TEST_F(OpenClModule, ChangesTheSizeOfImages) {
  const Result<Case> c = make_case(small_upsampling());
  ASSERT_TRUE(c.ok()) << c.error().message();
  expect_right(*c, opencl());
}

TEST_F(OpenClModule, ConvolvesVolumes) {
  const Result<Case> c = make_case(small_video());
  ASSERT_TRUE(c.ok()) << c.error().message();
  expect_right(*c, opencl());
}

TEST_F(OpenClModule, RunsNetworks) {
  for (const char* name : {"bert_tiny", "mobilenet_v2"}) {
    SCOPED_TRACE(name);
    const Result<Case> c = make_case(
        build_network(name, {.image_size = 32, .sequence_length = 12, .input_shapes = {}}));
    ASSERT_TRUE(c.ok()) << c.error().message();
    expect_right(*c, opencl());
  }
}

TEST_F(OpenClModule, TellsTheTimeOfEachKernel) {
  const Result<TemporaryFolder> folder = TemporaryFolder::make("");
  const Result<Partition> cut = partition(small_convolutional(), opencl());
  ASSERT_TRUE(cut.ok()) << cut.error().message();
  const std::string path = folder->path("module.so");
  const Result<ModuleSummary> built = build_module(*cut, opencl(), nullptr, {}, path);
  ASSERT_TRUE(built.ok()) << built.error().message();
  Result<LoadedModule> module = load_module(path), other = load_module(path);
  ASSERT_TRUE(module.ok()) << module.error().message();
  ASSERT_TRUE(other.ok()) << other.error().message();  // instances stand beside each other
  const auto kernels = module->profile(seeded_inputs(module->inputs(), 0),
                                       {.warm_up = 1, .min_runs = 3, .min_s = 0});
  ASSERT_TRUE(kernels.ok()) << kernels.error().message();
  EXPECT_EQ(kernels->size(), cut->groups.size());
  for (const KernelTime& kernel : *kernels) EXPECT_GT(kernel.median_ms, 0) << kernel.name;
}

/// A module of small_convolutional() for sm_80, where there may be no driver.
class CudaModule : public WithNvrtc {
 protected:
  void SetUp() override {
    WithNvrtc::SetUp();
    if (IsSkipped()) return;
    const Target target = *parse_target("cuda --arch=sm_80", 0);
    const Result<Partition> cut = partition(small_convolutional(), target);
    ASSERT_TRUE(cut.ok()) << cut.error().message();
    const Result<ModuleSummary> built = build_module(*cut, target, nullptr, {}, module_);
    ASSERT_TRUE(built.ok()) << built.error().message();
    EXPECT_GT(built->kernels, 0);
    EXPECT_GT(built->weight_bytes, 0);
  }

  const Result<TemporaryFolder> folder_ = TemporaryFolder::make("");
  const std::string module_ = folder_->path("module.so");
};

TEST_F(CudaModule, IsMadeWithoutAGpu) {
  const Result<LoadedModule> module = load_module(module_);
  if (module.ok() || module.error().message().find("libcuda") == std::string::npos)
    GTEST_SKIP() << "there is a driver";
  EXPECT_ERROR(module,
               "module.so: no libcuda.so.1: the code is for NVIDIA GPUs; install their driver");
}

TEST_F(CudaModule, HasNoneOfTheCpusExecutor) {
  if (std::system("readelf --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no readelf here";
  const std::string needed = output_of("readelf -dW --dyn-syms " + module_);
  EXPECT_NE(needed.find("dlopen"), std::string::npos) << needed;
  EXPECT_EQ(needed.find("pthread_create"), std::string::npos);
  EXPECT_EQ(needed.find("NEEDED"), std::string::npos);
}

}  // namespace
}  // namespace pruner
