// label: codegen
// A module from other programs than ours: plain C, C++ and Python.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "deploy/loaded_module.h"
#include "deploy/module.h"
#include "golden.h"
#include "graph/networks/network_builder.h"
#include "pruner/module.h"
#include "shell.h"
#include "support/file.h"
#include "tiny_module.h"

namespace pruner {
namespace {

class Languages : public testing::Test {
 protected:
  void SetUp() override {
#if !defined(__x86_64__)
    GTEST_SKIP() << "the kernels are x86-64 assembly";
#endif
    module_ = folder_->path("tiny.so");
    const Result<Unit> made = make_tiny_module(module_);
    ASSERT_TRUE(made.ok()) << made.error().message();
  }
  std::string build_and_run(const std::string& compiler, const std::string& source) {
    const std::string root = test_path("..");
    const std::string program = folder_->path("program");
    return output_of(compiler + " -Wall -Wextra -I" + root + "/include " + root + "/examples/" +
                     source + " -ldl -o " + program + " && " + program + " " + module_);
  }

  const Result<TemporaryFolder> folder_ = TemporaryFolder::make("");
  std::string module_;
};

TEST_F(Languages, RunFromC) {
  if (output_of("cc --version >/dev/null") != "status 0") GTEST_SKIP() << "no cc here";
  EXPECT_EQ(build_and_run("cc", "run_module.c"),
            "input x: 16\ninput s \"é\\:\noutput y: 4 4\n  starts with 1\noutput c: 3\n  starts "
            "with 0\nstatus 0");
}

TEST_F(Languages, RunFromCpp) {
  if (output_of("c++ --version >/dev/null") != "status 0") GTEST_SKIP() << "no c++ here";
  // Its second input is of integers, which the example does not fill.
  EXPECT_EQ(build_and_run("c++ -std=c++17", "run_module.cpp"),
            "input s \"é\\ is not of floats\nstatus 256");
}

// If a CPU lacks the instructions of SSE4.1 and F16C, the module has functions of its own.
TEST(OldCpus, RunModulesInProgramsWithoutLibmAndLibgcc) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "the module is for x86-64";
#endif
  if (output_of("cc --version >/dev/null") != "status 0") GTEST_SKIP() << "no cc here";
  NetworkBuilder b("old", NetworkOptions());
  const ValueId x = b.input("x", {4, 33}, DType::kFloat32);
  const ValueId h = b.input("h", {4, 33}, DType::kFloat16);
  const ValueId wide = b.node("Cast", {h}, {{"to", std::string("float32")}});
  const ValueId sum = b.node("Mul", {b.node("Add", {x, wide}), b.scalar(7)});
  const Graph graph = b.finish({{b.node("Round", {sum}), "rounded"},
                                {b.node("Floor", {sum}), "floor"},
                                {b.node("Ceil", {sum}), "ceil"},
                                {b.node("Cast", {sum}, {{"to", std::string("float16")}}), "half"}});
  const TemporaryFolder folder = *TemporaryFolder::make("");
  const std::string path = folder.path("old.so"), program = folder.path("load");
  const Target target = *parse_target("llvm -mcpu=x86-64", 1);
  const Result<Partition> cut = partition(graph, target);
  ASSERT_TRUE(cut.ok()) << cut.error().message();
  const Result<ModuleSummary> built = build_module(*cut, target, nullptr, {.work_dir = ""}, path);
  ASSERT_TRUE(built.ok()) << built.error().message();
  const char source[] = R"(
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char** argv) {
  void* module = dlopen(argv[argc - 1], RTLD_NOW);
  puts(module == NULL ? dlerror() : "loaded");
  return 0;
}
)";
  ASSERT_TRUE(write_file(program + ".c", source).ok());
  EXPECT_EQ(output_of("cc " + program + ".c -o " + program + " -ldl && " + program + " " + path),
            "loaded\nstatus 0");
  Result<LoadedModule> module = load_module(path);
  ASSERT_TRUE(module.ok()) << module.error().message();
  const std::vector<Tensor> inputs = seeded_inputs(module->inputs(), 3);
  const auto outputs = module->run(inputs), expected = interpret_graph(graph, inputs);
  ASSERT_TRUE(outputs.ok() && expected.ok());
  for (size_t o = 0; o < expected->size(); ++o)
    for (int64_t e = 0; e < (*expected)[o].num_elements(); ++e)
      ASSERT_EQ((*outputs)[o].get(e), (*expected)[o].get(e)) << o << " " << e;
}

