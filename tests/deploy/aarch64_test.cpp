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

// Inputs from standard input, the first output to standard output.
constexpr const char* kProgram = R"(
#include <pruner/module.h>
#include <stdio.h>
#include <stdlib.h>
static void* tensor(const PrunerTensorSpec* spec, size_t* bytes) {
  *bytes = (size_t[]){4, 2, 8, 4, 1, 1}[spec->dtype];
  for (int d = 0; d < spec->rank; d++) *bytes *= (size_t)spec->shape[d];
  return aligned_alloc(64, (*bytes + 63) / 64 * 64);
}
int main(void) {
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
    const Result<Target> target = parse_target("llvm -mcpu=cortex-a76 --threads=2", 0);
    ASSERT_TRUE(target.ok()) << target.error().message();
    target_ = *target;
  }

  /// What is missing for running modules; empty: nothing.
  static std::string missing() {
    if (!check_linkable(Isa::kArm).ok()) return check_linkable(Isa::kArm).error().message();
    if (!can_run(std::string(kCompiler) + " --version")) return kCompiler;
    return can_run("qemu-aarch64 --version") ? "" : "qemu-aarch64 (Debian: qemu-user)";
  }

  Result<ModuleSummary> build(const Graph& graph) const {
    TRY_ASSIGN(const Partition cut, partition(graph, target_));
    return build_module(cut, target_, nullptr, {}, folder_->path("module.so"));
  }

  /// Builds the module and runs it as `cpu` does; what it writes to standard output.
  std::string output_of(const Graph& graph,
                        std::span<const Tensor> inputs,
                        const std::string& cpu,
                        int* status) const {
    const Result<ModuleSummary> built = build(graph);
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
