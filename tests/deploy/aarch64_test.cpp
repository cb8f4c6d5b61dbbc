// label: codegen
// A module for AArch64, made on any machine, run by a C program under qemu-aarch64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "deploy/link_module.h"
#include "deploy/loaded_module.h"
#include "deploy/module.h"
#include "golden.h"
#include "graph/networks/network_builder.h"

namespace pruner {
namespace {

// Inputs from standard input, outputs to standard output.
constexpr const char* kProgram = R"(
#include <pruner/module.h>
#include <stdio.h>
#include <stdlib.h>
static void* tensor(const PrunerTensorSpec* spec, size_t* bytes) {
  *bytes = 4;
  for (int d = 0; d < spec->rank; d++) *bytes *= (size_t)spec->shape[d];
  return aligned_alloc(64, (*bytes + 63) / 64 * 64);
}
int main(void) {
  PrunerModule* module = pruner_module_create(0);
  if (module == NULL) return puts(pruner_module_error()), 1;
  size_t bytes;
  void* input = tensor(pruner_module_input(0), &bytes);
  if (fread(input, 1, bytes, stdin) != bytes) return 2;
  void* output = tensor(pruner_module_output(0), &bytes);
  const void* inputs[] = {input};
  void* outputs[] = {output};
  if (pruner_module_run(module, inputs, outputs) != 0) return 3;
  fwrite(output, 1, bytes, stdout);
  pruner_module_destroy(module);
  return 0;
}
)";

bool can_run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

class AArch64Module : public testing::Test {
 protected:
  void SetUp() override {
    if (kHostIsa == Isa::kArm) GTEST_SKIP() << "modules of this machine have tests of their own";
    const Result<Target> target = parse_target("llvm -mcpu=cortex-a76 --threads=2", 0);
    ASSERT_TRUE(target.ok()) << target.error().message();
    target_ = *target;
    NetworkBuilder b("small");
    const ValueId x = b.input("image", {1, 3, 13, 11}, DType::kFloat32);
    const ValueId stem = b.node("Relu", {b.conv_norm("stem", x, {.channels = 24, .kernel = 3})});
    const ValueId scores = b.classifier("head", stem, 10);
    graph_ = b.finish({{b.node("Softmax", {scores}, {{"axis", int64_t{1}}}), "scores"}});
  }

  Result<ModuleSummary> build() const {
    TRY_ASSIGN(const Partition cut, partition(graph_, target_));
    return build_module(cut, target_, nullptr, {}, path_);
  }

  Target target_;
  Graph graph_;
  const Result<TemporaryFolder> folder_ = TemporaryFolder::make("");
  const std::string path_ = folder_->path("libsmall.so");
};

TEST_F(AArch64Module, GivesWhatTheInterpreterGives) {
  const std::string cc = "aarch64-linux-gnu-gcc";
  if (!check_linkable(Isa::kArm).ok() || !can_run(cc + " --version"))
    GTEST_SKIP() << cc << " is missing, now or when this was configured";
  if (!can_run("qemu-aarch64 --version")) GTEST_SKIP() << "qemu-aarch64 is missing";
  const Result<ModuleSummary> built = build();
  ASSERT_TRUE(built.ok()) << built.error().message();
  const std::vector<TensorSpec> specs = {{"image", DType::kFloat32, {1, 3, 13, 11}}};
  const std::vector<Tensor> inputs = seeded_inputs(specs, 7);
  const Result<std::vector<Tensor>> expected = interpret_graph(graph_, inputs);
  ASSERT_TRUE(expected.ok());
  ASSERT_TRUE(write_file(folder_->path("main.c"), kProgram).ok());
  ASSERT_TRUE(write_file(folder_->path("in"),
                         {static_cast<const char*>(inputs[0].data()),
                          static_cast<size_t>(inputs[0].bytes())})
                  .ok());
  const std::string at = "cd " + folder_->path("") + " && ";
  ASSERT_EQ(std::system((at + cc + " -Wall -I" + test_path("../include") +
                         " main.c -o main -L. -lsmall -Wl,-rpath,.")
                            .c_str()),
            0);
  const std::string qemu = "qemu-aarch64 -L /usr/aarch64-linux-gnu ";
  ASSERT_EQ(std::system((at + qemu + "-cpu cortex-a76 ./main < in > out").c_str()), 0);
  const Result<std::string> out = read_file(folder_->path("out"));
  ASSERT_TRUE(out.ok());
  const Tensor& scores = expected->at(0);
  ASSERT_EQ(out->size(), static_cast<size_t>(scores.bytes()));
  const auto* found = reinterpret_cast<const float*>(out->data());
  for (int64_t i = 0; i < scores.num_elements(); ++i) EXPECT_NEAR(found[i], scores.get(i), 1e-5);

  // An older CPU.
  EXPECT_NE(std::system((at + qemu + "-cpu cortex-a53 ./main < in > out").c_str()), 0);
  EXPECT_NE(read_file(folder_->path("out"))->find("this CPU lacks "), std::string::npos);
}

TEST_F(AArch64Module, IsRefusedHere) {
  const Result<ModuleSummary> built = build();
  if (!check_linkable(Isa::kArm).ok()) {
    EXPECT_ERROR(built,
                 "no modules for AArch64 in this build: aarch64-linux-gnu-gcc was not there");
    return;
  }
  ASSERT_TRUE(built.ok()) << built.error().message();
  EXPECT_ERROR(load_module(path_), "libsmall.so: made for AArch64, this machine is x86-64");
}

}  // namespace
}  // namespace pruner
