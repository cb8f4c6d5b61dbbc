// label: cuda-fake
// The fake driver itself: kernels run, and what a program does wrong is seen.
#include <signal.h>

#include <cmath>
#include <limits>
#include <vector>

#include "codegen/cuda/nvrtc.h"
#include "fakes/fake_cuda.h"
#include "golden.h"

namespace pruner {
namespace {

constexpr const char* kKernels = R"(
extern "C" __global__ void __launch_bounds__(64) add(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void __launch_bounds__(64) reverse(float* x) {
  __shared__ __align__(16) float tile[64];
  tile[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  x[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}
extern "C" __global__ void reverse_without_barrier(float* x) {
  __shared__ float tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = tile[63 - threadIdx.x];
}
extern "C" __global__ void write_at(float* x, long long place) { x[place] = 1.0f; }
extern "C" __global__ void read_at(float* x, long long place) { x[0] = x[place]; }
extern "C" __global__ void divided(float* x) {
  if (threadIdx.x < 8) __syncthreads();
  x[threadIdx.x] = 1.0f;
}
extern "C" __global__ void twice(float* x) { x[threadIdx.x] = x[threadIdx.x] * 2.0f; }
extern "C" __global__ void large(float* x) {
  __shared__ float tile[12289];
  tile[threadIdx.x] = x[threadIdx.x];
  x[threadIdx.x] = tile[0];
})";

/// A program with a context, a stream and the kernels above.
class Program {
 public:
  Program() {
    EXPECT_EQ(CU(cuInit)(0), 0);
    EXPECT_EQ(CU(cuDevicePrimaryCtxRetain)(&context_, 0), 0);
    EXPECT_EQ(CU(cuCtxPushCurrent_v2)(context_), 0);
    EXPECT_EQ(CU(cuStreamCreate)(&stream, 1), 0);
    const auto cubin = compile_to_cubin(kKernels, *parse_target("cuda --arch=sm_80", 0));
    EXPECT_TRUE(cubin.ok()) << cubin.error().message();
    EXPECT_EQ(CU(cuModuleLoadData)(&module, cubin->data()), 0);
  }
  void end() {
    CU(cuModuleUnload)(module);
    CU(cuStreamDestroy_v2)(stream);
    CU(cuCtxPopCurrent_v2)(&context_);
    CU(cuDevicePrimaryCtxRelease_v2)(0);
  }

  CuDevicePtr memory(const std::vector<float>& values) {
    CuDevicePtr at = 0;
    const size_t bytes = values.size() * sizeof(float);
    EXPECT_EQ(CU(cuMemAlloc_v2)(&at, bytes), 0);
    EXPECT_EQ(CU(cuMemcpyHtoDAsync_v2)(at, values.data(), bytes, stream), 0);
    return at;
  }
  std::vector<float> read(CuDevicePtr from, size_t count) {
    std::vector<float> values(count);
    EXPECT_EQ(CU(cuMemcpyDtoHAsync_v2)(values.data(), from, count * sizeof(float), stream), 0);
    EXPECT_EQ(wait(), 0);
    return values;
  }
  CuFunction kernel(const char* name) {
    CuFunction function = nullptr;
    EXPECT_EQ(CU(cuModuleGetFunction)(&function, module, name), 0) << name;
    return function;
  }
  template <typename... Args>
  int launch(const char* name, unsigned blocks, unsigned threads, Args... args) {
    void* places[] = {&args...};
    return CU(cuLaunchKernel)(
        kernel(name), blocks, 1, 1, threads, 1, 1, 0, stream, places, nullptr);
  }
  int wait() { return CU(cuStreamSynchronize)(stream); }

  CuStream stream = nullptr;
  CuModule module = nullptr;

 private:
  CuContext context_ = nullptr;
};

std::vector<float> counted(int n) {
  std::vector<float> values;
  for (int i = 0; i < n; ++i) values.push_back(static_cast<float>(i));
  return values;
}

TEST(FakeDriver, AddsVectors) {
  FakeCuda cuda;
  Program p;
  const int n = 1000;
  const CuDevicePtr a = p.memory(counted(n)), b = p.memory(counted(n)), c = p.memory(counted(n));
  EXPECT_EQ(p.launch("add", 16, 64, a, b, c, n), 0);
  const std::vector<float> sum = p.read(c, n);
  for (int i = 0; i < n; ++i) ASSERT_EQ(sum[i], 2.0f * i);
  for (const CuDevicePtr memory : {a, b, c}) EXPECT_EQ(CU(cuMemFree_v2)(memory), 0);
  p.end();
  EXPECT_EQ(cuda.end(), "");
  EXPECT_NE(cuda.log().find("cuMemAlloc_v2 4000 -> 0\n"), std::string::npos) << cuda.log();
}

TEST(FakeDriver, LetsABlocksThreadsMeetAtBarriers) {
  FakeCuda cuda;
  Program p;
  const CuDevicePtr x = p.memory(counted(192));
  EXPECT_EQ(p.launch("reverse", 3, 64, x), 0);
  const std::vector<float> reversed = p.read(x, 192);
  for (int i = 0; i < 192; ++i) ASSERT_EQ(reversed[i], i / 64 * 64 + 63 - i % 64);
  EXPECT_EQ(p.launch("reverse_without_barrier", 1, 64, x), 0);
  EXPECT_TRUE(std::isnan(p.read(x, 64)[0]));
}

TEST(FakeDriver, DoesNothingBeforeTheWait) {
  FakeCuda cuda;
  Program p;
  const CuDevicePtr x = p.memory(counted(64));
  void* pinned = nullptr;
  ASSERT_EQ(CU(cuMemHostAlloc)(&pinned, 256, 0), 0);
  const auto* const values = static_cast<const float*>(pinned);
  EXPECT_EQ(p.launch("reverse", 1, 64, x), 0);
  EXPECT_EQ(CU(cuMemcpyDtoHAsync_v2)(pinned, x, 256, p.stream), 0);
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(p.wait(), 0);
  EXPECT_EQ(values[0], 63);
  EXPECT_EQ(CU(cuMemFreeHost)(pinned), 0);
}

TEST(FakeDriver, GoesOnWhileItIsAsked) {
  FakeCuda cuda;
  Program p;
  const CuDevicePtr x = p.memory(counted(64));
  EXPECT_EQ(p.launch("twice", 1, 64, x), 0);
  int asked = 1;
  while (CU(cuStreamQuery)(p.stream) == 600) ++asked;
  EXPECT_EQ(asked, 2);
}

TEST(FakeDriver, RunsAGraphTwice) {
  FakeCuda cuda;
  Program p;
  const CuDevicePtr x = p.memory(counted(64));
  EXPECT_EQ(p.wait(), 0);
  CuGraph graph = nullptr;
  CuGraphExec exec = nullptr;
  ASSERT_EQ(CU(cuStreamBeginCapture_v2)(p.stream, 1), 0);
  EXPECT_EQ(p.launch("twice", 1, 64, x), 0);
  EXPECT_EQ(CU(cuStreamEndCapture)(p.stream, &graph), 0);
  EXPECT_EQ(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0), 0);
  EXPECT_EQ(p.read(x, 64)[5], 5);
  EXPECT_EQ(CU(cuGraphLaunch)(exec, p.stream), 0);
  EXPECT_EQ(CU(cuGraphLaunch)(exec, p.stream), 0);
  EXPECT_EQ(p.read(x, 64)[5], 20);
  EXPECT_EQ(CU(cuGraphExecDestroy)(exec), 0);
  EXPECT_EQ(CU(cuGraphDestroy)(graph), 0);
}

TEST(FakeDriver, RefusesWaitsInACapture) {
  FakeCuda cuda;
  Program p;
  CuGraph graph = nullptr;
  CuDevicePtr memory = 0;
  ASSERT_EQ(CU(cuStreamBeginCapture_v2)(p.stream, 0), 0);
  EXPECT_EQ(p.wait(), 900);
  EXPECT_EQ(CU(cuStreamEndCapture)(p.stream, &graph), 901);
  ASSERT_EQ(CU(cuStreamBeginCapture_v2)(p.stream, 1), 0);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&memory, 16), 900);
  EXPECT_EQ(CU(cuStreamEndCapture)(p.stream, &graph), 901);
  EXPECT_EQ(CU(cuStreamEndCapture)(p.stream, &graph), 401);
}

TEST(FakeDriver, TellsTheTimeBetweenEvents) {
  FakeCuda cuda;
  Program p;
  const CuDevicePtr x = p.memory(counted(64));
  CuEvent start = nullptr, end = nullptr;
  ASSERT_EQ(CU(cuEventCreate)(&start, 0), 0);
  ASSERT_EQ(CU(cuEventCreate)(&end, 0), 0);
  EXPECT_EQ(CU(cuEventRecord)(start, p.stream), 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(p.launch("twice", 1, 64, x), 0);
  EXPECT_EQ(CU(cuEventRecord)(end, p.stream), 0);
  float ms = 0;
  EXPECT_EQ(CU(cuEventElapsedTime)(&ms, start, end), 600);
  EXPECT_EQ(CU(cuEventSynchronize)(end), 0);
  EXPECT_EQ(CU(cuEventElapsedTime)(&ms, start, end), 0);
  EXPECT_GE(ms, 0.1f);
  EXPECT_LT(ms, 1000);
}

struct Outside {
  const char* kernel;
  long long place;
  const char* words;
};

TEST(FakeDriver, FindsWhatIsOutOfBounds) {
  const Outside kPlaces[] = {
      {"write_at", 60, "write_at writes 0 bytes after an allocation of 240 bytes"},
      {"write_at", 64, "write_at: an access that is not allowed, 16 bytes after"},
      {"write_at", -1, "write_at writes 4 bytes before an allocation of 240 bytes"},
      {"read_at", 2000, "read_at: an access that is not allowed, 7760 bytes after"},
      {"read_at", -(1LL << 44), "far from every allocation"},
  };
  for (const auto& [kernel, place, words] : kPlaces) {
    FakeCuda cuda;
    Program p;
    const CuDevicePtr x = p.memory(counted(60));
    EXPECT_EQ(p.launch(kernel, 1, 1, x, place), 0);
    EXPECT_EQ(p.wait(), 700);
    EXPECT_NE(cuda.lines("VIOLATION").find(words), std::string::npos) << words << cuda.log();
    CuDevicePtr more = 0;  // the context is lost
    EXPECT_EQ(CU(cuMemAlloc_v2)(&more, 16), 700);
    EXPECT_EQ(CU(cuMemsetD8Async)(x, 0, 4, p.stream), 700);
    EXPECT_EQ(CU(cuCtxSynchronize)(), 700);
    CuContext context = nullptr;
    EXPECT_EQ(CU(cuDevicePrimaryCtxReset_v2)(0), 0);
    EXPECT_EQ(CU(cuCtxSynchronize)(), 709);
    EXPECT_EQ(CU(cuDevicePrimaryCtxRetain)(&context, 0), 0);
    EXPECT_EQ(CU(cuCtxSynchronize)(), 0);
  }
}

TEST(FakeDriver, FindsWhatIsUsedAfterItsEnd) {
  FakeCuda cuda;
  Program p;
  const CuDevicePtr x = p.memory(counted(60));
  EXPECT_EQ(CU(cuMemFree_v2)(x), 0);
  EXPECT_EQ(CU(cuMemFree_v2)(x), 1);
  EXPECT_NE(cuda.lines("VIOLATION memory is freed").find("0 bytes inside freed memory of 240"),
            std::string::npos);
  EXPECT_EQ(CU(cuMemsetD8Async)(x, 0, 4, p.stream), 1);
  const CuFunction twice = p.kernel("twice");
  EXPECT_EQ(p.launch("twice", 1, 1, x), 0);
  EXPECT_EQ(p.wait(), 700);
  EXPECT_EQ(CU(cuDevicePrimaryCtxReset_v2)(0), 0);
  CuContext context = nullptr;
  EXPECT_EQ(CU(cuDevicePrimaryCtxRetain)(&context, 0), 0);
  EXPECT_EQ(CU(cuLaunchKernel)(twice, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), 400);
  EXPECT_NE(cuda.lines("VIOLATION no such kernel"), "");
}

TEST(FakeDriver, FindsADividedBarrier) {
  FakeCuda cuda;
  Program p;
  const CuDevicePtr x = p.memory(counted(64));
  EXPECT_EQ(p.launch("divided", 1, 64, x), 0);
  EXPECT_EQ(p.wait(), 719);
  EXPECT_NE(cuda.lines("VIOLATION").find("divided: 8 of 64 threads wait at a barrier"),
            std::string::npos);
}

TEST(FakeDriver, RefusesLaunchesThatNoDeviceTakes) {
  FakeCuda cuda;
  Program p;
  const CuDevicePtr x = p.memory(counted(2000));
  EXPECT_EQ(p.launch("twice", 0, 64, x), 1);
  EXPECT_EQ(p.launch("twice", 1, 1025, x), 1);
  EXPECT_EQ(p.launch("reverse", 1, 65, x), 1);
  EXPECT_EQ(p.launch("large", 1, 1, x), 1);
  for (const char* words : {"no blocks or no threads",
                            "1025 threads",
                            "65 threads, 64 are its bound",
                            "49156 bytes of static shared memory"}) {
    EXPECT_NE(cuda.lines("VIOLATION").find(words), std::string::npos) << cuda.log();
  }
}

TEST(FakeDriver, FailsWhereARuleSaysSo) {
  FakeCuda cuda("cuMemAlloc@2=2,cuStreamQuery@*=999");
  Program p;
  CuDevicePtr a = 0, b = 0, c = 0;
  EXPECT_EQ(CU(cuMemAlloc_v2)(&a, 16), 0);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&b, 16), 2);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&c, 16), 0);
  EXPECT_EQ(CU(cuStreamQuery)(p.stream), 999);
  EXPECT_EQ(CU(cuStreamQuery)(p.stream), 999);
}

