// label: codegen
// A module for AArch64, made on any machine, run by a C program under qemu-aarch64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "deploy/link_module.h"
#include "deploy/loaded_module.h"
#include "deploy/module.h"
#include "golden.h"
#include "graph/networks/network_builder.h"

namespace pruner {
namespace {

// Inputs from standard input, the first output to standard output. It computes in a mode that no
// program begins with (bit 25 of FPCR: each NaN is the default one).
constexpr const char* kProgram = R"(
#include <pruner/module.h>
#include <stdio.h>
#include <stdlib.h>
static void* tensor(const PrunerTensorSpec* spec, size_t* bytes) {
  *bytes = (size_t[]){4, 2, 8, 4, 1, 1}[spec->dtype];
  for (int d = 0; d < spec->rank; d++) *bytes *= (size_t)spec->shape[d];
  return aligned_alloc(64, (*bytes + 63) / 64 * 64);
}
static unsigned long mode(void) {
  unsigned long fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  return fpcr;
}
int main(void) {
  const unsigned long own = mode() | 1 << 25;
  __asm__ volatile("msr fpcr, %0" : : "r"(own));
  PrunerModule* module = pruner_module_create(0);
  if (module == NULL) return puts(pruner_module_error()), 1;
  size_t bytes;
  const void* inputs[8];
  for (int i = 0; i < pruner_module_num_inputs(); i++) {
    void* input = tensor(pruner_module_input(i), &bytes);
    if (fread(input, 1, bytes, stdin) != bytes) return 2;
    inputs[i] = input;
  }
  void* outputs[8];
  for (int i = pruner_module_num_outputs(); i-- > 0;)
    outputs[i] = tensor(pruner_module_output(i), &bytes);
  if (pruner_module_run(module, inputs, outputs) != 0) return 3;
  if (mode() != own) return 4;
  fwrite(outputs[0], 1, bytes, stdout);
  pruner_module_destroy(module);
  return 0;
}
)";

bool can_run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

constexpr const char* kCompiler = "aarch64-linux-gnu-gcc";
constexpr const char* kQemu = "qemu-aarch64 -L /usr/aarch64-linux-gnu";

class AArch64Module : public testing::Test {
 protected:
  void SetUp() override {
    if (kHostIsa == Isa::kArm) GTEST_SKIP() << "modules of this machine have tests of their own";
    make_for("cortex-a76");
  }

  void make_for(const std::string& mcpu) {
    const Result<Target> target = parse_target("llvm -mcpu=" + mcpu + " --threads=2", 0);
    ASSERT_TRUE(target.ok()) << target.error().message();
    target_ = *target;
  }

  /// Returns what this machine lacks to run modules; empty: nothing.
  static std::string missing() {
    if (!check_linkable(Isa::kArm).ok()) return check_linkable(Isa::kArm).error().message();
    if (!can_run(std::string(kCompiler) + " --version")) return kCompiler;
    return can_run("qemu-aarch64 --version") ? "" : "qemu-aarch64 (Debian: qemu-user)";
  }

  Result<ModuleSummary> build(const Graph& graph, const ModuleOptions& options = {}) const {
    TRY_ASSIGN(const Partition cut, partition(graph, target_));
    return build_module(cut, target_, nullptr, options, folder_->path("module.so"));
  }

  /// Builds the module, runs it as `cpu` does, and returns its standard output.
  std::string output_of(const Graph& graph,
                        std::span<const Tensor> inputs,
                        const std::string& cpu,
                        int* status,
                        const ModuleOptions& options = {}) const {
    const Result<ModuleSummary> built = build(graph, options);
    EXPECT_TRUE(built.ok()) << built.error().message();
    std::string bytes;
    for (const Tensor& input : inputs)
      bytes.append(static_cast<const char*>(input.data()), static_cast<size_t>(input.bytes()));
    EXPECT_TRUE(write_file(folder_->path("main.c"), kProgram).ok());
    EXPECT_TRUE(write_file(folder_->path("in"), bytes).ok());
    const std::string there = "cd " + folder_->path("") + " && ";
    const std::string link = there + kCompiler + " -Wall -I" + test_path("../include") +
                             " main.c -o main ./module.so -Wl,-rpath,.";
    EXPECT_EQ(std::system(link.c_str()), 0);
    *status = std::system((there + kQemu + " -cpu " + cpu + " ./main < in > out").c_str());
    const Result<std::string> out = read_file(folder_->path("out"));
    return out.ok() ? *out : "";
  }