// Static libraries in one program: each has its own functions, plan, kernels and weights.
TEST_F(Languages, LinkTwoStaticLibraries) {
  if (output_of("cc --version >/dev/null") != "status 0") GTEST_SKIP() << "no cc here";
  for (const auto& [name, scale] : {std::pair("libfirst.a", 1.0F), {"2nd net.a", 10.0F}}) {
    const std::string path = folder_->path(name), library = static_name(path);
    const Result<Unit> made = make_tiny_module(path, nullptr, scale);
    ASSERT_TRUE(made.ok()) << made.error().message();
    ASSERT_TRUE(write_file(folder_->path(library + ".h"), static_header(library)).ok());
  }
  const std::string program = R"(
#include <stdio.h>
#include "first.h"
#include "module_2nd_net.h"
#define RUN(net)                                                             \
  do {                                                                        \
    PrunerModule* module = net##_create(0);                                  \
    if (module == NULL || net##_run(module, inputs, outputs) != 0) return 1; \
    printf("%d %s %g %g\n", net##_abi(), net##_input(0)->name, y[1], y[15]); \
    net##_destroy(module);                                                   \
  } while (0)
int main(void) {
  float x[16] = {0}, y[16], c[3];
  int64_t s = 0;
  const void* inputs[] = {x, &s};
  void* outputs[] = {y, c};
  RUN(first);
  RUN(module_2nd_net);
  return 0;
}
)";
  ASSERT_TRUE(write_file(folder_->path("two.c"), program).ok());
  const std::string in_folder = "cd '" + folder_->path("") + "' && ";
  const std::string abi = std::to_string(PRUNER_MODULE_ABI);
  const std::string expected = abi + " x 2 30\n" + abi + " x 20 300\nstatus 0";
  for (const std::string language : {"cc", "c++ -x c++"}) {
    const std::string compile =
        language + " -Wall -Wextra -I" + test_path("..") +
        "/include two.c -x none libfirst.a '2nd net.a' -ldl -pthread -o two";
    EXPECT_EQ(output_of(in_folder + compile + " && ./two"), expected) << language;
  }
}

// OpenMP's threads call modules, an instance each, and have loops of their own in between.
TEST_F(Languages, RunBesideOpenMp) {
  if (output_of("c++ --version >/dev/null") != "status 0") GTEST_SKIP() << "no c++ here";
  const std::string program = R"(
#include <cstdint>
#include <cstdio>
#include <string>
#include "pruner/module.hpp"
int main(int, char** args) {
  int wrong = 0;
  double sum = 0;
#pragma omp parallel for num_threads(4) reduction(+ : wrong)
  for (int i = 0; i < 16; i++) {
    std::string error;
    auto module = pruner::Module::load(args[1], 2, &error);
    float x[16], y[16], c[3];
    int64_t s = 0;
    for (int k = 0; k < 16; k++) x[k] = i + k;
    const void* inputs[] = {x, &s};
    void* outputs[] = {y, c};
    for (int run = 0; run < 20; run++) {
      if (!module || !module->run(inputs, outputs)) { wrong++; continue; }
      for (int k = 0; k < 16; k++) wrong += y[k] != x[k] + 2 * k;
    }
  }
  std::string error;
  auto module = pruner::Module::load(args[1], 2, &error);
  for (int run = 0; run < 20; run++) {
    float x[16] = {1}, y[16], c[3];
    int64_t s = 0;
    const void* inputs[] = {x, &s};
    void* outputs[] = {y, c};
#pragma omp parallel for num_threads(4) reduction(+ : sum)
    for (int i = 0; i < 1000; i++) sum += 1;
    if (!module->run(inputs, outputs) || y[0] != 1) wrong++;
  }
  std::printf("%d wrong, sum %g\n", wrong, sum);
}
)";
  ASSERT_TRUE(write_file(folder_->path("beside.cpp"), program).ok());
  const std::string built = folder_->path("beside");
  const std::string compile = "c++ -std=c++17 -fopenmp -I" + test_path("..") + "/include " +
                              folder_->path("beside.cpp") + " -ldl -o " + built;
  EXPECT_EQ(output_of(compile + " && " + built + " " + module_), "0 wrong, sum 20000\nstatus 0");
}

