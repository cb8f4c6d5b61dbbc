// label: codegen
// Checks what modules do with subnormal numbers and with the floating-point mode of their caller.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <functional>

#include "deploy/loaded_module.h"
#include "deploy/module.h"
#include "golden.h"
#include "graph/networks/network_builder.h"
#include "runtime/module/float_mode.h"
#include "shell.h"
#include "support/file.h"
#include "support/temporary_folder.h"

namespace pruner {
namespace {

// Rows that two threads share.
constexpr int64_t kRows = 64, kColumns = 1024;

/// smaller = x / 1e10, larger = x * 1e30, and the row of `x` that `id` says.
Graph scaling(DType dtype) {
  NetworkBuilder b("scaling");
  const ValueId x = b.input("x", {kRows, kColumns}, dtype), id = b.input("id", {1}, DType::kInt64);
  const auto number = [&](double value) {
    Tensor tensor(dtype, {});
    tensor.set(0, value);
    return b.constant("number", tensor);
  };
  return b.finish({{b.node("Mul", {x, number(1e-10)}), "smaller"},
                   {b.node("Mul", {x, number(1e30)}), "larger"},
                   {b.node("Gather", {x, id}), "row"}});
}

/// Numbers of float16 and of float32 cast to each other.
Graph casts() {
  NetworkBuilder b("casts");
  const ValueId half = b.input("half", {64}, DType::kFloat16),
                single = b.input("single", {64}, DType::kFloat32);
  return b.finish({{b.node("Cast", {half}, {{"to", std::string("float32")}}), "to_single"},
                   {b.node("Cast", {single}, {{"to", std::string("float16")}}), "to_half"},
                   {b.node("Add", {half, half}), "twice"}});
}

std::vector<Tensor> inputs_of(double x, int64_t id = 0, DType dtype = DType::kFloat32) {
  std::vector<Tensor> inputs = {Tensor(dtype, {kRows, kColumns}), Tensor(DType::kInt64, {1})};
  for (int64_t i = 0; i < inputs[0].num_elements(); ++i) inputs[0].set(i, x);
  inputs[1].set_int(0, id);
  return inputs;
}

/// The calling thread's mode without the flags of exceptions that there were.
uint64_t mode_here() { return pruner_float_mode() & ~uint64_t{0x3f}; }

class Denormals : public testing::Test {
 protected:
  void TearDown() override { pruner_set_float_mode(before_); }

  Result<LoadedModule> module_of(const Graph& graph, const ModuleOptions& options) const {
    const Target target = host_target(2);
    TRY_ASSIGN(const Partition cut, partition(graph, target));
    const std::string path = folder_.path(options.flushes_denormals ? "flush.so" : "keep.so");
    TRY(build_module(cut, target, nullptr, options, path));
    return load_module(path);
  }

