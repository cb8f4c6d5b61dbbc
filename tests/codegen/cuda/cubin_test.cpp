// label: device
// Programs through NVRTC to cubins for GPUs that are not here, and what the cubins say.
#include "codegen/cuda/cubin.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "codegen/codegen.h"
#include "codegen/cuda/cubin_cache.h"
#include "codegen/cuda/nvrtc.h"
#include "golden.h"
#include "lower/gpu_programs.h"

namespace pruner {
namespace {

Target cuda(const std::string& arch) {
  Target target = *parse_target("cuda", 0);
  target.gpu.arch = arch;
  return target;
}

class CubinTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto nvrtc = find_nvrtc();
    if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.error().message();
    std::filesystem::remove_all(cache_);
    setenv("XDG_CACHE_HOME", cache_.c_str(), 1);
  }
  void TearDown() override { std::filesystem::remove_all(cache_); }

  const std::string cache_ =
      (std::filesystem::path(testing::TempDir()) / ("pruner-cubins-" + std::to_string(getpid())))
          .string();
};

TEST_F(CubinTest, SaysWhatTheProgramDoes) {
  for (const char* arch : {"sm_75", "sm_80", "sm_90"}) {
    for (const NamedProgram& p : gpu_programs()) {
      const Result<Artifact> artifact = compile(p.program, cuda(arch), "kernel");
      ASSERT_TRUE(artifact.ok()) << p.name << ": " << artifact.error().message();
      const Result<std::vector<CubinKernel>> kernels = read_cubin(artifact->object);
      ASSERT_TRUE(kernels.ok()) << p.name << ": " << kernels.error().message();
      ASSERT_EQ(kernels->size(), artifact->launches.size()) << p.name;
      for (size_t i = 0; i < kernels->size(); ++i) {
        const CubinKernel& kernel = (*kernels)[i];
        EXPECT_EQ(kernel.name, artifact->launches[i].kernel);
        EXPECT_EQ(kernel.shared_bytes, artifact->launches[i].shared_bytes) << p.name << arch;
        EXPECT_GT(kernel.registers, 0);
        EXPECT_LE(kernel.registers, 255);
        // The sine of what is large takes an array.
        if (p.name == "intrinsics") continue;
        EXPECT_EQ(kernel.stack_bytes, 0) << p.name << " spills on " << arch;
      }
    }
  }
}

TEST_F(CubinTest, SeesSpills) {
  const std::string source = R"(
extern "C" __global__ void __launch_bounds__(1024) many(const float* x, float* y) {
  float a[256];
  #pragma unroll
  for (int i = 0; i < 256; ++i) a[i] = x[i * 1024 + threadIdx.x];
  __syncthreads();
  #pragma unroll
  for (int i = 0; i < 256; ++i) y[(255 - i) * 1024 + threadIdx.x] = a[i] * a[(i * 7) % 256];
})";
  const Result<std::string> cubin = compile_to_cubin(source, cuda("sm_80"));
  ASSERT_TRUE(cubin.ok()) << cubin.error().message();
  const auto kernels = read_cubin(*cubin);
  ASSERT_TRUE(kernels.ok());
  EXPECT_LE(kernels->at(0).registers, 64);
  EXPECT_GT(kernels->at(0).stack_bytes, 256);
}

TEST_F(CubinTest, IsKeptInTheCache) {
  const Program program = gpu_row_sums(4, 64, 32);
  ASSERT_TRUE(compile(program, cuda("sm_80"), "first").ok());
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(cache_ + "/pruner/cubin")) {
    files.push_back(file.path());
  }
  ASSERT_EQ(files.size(), 1u);
  ASSERT_TRUE(write_file(files[0], "from the cache").ok());
  EXPECT_EQ(compile(program, cuda("sm_80"), "first")->object, "from the cache");
  EXPECT_NE(compile(program, cuda("sm_80"), "second")->object, "from the cache");
  EXPECT_NE(compile(program, cuda("sm_75"), "first")->object, "from the cache");
}

TEST_F(CubinTest, SaysWhatIsWrong) {
  EXPECT_ERROR(compile(gpu_row_sums(4, 64, 32), cuda("sm_35"), "k"),
               "makes no code for \"sm_35\"; it knows sm_");
  EXPECT_ERROR(compile_to_cubin("__global__ void k() { nothing = 1; }", cuda("sm_80")), "nothing");
}

TEST_F(CubinTest, HasPtx) {
  const Result<std::string> ptx =
      compile_to_text(gpu_row_sums(4, 64, 32), cuda("sm_80"), CodeText::kPtx);
  ASSERT_TRUE(ptx.ok()) << ptx.error().message();
  EXPECT_NE(ptx->find(".entry kernel_0"), std::string::npos);
}

TEST(ReadCubin, RefusesWhatIsNone) {
  EXPECT_ERROR(read_cubin("ELF"), "this is no cubin");
  EXPECT_ERROR(read_cubin(std::string(500, '\0')), "this is no cubin");
}

TEST_F(CubinTest, IsReadSafelyWhereverItIsCutOff) {
  const Result<Artifact> artifact = compile(gpu_row_sums(4, 64, 32), cuda("sm_80"), "k");
  ASSERT_TRUE(artifact.ok());
  const std::string& whole = artifact->object;
  for (size_t bytes = 0; bytes < whole.size(); bytes += 37) {
    (void)read_cubin(std::string_view(whole).substr(0, bytes));
  }
}

}  // namespace
}  // namespace pruner