  Target target_;
  const Result<TemporaryFolder> folder_ = TemporaryFolder::make("");
};

TEST_F(AArch64Module, GivesWhatTheInterpreterGives) {
  if (!missing().empty()) GTEST_SKIP() << missing();
  for (const std::string name : {"mobilenet_v2", "bert_tiny"}) {
    SCOPED_TRACE(name);
    const Result<Graph> graph =
        build_network(name, {.image_size = 32, .sequence_length = 12, .input_shapes = {}});
    ASSERT_TRUE(graph.ok());
    std::vector<TensorSpec> specs;
    for (const ValueId id : graph->inputs)
      specs.push_back({(*graph)[id].name, (*graph)[id].dtype, (*graph)[id].shape});
    const std::vector<Tensor> inputs = seeded_inputs(specs, 7);
    const Result<std::vector<Tensor>> expected = interpret_graph(*graph, inputs);
    ASSERT_TRUE(expected.ok());
    int status = 0;
    const std::string out = output_of(*graph, inputs, "cortex-a76", &status);
    ASSERT_EQ(status, 0) << out;
    const Tensor& first = expected->at(0);
    ASSERT_EQ(out.size(), static_cast<size_t>(first.bytes()));
    std::vector<float> found(out.size() / sizeof(float));
    std::memcpy(found.data(), out.data(), out.size());
    double largest = 0;
    for (int64_t i = 0; i < first.num_elements(); ++i)
      largest = std::max(largest, std::abs(first.get(i)));
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], first.get(static_cast<int64_t>(i)), 1e-4 * largest) << i;
  }
}

// Convolutions and a product of bytes between two steps of quantization, all scales powers of two.
Graph quantized_graph() {
  NetworkBuilder b("bytes");
  const auto byte = [&](int64_t value, DType dtype) {
    Tensor tensor(dtype, {});
    tensor.set_int(0, value);
    return b.constant("zero", tensor);
  };
  const auto weight = [&](std::vector<int64_t> shape) {
    Tensor tensor(DType::kInt8, std::move(shape));
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.set_int(i, (5 + i * 37) % 256 - 128);
    return b.constant("weight", tensor);
  };
  const ValueId zero = byte(131, DType::kUInt8), none = byte(0, DType::kInt8);
  const auto convolved = [&](ValueId x, std::vector<int64_t> shape, int64_t pad) {
    const ValueId one = b.scalar(1), ratio = b.scalar(256);
    return b.node("QLinearConv",
                  {x, one, zero, weight(std::move(shape)), one, none, ratio, zero},
                  {{"pads", std::vector<int64_t>{pad, pad, pad, pad}}});
  };
  const ValueId image = b.input("image", {1, 3, 9, 7}, DType::kFloat32);
  ValueId x = b.node("QuantizeLinear", {image, b.scalar(1.0 / 64), zero});
  x = convolved(x, {24, 3, 3, 3}, 1);
  const ValueId y = convolved(x, {24, 24, 1, 1}, 0);
  x = b.node("com.microsoft::QLinearAdd",
             {x, b.scalar(1), zero, y, b.scalar(1), zero, b.scalar(2), zero});
  x = b.flatten(convolved(x, {16, 24, 3, 3}, 0));
  x = b.node("QLinearMatMul",
             {x, b.scalar(1), zero, weight({560, 10}), b.scalar(1), none, b.scalar(1024), zero});
  return b.finish({{b.node("DequantizeLinear", {x, b.scalar(1), zero}), "y"}});
}