  const uint64_t before_ = pruner_float_mode();
  const TemporaryFolder folder_ = *TemporaryFolder::make("");
};

/// Every element, whichever thread computes it.
void expect_all(const Tensor& tensor, double value) {
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    ASSERT_NEAR(tensor.get(i), value, 1e-4 * std::abs(value)) << "element " << i;
}

TEST_F(Denormals, AreZerosToAModule) {
  for (const bool flushes : {true, false}) {
    Result<LoadedModule> module =
        module_of(scaling(DType::kFloat32), {.work_dir = "", .flushes_denormals = flushes});
    ASSERT_TRUE(module.ok()) << module.error().message();
    for (int run = 0; run < 20; ++run) {
      const auto made = module->run(inputs_of(0x1p-100)), read = module->run(inputs_of(0x1p-130));
      ASSERT_TRUE(made.ok() && read.ok());
      expect_all((*made)[0], flushes ? 0 : 1e-10 * 0x1p-100);
      expect_all((*read)[1], flushes ? 0 : 1e30 * 0x1p-130);
      expect_all((*read)[2], 0x1p-130);  // a copy computes nothing
    }
  }
}

TEST_F(Denormals, OfFloat64AreZerosToo) {
  for (const bool flushes : {true, false}) {
    Result<LoadedModule> module =
        module_of(scaling(DType::kFloat64), {.work_dir = "", .flushes_denormals = flushes});
    ASSERT_TRUE(module.ok()) << module.error().message();
    const auto made = module->run(inputs_of(0x1p-1010, 0, DType::kFloat64));
    ASSERT_TRUE(made.ok()) << made.error().message();
    expect_all((*made)[0], flushes ? 0 : 1e-10 * 0x1p-1010);
  }
}

TEST_F(Denormals, OfFloat16Stay) {
  Result<LoadedModule> module = module_of(casts(), {});
  ASSERT_TRUE(module.ok()) << module.error().message();
  std::vector<Tensor> inputs = {Tensor(DType::kFloat16, {64}), Tensor(DType::kFloat32, {64})};
  for (int64_t i = 0; i < 64; ++i)
    for (Tensor& input : inputs) input.set(i, static_cast<double>(i) * 0x1p-24);
  const auto outputs = module->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message();
  for (int64_t i = 0; i < 64; ++i) {
    const double expected = static_cast<double>(i) * 0x1p-24;  // 1e-6 has i = 17
    EXPECT_EQ((*outputs)[0].get(i), expected) << i;
    EXPECT_EQ((*outputs)[1].get(i), expected) << i;
    EXPECT_EQ((*outputs)[2].get(i), 2 * expected) << i;
  }
}

/// Everything that runs a module, and whether it goes well.
struct Call {
  const char* name;
  std::function<bool(LoadedModule&)> done;
};
const Call kCalls[] = {
    {"run", [](LoadedModule& m) { return m.run(inputs_of(0x1p-100)).ok(); }},
    {"failing run", [](LoadedModule& m) { return !m.run(inputs_of(0x1p-100, kRows)).ok(); }},
    {"bench", [](LoadedModule& m) { return m.bench(inputs_of(1), {.min_s = 0.001}).ok(); }},
    {"profile", [](LoadedModule& m) { return m.profile(inputs_of(1), {.min_s = 0.001}).ok(); }},
    {"trace", [](LoadedModule& m) { return m.trace(inputs_of(1)).ok(); }},
};

TEST_F(Denormals, LeaveTheModeOfTheCaller) {
  for (const bool flushes : {true, false}) {
    Result<LoadedModule> module =
        module_of(scaling(DType::kFloat32), {.work_dir = "", .flushes_denormals = flushes});
    ASSERT_TRUE(module.ok()) << module.error().message();
    for (const int rounding : {FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD}) {
      for (const bool flushing : {false, true}) {
        pruner_set_float_mode(before_);
        std::fesetround(rounding);
        const uint64_t mode = flushing ? pruner_flushing(mode_here()) : mode_here();
        for (const Call& call : kCalls) {
          SCOPED_TRACE(call.name);
          pruner_set_float_mode(mode);
          const bool done = call.done(*module);
          const uint64_t after = mode_here();
          pruner_set_float_mode(before_);
          std::fesetround(FE_TONEAREST);
          EXPECT_TRUE(done);
          EXPECT_EQ(after, mode) << "rounding " << rounding << ", flushing " << flushing;
        }
      }
    }
  }
}

// A module that keeps the mode computes in that of each run's caller, on all of its threads.
TEST_F(Denormals, AreKeptByAModuleIfTheCallerKeepsThem) {
  Result<LoadedModule> module =
      module_of(scaling(DType::kFloat32), {.work_dir = "", .flushes_denormals = false});
  ASSERT_TRUE(module.ok()) << module.error().message();
  for (int run = 0; run < 20; ++run) {
    const bool flushing = run % 2 == 1;
    const std::vector<Tensor> inputs = inputs_of(0x1p-100);
    pruner_set_float_mode(flushing ? pruner_flushing(before_) : before_);
    const auto outputs = module->run(inputs);
    pruner_set_float_mode(before_);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message();
    expect_all((*outputs)[0], flushing ? 0 : 1e-10 * 0x1p-100);
  }
}

// The same of a static library in a program of C, which rounds toward zero.
TEST_F(Denormals, AreZerosToAStaticLibrary) {
  if (output_of("cc --version >/dev/null") != "status 0") GTEST_SKIP() << "no cc here";
  const std::string program = R"(
#include <fenv.h>
#include <stdio.h>
#include "scaling.h"
static float x[65536], smaller[65536], larger[65536], row[1024];
int main(void) {
  for (int i = 0; i < 65536; i++) x[i] = 0x1p-100f;
  int64_t id = 3;
  const void* inputs[] = {x, &id};
  void* outputs[] = {smaller, larger, row};
  fesetround(FE_TOWARDZERO);
  PrunerModule* module = scaling_create(0);
  if (module == NULL || scaling_run(module, inputs, outputs) != 0) return 1;
  volatile float tiny = 0x1p-100f;
  int kept = 0;
  for (int i = 0; i < 65536; i++) kept += smaller[i] != 0;
  printf("%d kept, %d\n", kept, tiny * 0x1p-40f == 0x1p-140f && fegetround() == FE_TOWARDZERO);
  scaling_destroy(module);
  return 0;
}
)";
  const Result<Partition> cut = partition(scaling(DType::kFloat32), host_target(2));
  ASSERT_TRUE(cut.ok()) << cut.error().message();
  ASSERT_TRUE(write_file(folder_.path("main.c"), program).ok());
  for (const bool flushes : {true, false}) {
    const auto built = build_module(*cut,
                                    host_target(2),
                                    nullptr,
                                    {.work_dir = "", .flushes_denormals = flushes},
                                    folder_.path("libscaling.a"));
    ASSERT_TRUE(built.ok()) << built.error().message();
    EXPECT_EQ(output_of("cd '" + folder_.path("") + "' && cc -Wall -Wextra -I" + test_path("..") +
                        "/include main.c libscaling.a -ldl -lm -pthread -o main && ./main"),
              std::string(flushes ? "0" : "65536") + " kept, 1\nstatus 0");
  }
}

}  // namespace
}  // namespace pruner
