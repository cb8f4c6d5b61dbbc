#include "codegen/cuda/nvrtc.h"

#include "codegen/cuda/nvrtc_fixture.h"
#include "golden.h"

namespace pruner {
namespace {

TEST(FindNvrtc, SaysWhatToInstallWhereThereIsNone) {
  const std::string paths[] = {"/nowhere/libnvrtc.so", "libnvrtc.so.0"};
  EXPECT_ERROR(find_nvrtc(paths),
               "no CUDA toolkit: libnvrtc.so is neither in LD_LIBRARY_PATH nor in "
               "/usr/local/cuda*/lib64; install CUDA's NVRTC (cuda-nvrtc) or set LD_LIBRARY_PATH");
}

TEST(FindNvrtc, SaysThatALibraryIsNone) {
  const std::string paths[] = {"libm.so.6"};
  EXPECT_ERROR(find_nvrtc(paths), "; CUDA 11.2 or newer is needed");
}

// A product's sums are touched while it is on its way: the compiler puts in waits, or lets each
// product wait for the one before, and would only say so.
using Nvrtc = WithNvrtc;
TEST_F(Nvrtc, RefusesProductsThatItSerializes) {
  const char* const source = R"(
extern "C" __global__ void k(float* out, unsigned long long a, unsigned long long b, int n) {
  float sum[4] = {0, 0, 0, 0};
  for (int i = 0; i < n; ++i) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; "
                 "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
                 "{%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    sum[0] += 1.0f;
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  out[threadIdx.x] = sum[0] + sum[1] + sum[2] + sum[3];
}
)";
  EXPECT_ERROR(compile_to_cubin(source, *parse_target("cuda --arch=sm_90a", 0)),
               "NVRTC: products of groups are not run as they are written: ptxas info");
}

}  // namespace
}  // namespace pruner
