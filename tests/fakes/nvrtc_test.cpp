// label: cuda-fake
// The fake compiler, through the door that we use a real one by.
#include "codegen/cuda/nvrtc.h"

#include "codegen/codegen.h"
#include "fakes/fake_cuda.h"
#include "golden.h"
#include "lower/gpu_programs.h"

namespace pruner {
namespace {

Target cuda(const std::string& arch) { return *parse_target("cuda --arch=" + arch, 0); }

TEST(FakeNvrtc, IsFoundAndSaysWhatItIs) {
  FakeCuda fake;
  const Result<NvrtcVersion> found = find_nvrtc();
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(found->major, 12);
  EXPECT_EQ(found->minor, 4);
  EXPECT_EQ(found->archs, (std::vector<int>{70, 75, 80, 86, 89, 90}));
}

TEST(FakeNvrtc, CompilesWhatWePrint) {
  FakeCuda fake;
  for (const NamedProgram& p : gpu_programs()) {
    const Result<Artifact> artifact = compile(p.program, cuda("sm_80"), "kernel");
    EXPECT_TRUE(artifact.ok()) << p.name << ": " << artifact.error().message();
  }
}

TEST(FakeNvrtc, SaysWhatIsWrong) {
  FakeCuda fake;
  const Target target = cuda("sm_80");
  EXPECT_ERROR(compile_to_cubin("__global__ void k() {\n  nothing = 1;\n}", target),
               "kernel.cu:2:3: error: ‘nothing’ was not declared");
  EXPECT_ERROR(compile_to_cubin("", target), "NVRTC_ERROR_INVALID_INPUT");
  EXPECT_ERROR(compile_to_cubin("int x;", target), "no kernel in it");
  EXPECT_ERROR(
      compile_to_cubin("__global__ void k() { asm volatile(\"cp.async.wait_all;\"); }", target),
      "the fake NVRTC does not emulate inline PTX");
}

TEST(FakeNvrtc, HasPtx) {
  FakeCuda fake;
  const Result<std::string> ptx =
      compile_to_text(gpu_row_sums(4, 64, 32), cuda("sm_80"), CodeText::kPtx);
  ASSERT_TRUE(ptx.ok()) << ptx.error().message();
  EXPECT_NE(ptx->find(".entry kernel_0"), std::string::npos);
}

}  // namespace
}  // namespace pruner