TEST(FakeDriver, LosesTheContextWhereARuleSaysSo) {
  FakeCuda cuda("cuStreamSynchronize@1=719");
  Program p;
  CuDevicePtr a = 0;
  EXPECT_EQ(p.wait(), 719);
  EXPECT_EQ(p.wait(), 719);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&a, 16), 719);
  EXPECT_EQ(cuda.end(), "");  // a lost context gives nothing back
}

TEST(FakeDriver, HasTheMemoryThatItIsTold) {
  FakeCuda cuda("memory=1000");
  Program p;
  CuDevicePtr a = 0, b = 0;
  EXPECT_EQ(CU(cuMemAlloc_v2)(&a, 600), 0);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&b, 600), 2);
  EXPECT_EQ(CU(cuMemFree_v2)(a), 0);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&b, 600), 0);
}

TEST(FakeDriver, IsTheDevicesThatItIsTold) {
  FakeCuda cuda("devices=2,arch=75+90");
  ASSERT_EQ(CU(cuInit)(0), 0);
  int count = 0, major = 0;
  EXPECT_EQ(CU(cuDeviceGetCount)(&count), 0);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(CU(cuDeviceGetAttribute)(&major, 75, 1), 0);
  EXPECT_EQ(major, 9);
  CuContext context = nullptr;
  CuModule module = nullptr;
  const auto cubin = compile_to_cubin(kKernels, *parse_target("cuda --arch=sm_80", 0));
  ASSERT_TRUE(cubin.ok()) << cubin.error().message();
  ASSERT_EQ(CU(cuDevicePrimaryCtxRetain)(&context, 0), 0);
  ASSERT_EQ(CU(cuCtxSetCurrent)(context), 0);
  EXPECT_EQ(CU(cuModuleLoadData)(&module, cubin->data()), 209);
}

