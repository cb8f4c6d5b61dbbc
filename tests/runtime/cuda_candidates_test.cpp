// label: cuda-fake
// Candidates of every kind of operator as CUDA C on the fake driver, held against the reference
// interpreter. PRUNER_CANDIDATES=N draws N of each.
#include <cmath>
#include <vector>

#include "codegen/codegen.h"
#include "fakes/fake_cuda.h"
#include "lower/lower.h"
#include "space/operator_task.h"
#include "tensor/interpreter.h"

namespace pruner {
namespace {

/// A program's arguments and workspace in the device's memory.
class DeviceRun {
 public:
  DeviceRun() {
    EXPECT_EQ(CU(cuInit)(0), 0);
    EXPECT_EQ(CU(cuDevicePrimaryCtxRetain)(&context_, 0), 0);
    EXPECT_EQ(CU(cuCtxPushCurrent_v2)(context_), 0);
    EXPECT_EQ(CU(cuStreamCreate)(&stream_, 1), 0);
  }
  ~DeviceRun() {
    for (const CuDevicePtr memory : memory_) EXPECT_EQ(CU(cuMemFree_v2)(memory), 0);
    if (module_ != nullptr) CU(cuModuleUnload)(module_);
    CU(cuStreamDestroy_v2)(stream_);
    CU(cuCtxPopCurrent_v2)(&context_);
    CU(cuDevicePrimaryCtxRelease_v2)(0);
  }

  /// Leaves in `outputs` what the artifact makes of the inputs.
  void run(const Artifact& artifact,
           const std::vector<Tensor>& inputs,
           std::vector<Tensor>& outputs) {
    ASSERT_EQ(CU(cuModuleLoadData)(&module_, artifact.object.data()), 0);
    for (const Tensor& input : inputs) {
      const CuDevicePtr at = allocate(input.bytes());
      EXPECT_EQ(CU(cuMemcpyHtoDAsync_v2)(at, input.data(), bytes_of(input), stream_), 0);
    }
    for (const Tensor& output : outputs) allocate(output.bytes());
    CuDevicePtr workspace = artifact.workspace_bytes > 0 ? allocate(artifact.workspace_bytes) : 0;
    for (const Artifact::Launch& launch : artifact.launches) launch_one(launch, workspace);
    for (size_t o = 0; o < outputs.size(); ++o) {
      Tensor& output = outputs[o];
      const CuDevicePtr from = memory_[inputs.size() + o];
      EXPECT_EQ(CU(cuMemcpyDtoHAsync_v2)(output.data(), from, bytes_of(output), stream_), 0);
    }
    EXPECT_EQ(CU(cuStreamSynchronize)(stream_), 0);
  }

 private:
  static size_t bytes_of(const Tensor& tensor) { return static_cast<size_t>(tensor.bytes()); }

  CuDevicePtr allocate(int64_t bytes) {
    CuDevicePtr at = 0;
    EXPECT_EQ(CU(cuMemAlloc_v2)(&at, static_cast<size_t>(bytes)), 0);
    memory_.push_back(at);
    return at;
  }

  void launch_one(const Artifact::Launch& launch, CuDevicePtr& workspace) {
    CuFunction kernel = nullptr;
    ASSERT_EQ(CU(cuModuleGetFunction)(&kernel, module_, launch.kernel.c_str()), 0);
    int shared_bytes = 0;
    EXPECT_EQ(CU(cuFuncGetAttribute)(&shared_bytes, 1, kernel), 0);
    EXPECT_EQ(shared_bytes, launch.shared_bytes);
    std::vector<void*> places;
    for (const int i : launch.arguments) places.push_back(&memory_[static_cast<size_t>(i)]);
    if (launch.workspace) places.push_back(&workspace);
    EXPECT_EQ(CU(cuLaunchKernel)(kernel,
                                 static_cast<unsigned>(launch.blocks),
                                 1,
                                 1,
                                 static_cast<unsigned>(launch.threads),
                                 1,
                                 1,
                                 0,
                                 stream_,
                                 places.data(),
                                 nullptr),
              0);
  }

  CuContext context_ = nullptr;
  CuStream stream_ = nullptr;
  CuModule module_ = nullptr;
  std::vector<CuDevicePtr> memory_;
};

void expect_near(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  for (size_t o = 0; o < expected.size(); ++o) {
    for (int64_t e = 0; e < expected[o].num_elements(); ++e) {
      const double want = expected[o].get(e);
      ASSERT_NEAR(found[o].get(e), want, 1e-4 * (1 + std::fabs(want))) << "element " << e;
    }
  }
}

class FakeCudaCandidates : public testing::TestWithParam<const char*> {};

TEST_P(FakeCudaCandidates, ComputeWhatTheDagDoes) {
  const FakeCuda cuda;
  const Target target = *parse_target("cuda --arch=sm_80", 0);
  const Task task = operator_task(GetParam(), target);
  const Space space = make_space(task);
  Rng rng(11);
  const std::vector<Tensor> inputs = random_inputs(task.dag, rng);
  const std::vector<Tensor> expected = interpret(task.dag, inputs);
  for (int i = 0; i < candidates_each(1); ++i) {
    const Candidate candidate = sample(space, rng);
    SCOPED_TRACE(print(space, candidate));
    const Result<Program> program = lower(space, candidate, "k");
    ASSERT_TRUE(program.ok()) << program.error().message();
    const Result<Artifact> artifact = compile(*program, target, "k");
    ASSERT_TRUE(artifact.ok()) << artifact.error().message();
    std::vector<Tensor> outputs;
    for (const Tensor& output : expected) outputs.emplace_back(output.dtype(), output.shape());
    DeviceRun().run(*artifact, inputs, outputs);
    expect_near(outputs, expected);
  }
  EXPECT_EQ(cuda.end(), "");
}

INSTANTIATE_TEST_SUITE_P(Cuda, FakeCudaCandidates, testing::ValuesIn(kSmallOperators));

}  // namespace
}  // namespace pruner