TEST_F(Languages, RunFromPython) {
  std::string python;
  for (const char* each : {"python3", "/usr/bin/python3"}) {
    if (output_of(std::string(each) + " -c 'import numpy' >/dev/null 2>&1") == "status 0")
      python = each;
  }
  if (python.empty()) GTEST_SKIP() << "no numpy here";
  const std::string program = R"(
import sys, numpy as np, pruner
m = pruner.Module(sys.argv[1], threads=1)
x = np.arange(16.0)
y, c = m(x, 0)
assert m.threads == 1 and (y.ravel() == 3 * x).all() and c.tolist() == [0, 1, 2]
assert (m.run({m.inputs[0].name: x, m.inputs[1].name: 0})["y"] == y).all()
assert [k.name for k in m.profile(x, 0)] == ["first", "second"] and m.bench(x, 0, runs=2) > 0
for call in (lambda: m(x[:3], 0), lambda: m(x), lambda: pruner.Module(sys.argv[1] + "x")):
    try: call()
    except (ValueError, TypeError, OSError) as error: print(error)
)";
  const std::string text =
      output_of("PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=" + test_path("../python") + " " + python +
                " -c '" + program + "' " + module_);
  EXPECT_EQ(text,
            "expected x float32 16, found x float64 3\n"
            "expected inputs x float32 16, s \"é\\ int64 ; found 1 by position\n" +
                module_ + "x: cannot open shared object file: No such file or directory\nstatus 0");
}

// `kVersion3` is the C source of a module from before the table of functions, and no more.
constexpr const char* kVersion3 = R"(
#include <stddef.h>
#include <stdint.h>
typedef struct { const char* name; int dtype; int32_t rank; const int64_t* shape; } Spec;
typedef struct {
  const char* name;
  int64_t num_inputs; const Spec* inputs;
  int64_t num_outputs; const Spec* outputs;
  int64_t first_kernel, num_kernels;
} Phase;
static const int64_t shape[] = {3};
static const Spec x = {"x", 0, 1, shape}, y = {"y", 0, 1, shape};
static const Phase phase = {"main", 1, &x, 1, &y, 0, 0};
int32_t pruner_module_abi(void) { return 3; }
void* pruner_module_create(int32_t threads) { (void)threads; return (void*)&phase; }
void pruner_module_destroy(void* module) { (void)module; }
const char* pruner_module_error(void) { return ""; }
int32_t pruner_module_threads(const void* module) { (void)module; return 1; }
int32_t pruner_module_num_phases(void) { return 1; }
const Phase* pruner_module_phase(int32_t i) { return i == 0 ? &phase : NULL; }
int32_t pruner_module_run_phase(void* m, int32_t p, const float* const* in, float* const* out, double* s) {
  (void)m; (void)p; (void)s;
  for (int i = 0; i < 3; i++) out[0][i] = 2 * in[0][i];
  return 0;
}
int32_t pruner_module_num_states(void) { return 0; }
const Spec* pruner_module_state(int32_t i) { (void)i; return NULL; }
int32_t pruner_module_read_state(const void* m, int32_t i, void* to) { (void)m; (void)i; (void)to; return 1; }
int32_t pruner_module_write_state(void* m, int32_t i, const void* from) { (void)m; (void)i; (void)from; return 1; }
int32_t pruner_module_reset(void* m) { (void)m; return 0; }
int32_t pruner_module_num_kernels(void) { return 0; }
const void* pruner_module_kernel(int32_t i) { (void)i; return NULL; }
const char* pruner_module_kernel_precision(int32_t i) { (void)i; return ""; }
)";

TEST_F(Languages, ModulesOfVersion3StillRun) {
  if (output_of("cc --version >/dev/null") != "status 0") GTEST_SKIP() << "no cc here";
  const std::string source = folder_->path("old.c"), path = folder_->path("old.so");
  ASSERT_TRUE(write_file(source, kVersion3).ok());
  ASSERT_EQ(output_of("cc -shared -fPIC " + source + " -o " + path), "status 0");
  Result<LoadedModule> module = load_module(path);
  ASSERT_TRUE(module.ok()) << module.error().message();
  EXPECT_TRUE(module->symbols().empty());
  Tensor x(DType::kFloat32, {3});
  x.set(1, 4);
  const auto y = module->run(std::vector<Tensor>{x});
  ASSERT_TRUE(y.ok()) << y.error().message();
  EXPECT_EQ((*y)[0].get(1), 8);
}

}  // namespace
}  // namespace pruner
