// label: cuda-fake
// Checks the work of whole warps, copies beside a thread's work, and memory that a launch gives.
#include <cmath>

#include "codegen/cuda/nvrtc.h"
#include "fakes/fake_cuda.h"
#include "golden.h"

namespace pruner {
namespace {

constexpr const char* kKernels = R"(
extern "C" __global__ void divided(float* x) {
  __shared__ __align__(16) float tile[32];
  unsigned at = (unsigned)__cvta_generic_to_shared(tile + 4 * (threadIdx.x % 8)), word;
  if (threadIdx.x < 8)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(word) : "r"(at));
  x[threadIdx.x] = 1.0f;
}
extern "C" __global__ void misaligned(float* x) {
  __shared__ __align__(16) float tile[64];
  unsigned at = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(at), "l"(x), "r"(16));
}
extern "C" __global__ void copied(float* x) {
  __shared__ __align__(16) float tile[64];
  unsigned at = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x);
  for (int i = 0; i < 2; ++i) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :: "r"(at + 128 * i), "l"(x + threadIdx.x), "r"(i == 0 ? 4 : 0));
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  asm volatile("cp.async.wait_group 1;" ::: "memory");
  x[32 + threadIdx.x] = tile[threadIdx.x];
  x[64 + threadIdx.x] = tile[32 + threadIdx.x];
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  x[96 + threadIdx.x] = tile[32 + threadIdx.x];
}
extern "C" __global__ void given(float* x, int floats) {
  extern __shared__ __align__(16) unsigned char memory[];
  float* const tile = (float*)memory;
  for (int i = threadIdx.x; i < floats; i += 32) tile[i] = x[i % 32] + i;
  __syncthreads();
  x[threadIdx.x] = tile[floats - 1 - threadIdx.x];
})";

class FakePtx : public testing::Test {
 protected:
  FakePtx() {
    EXPECT_EQ(CU(cuInit)(0), 0);
    EXPECT_EQ(CU(cuDevicePrimaryCtxRetain)(&context_, 0), 0);
    EXPECT_EQ(CU(cuCtxPushCurrent_v2)(context_), 0);
    EXPECT_EQ(CU(cuStreamCreate)(&stream_, 1), 0);
    const auto cubin = compile_to_cubin(kKernels, *parse_target("cuda --arch=sm_80", 0));
    EXPECT_TRUE(cubin.ok()) << cubin.error().message();
    EXPECT_EQ(CU(cuModuleLoadData)(&module_, cubin->data()), 0);
    EXPECT_EQ(CU(cuMemAlloc_v2)(&memory_, sizeof values_), 0);
    for (int i = 0; i < 128; ++i) values_[i] = static_cast<float>(i);
    EXPECT_EQ(CU(cuMemcpyHtoDAsync_v2)(memory_, values_, sizeof values_, stream_), 0);
  }

  CuFunction kernel(const char* name) {
    CuFunction function = nullptr;
    EXPECT_EQ(CU(cuModuleGetFunction)(&function, module_, name), 0) << name;
    return function;
  }
  // Launches 32 threads and waits for them. Returns the first status that is an error.
  int launch(CuFunction function, unsigned shared_bytes, int number = 0) {
    void* places[] = {&memory_, &number};
    const int status =
        CU(cuLaunchKernel)(function, 1, 1, 1, 32, 1, 1, shared_bytes, stream_, places, nullptr);
    if (status != 0) return status;
    CU(cuMemcpyDtoHAsync_v2)(values_, memory_, sizeof values_, stream_);
    return CU(cuStreamSynchronize)(stream_);
  }

  FakeCuda cuda_;
  float values_[128];

 private:
  CuContext context_ = nullptr;
  CuStream stream_ = nullptr;
  CuModule module_ = nullptr;
  CuDevicePtr memory_ = 0;
};

TEST_F(FakePtx, WantsAllLanesOfAWarp) {
  EXPECT_EQ(launch(kernel("divided"), 0), 719);
  EXPECT_NE(cuda_.lines("VIOLATION").find("8 lanes of a warp do together what takes all of them"),
            std::string::npos);
}

TEST_F(FakePtx, WantsCopiesAligned) {
  EXPECT_EQ(launch(kernel("misaligned"), 0), 716);
  EXPECT_NE(cuda_.lines("VIOLATION").find("an asynchronous copy of 16 bytes"), std::string::npos);
}

TEST_F(FakePtx, CopiesWhenThatIsWaitedFor) {
  EXPECT_EQ(launch(kernel("copied"), 0), 0);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(values_[32 + i], static_cast<float>(i));
    EXPECT_TRUE(std::isnan(values_[64 + i]));
    EXPECT_EQ(values_[96 + i], 0);
  }
}

TEST_F(FakePtx, GivesSharedMemoryThatWasAskedFor) {
  enum { kMostDynamicBytes = 8 };
  const CuFunction given = kernel("given");
  constexpr int kFloats = 16 << 10, kBytes = 4 * kFloats;
  EXPECT_EQ(launch(given, kBytes, kFloats), 1) << "beyond 48 KiB";
  EXPECT_EQ(CU(cuFuncSetAttribute)(given, kMostDynamicBytes, 164 << 10), 1)
      << "beyond the device's";
  EXPECT_EQ(CU(cuFuncSetAttribute)(given, kMostDynamicBytes, kBytes), 0);
  EXPECT_EQ(launch(given, kBytes, kFloats), 0);
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(values_[i], static_cast<float>(kFloats - 1 - i + (31 - i)));
  EXPECT_EQ(launch(given, kBytes - 4, kFloats), 700);
  EXPECT_NE(cuda_.lines("VIOLATION").find("writes beyond the shared memory that its launch gives"),
            std::string::npos);
}

TEST(FakeNvrtcPtx, KnowsInstructionsByTheirWords) {
  FakeCuda fake;
  const Target target = *parse_target("cuda --arch=sm_80", 0);
  const auto kernel = [&](const std::string& statement) {
    return compile_to_cubin("__global__ void k(unsigned x, const void* y) { " + statement + " }",
                            target);
  };
  const char* const words = "the fake NVRTC does not emulate inline PTX";
  EXPECT_TRUE(kernel(R"(asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(x) : "f"(1.0f));)").ok());
  EXPECT_TRUE(kernel(R"(asm("shfl.sync.bfly.b32 %0, %1, 4, 31, -1;" : "=r"(x) : "r"(x));)").ok());
  EXPECT_ERROR(kernel(R"(asm("shfl.sync.up.b32 %0, %1, 4, 31, -1;" : "=r"(x) : "r"(x));)"), words);
  EXPECT_ERROR(kernel(R"(asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(x) : "f"(1.0f));)"), words);
  EXPECT_ERROR(
      kernel(R"(asm("cp.async.cg.shared.global [%0], [%1], 8, %2;" :: "r"(x), "l"(y), "r"(8));)"),
      words);
  EXPECT_ERROR(
      kernel(R"(asm("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%1}, [%0];" : "=r"(x) : "r"(x));)"),
      words);
}

}  // namespace
}  // namespace pruner