TEST(FakeDriver, NotesCallsOutOfOrderAndWhatIsLeft) {
  FakeCuda cuda;
  int count = 0;
  CuDevicePtr memory = 0;
  CuContext context = nullptr;
  EXPECT_EQ(CU(cuDeviceGetCount)(&count), 3);
  EXPECT_EQ(CU(cuInit)(0), 0);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&memory, 16), 201);
  EXPECT_EQ(CU(cuCtxPopCurrent_v2)(&context), 201);
  EXPECT_EQ(CU(cuDevicePrimaryCtxRetain)(&context, 0), 0);
  EXPECT_EQ(CU(cuCtxPushCurrent_v2)(context), 0);
  EXPECT_EQ(CU(cuMemAlloc_v2)(&memory, 16), 0);
  EXPECT_EQ(cuda.end(),
            "VIOLATION cuDeviceGetCount before cuInit\n"
            "VIOLATION cuMemAlloc_v2 without a current context\n"
            "VIOLATION a context is popped where none is\n"
            "VIOLATION 1 contexts were pushed and never popped\n"
            "VIOLATION left at the end: 1 allocations\n"
            "VIOLATION left at the end: the context of device 0, retained 1 times\n");
}

TEST(FakeDriver, SeemsOlder) {
  FakeCuda cuda("lacks=cuGraphLaunch,version=10000");
  EXPECT_EQ(fake_function<decltype(cuGraphLaunch)>("libcuda.so.1", "cuGraphLaunch"), nullptr);
  EXPECT_NE(fake_function<decltype(cuInit)>("libcuda.so.1", "cuInit"), nullptr);
  int version = 0;
  EXPECT_EQ(CU(cuDriverGetVersion)(&version), 0);
  EXPECT_EQ(version, 10000);
}

TEST(FakeDriverDeathTest, EndsOnceOfAllProcesses) {
  FakeCuda cuda;
  const std::string once = cuda.path("once");
  const auto begin = [&] {
    setenv("FAKE_CUDA", "cuInit@1=exit", 1);
    setenv("FAKE_CUDA_ONCE", once.c_str(), 1);
    CU(fake_cuda_restart)();
    _exit(CU(cuInit)(0));
  };
  EXPECT_EXIT(begin(), testing::KilledBySignal(SIGKILL), "");
  EXPECT_EXIT(begin(), testing::ExitedWithCode(0), "");
}

TEST(FakeDriverDeathTest, KeepsTheHostFromItsMemory) {
  FakeCuda cuda;
  Program p;
  const CuDevicePtr x = p.memory(counted(4));
  EXPECT_EQ(p.wait(), 0);
  EXPECT_DEATH(*reinterpret_cast<volatile float*>(x) = 1, "");
}

}  // namespace
}  // namespace pruner