TEST_F(AArch64Module, OfBytesGivesTheBitsOfTheInterpreter) {
  if (!missing().empty()) GTEST_SKIP() << missing();
  const Graph graph = quantized_graph();
  const std::vector<TensorSpec> specs = {{"image", DType::kFloat32, {1, 3, 9, 7}}};
  const std::vector<Tensor> inputs = seeded_inputs(specs, 7);
  const Result<std::vector<Tensor>> expected = interpret_graph(graph, inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().message();
  for (const char* mcpu : {"cortex-a72", "cortex-a76", "neoverse-n2"}) {
    SCOPED_TRACE(mcpu);
    make_for(mcpu);
    int status = 0;
    const std::string out = output_of(graph, inputs, "max", &status);
    ASSERT_EQ(status, 0) << out;
    const Tensor& first = expected->at(0);
    ASSERT_EQ(out.size(), static_cast<size_t>(first.bytes()));
    EXPECT_EQ(std::memcmp(out.data(), first.data(), out.size()), 0);
  }
}

// Subnormal numbers of float32 are zeros unless the module keeps them; those of float16 stay.
TEST_F(AArch64Module, TakesSubnormalNumbersForZeros) {
  if (!missing().empty()) GTEST_SKIP() << missing();
  constexpr int64_t kElements = 4096;
  NetworkBuilder scaling("scaling"), casting("casting");
  const ValueId x = scaling.input("x", {kElements}, DType::kFloat32);
  const Graph product = scaling.finish({{scaling.node("Mul", {x, scaling.scalar(0x1p-40)}), "y"}});
  const ValueId half = casting.input("half", {kElements}, DType::kFloat16);
  const Graph cast =
      casting.finish({{casting.node("Cast", {half}, {{"to", std::string("float32")}}), "y"}});
  const auto expect_all =
      [&](const Graph& graph, DType dtype, double in, float expected, bool flushes) {
        Tensor input(dtype, {kElements});
        for (int64_t i = 0; i < kElements; ++i) input.set(i, in);
        int status = 0;
        const std::string out = output_of(graph,
                                          std::span(&input, 1),
                                          "max",
                                          &status,
                                          {.work_dir = "", .flushes_denormals = flushes});
        ASSERT_EQ(status, 0) << out;
        std::vector<float> found(out.size() / sizeof(float));
        std::memcpy(found.data(), out.data(), out.size());
        EXPECT_EQ(found, std::vector<float>(kElements, expected));
      };
  expect_all(product, DType::kFloat32, 0x1p-100, 0, true);
  expect_all(product, DType::kFloat32, 0x1p-100, 0x1p-140F, false);
  expect_all(cast, DType::kFloat16, 0x11p-24, 0x11p-24F, true);
}

Graph small_graph() {
  NetworkBuilder b("small");
  const ValueId x = b.input("image", {1, 3, 13, 11}, DType::kFloat32);
  return b.finish({{b.conv_norm("conv", x, {.channels = 8, .kernel = 3}), "y"}});
}

TEST_F(AArch64Module, NamesTheCpuFeatureThatIsMissing) {
  if (!missing().empty()) GTEST_SKIP() << missing();
  int status = 0;
  const std::string out = output_of(small_graph(), {}, "cortex-a53", &status);
  EXPECT_NE(status, 0);
  EXPECT_NE(out.find("this CPU lacks "), std::string::npos) << out;
  make_for("neoverse-n2");
  EXPECT_NE(output_of(small_graph(), {}, "cortex-a76", &status).find("this CPU lacks "),
            std::string::npos);
}

TEST_F(AArch64Module, IsRefusedHere) {
  const Result<ModuleSummary> built = build(small_graph());
  if (!check_linkable(Isa::kArm).ok()) {
    EXPECT_ERROR(built,
                 "no modules for AArch64 in this build: aarch64-linux-gnu-gcc was not there");
    return;
  }
  ASSERT_TRUE(built.ok()) << built.error().message();
  EXPECT_ERROR(load_module(folder_->path("module.so")),
               "module.so: made for AArch64, this machine is x86-64");
}

}  // namespace
}  // namespace pruner
