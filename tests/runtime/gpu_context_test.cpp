// label: device
// GPU programs on this machine's OpenCL device (PoCL on a CPU), held against the interpreter.
#include "runtime/gpu_context.h"

#include <gtest/gtest.h>

#include <cmath>

#include "dtype_run.h"
#include "golden.h"
#include "loaded_program.h"
#include "lower/gpu_programs.h"

namespace pruner {
namespace {

Target opencl() { return *parse_target("opencl", 0); }

class OpenClTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto devices = list_gpus(Backend::kOpenCl);
    if (!devices.ok()) GTEST_SKIP() << devices.error().message();
  }

  // Runs a program on the device; arguments in place.
  Result<double> run(const Program& program, std::vector<Tensor>& args) {
    TRY_ASSIGN(const Artifact artifact, compile(program, opencl(), "kernel"));
    TRY_ASSIGN(const auto loaded, LoadedProgram::load(artifact));
    for (size_t i = 0; i < args.size(); ++i) {
      TRY(loaded->write_argument(i, args[i].data()));
    }
    TRY_ASSIGN(const double seconds, loaded->run(2));
    for (size_t i = 0; i < args.size(); ++i) {
      TRY(loaded->read_argument(i, args[i].data()));
    }
    return seconds;
  }
};

TEST_F(OpenClTest, ListsDevices) {
  const auto devices = list_gpus(Backend::kOpenCl);
  ASSERT_FALSE(devices->empty());
  EXPECT_FALSE(std::string_view(devices->front().name).empty());
  EXPECT_GT(devices->front().threads_per_block, 0);
  EXPECT_GT(devices->front().shared_bytes_per_block, 0);
}

TEST_F(OpenClTest, ComputesWhatTheInterpreterDoes) {
  for (const NamedProgram& p : gpu_programs()) {
    std::vector<Tensor> args = gpu_arguments(p.program), expected;
    for (const Tensor& arg : args) expected.push_back(arg.clone());
    ASSERT_TRUE(interpret(p.program, expected).ok()) << p.name;
    const Result<double> seconds = run(p.program, args);
    ASSERT_TRUE(seconds.ok()) << p.name << ": " << seconds.error().message();
    EXPECT_GT(*seconds, 0);
    for (size_t i = 0; i < args.size(); ++i) {
      const double tolerance = args[i].dtype() == DType::kFloat16 ? 2e-3 : 2e-6;
      for (int64_t e = 0; e < args[i].num_elements(); ++e) {
        const double want = expected[i].get(e), have = args[i].get(e);
        ASSERT_NEAR(have, want, tolerance * (1 + std::fabs(want)))
            << p.name << " argument " << i << " at " << e;
      }
    }
  }
}

TEST_F(OpenClTest, ComputesWhatTheInterpreterDoesInEveryDtype) { expect_dtypes_compute(opencl()); }

TEST_F(OpenClTest, SaysWhatTheCompilerSays) {
  Result<Artifact> artifact = compile(gpu_row_sums(2, 8, 8), opencl(), "kernel");
  ASSERT_TRUE(artifact.ok());
  artifact->object = "__kernel void kernel_0() { nothing = 1; }";
  EXPECT_ERROR(LoadedProgram::load(*artifact), "OpenCL compiler of ");
}

TEST_F(OpenClTest, SaysWhatTheDeviceHasNoRoomFor) {
  Result<Artifact> artifact = compile(gpu_row_sums(2, 8, 8), opencl(), "kernel");
  ASSERT_TRUE(artifact.ok());
  artifact->launches[0].shared_bytes = int64_t{1} << 40;
  EXPECT_ERROR(LoadedProgram::load(*artifact), "bytes of shared memory a block");
  artifact->launches[0].threads = 1 << 20;
  EXPECT_ERROR(LoadedProgram::load(*artifact), "threads a block");
}

TEST_F(OpenClTest, TellsACpuArtifactFromItsOwn) {
  const auto context = GpuContext::open(Backend::kOpenCl, 0);
  ASSERT_TRUE(context.ok()) << context.error().message();
  EXPECT_ERROR((*context)->load(Artifact{}), "is no program for ");
  EXPECT_FALSE((*context)->lost());
}

TEST_F(OpenClTest, NamesTheLastDeviceThatThereIs) {
  EXPECT_ERROR(GpuContext::open(Backend::kOpenCl, 1000), "there is no device opencl:1000");
}

// Each run of the program adds to what it finds; the flushed buffer is another one.
TEST_F(OpenClTest, FlushesBetweenTimedRuns) {
  const Result<Artifact> artifact = compile(gpu_row_sums(2, 8, 8), opencl(), "kernel");
  ASSERT_TRUE(artifact.ok());
  const auto context = GpuContext::open(Backend::kOpenCl, 0);
  ASSERT_TRUE(context.ok()) << context.error().message();
  Result<GpuProgram> program = (*context)->load(*artifact);
  ASSERT_TRUE(program.ok()) << program.error().message();
  std::vector<GpuBuffer> buffers;
  for (const int64_t bytes : {2 * 64 * 4, 2 * 8 * 4, 1, 4096}) {
    Result<GpuBuffer> buffer = (*context)->allocate(bytes);
    ASSERT_TRUE(buffer.ok()) << buffer.error().message();
    buffers.push_back(*std::move(buffer));
    ASSERT_TRUE(buffers.back().fill(std::byte{1}).ok());
  }
  GpuBuffer* const arguments[] = {&buffers[0], &buffers[1], &buffers[2]};
  const Result<double> seconds = program->run(arguments, 3, &buffers[3]);
  ASSERT_TRUE(seconds.ok()) << seconds.error().message();
  EXPECT_GT(*seconds, 0);
  std::vector<std::byte> flushed(4096);
  ASSERT_TRUE(buffers[3].read(flushed.data()).ok());
  EXPECT_EQ(flushed, std::vector<std::byte>(4096));
}

}  // namespace
}  // namespace pruner
