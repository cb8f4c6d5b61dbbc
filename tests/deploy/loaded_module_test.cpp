// label: codegen
#include "deploy/loaded_module.h"

#include <cstdlib>
#include <filesystem>

#include "codegen/loader.h"
#include "golden.h"
#include "pruner/module.h"
#include "pruner/module_file.h"
#include "support/file.h"
#include "tiny_module.h"

namespace pruner {
namespace {

#if !defined(__x86_64__)
#define SKIP_ELSEWHERE GTEST_SKIP() << "the kernels are x86-64 assembly"
#else
#define SKIP_ELSEWHERE
#endif

/// A path of its own in the test's folder, removed at the end.
class ModuleFile {
 public:
  explicit ModuleFile(const std::string& name)
      : path_(testing::TempDir() + "pruner_" + std::to_string(getpid()) + "_" + name) {}
  ~ModuleFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Tensor row(int64_t n, float step) {
  Tensor tensor(DType::kFloat32, {n});
  for (int64_t i = 0; i < n; ++i) tensor.set(i, step * static_cast<float>(i));
  return tensor;
}

TEST(LoadModule, SaysWhatTheModuleTakes) {
  SKIP_ELSEWHERE;
  const ModuleFile file("specs.so");
  const Result<Unit> made = make_tiny_module(file.path());
  ASSERT_TRUE(made.ok()) << made.error().message();
  const Result<LoadedModule> module = load_module(file.path());
  ASSERT_TRUE(module.ok()) << module.error().message();
  ASSERT_EQ(module->inputs().size(), 2u);
  EXPECT_EQ(print(module->inputs()[0]), "x float32 16");
  EXPECT_EQ(print(module->inputs()[1]), "s \"é\\ int64 ");
  ASSERT_EQ(module->outputs().size(), 2u);
  EXPECT_EQ(print(module->outputs()[0]), "y float32 4x4");
  EXPECT_EQ(module->threads(), 2);
  const Result<LoadedModule> single = load_module(file.path(), 1);
  ASSERT_TRUE(single.ok());
  EXPECT_EQ(single->threads(), 1);
}

TEST(LoadedModule, Runs) {
  SKIP_ELSEWHERE;
  const ModuleFile file("runs.so");
  ASSERT_TRUE(make_tiny_module(file.path()).ok());
  Result<LoadedModule> module = load_module(file.path());
  ASSERT_TRUE(module.ok()) << module.error().message();
  const std::vector<Tensor> inputs = {row(16, 3), Tensor(DType::kInt64, {})};
  const Result<std::vector<Tensor>> outputs = module->run(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message();
  for (int64_t i = 0; i < 16; ++i) EXPECT_EQ((*outputs)[0].get(i), 5.0 * static_cast<double>(i));
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ((*outputs)[1].get(i), static_cast<double>(i));
}

TEST(LoadModule, SaysThatAByteIsNotWhatWasWritten) {
  SKIP_ELSEWHERE;
  const ModuleFile file("flipped.so");
  ASSERT_TRUE(make_tiny_module(file.path()).ok());
  const std::string bytes = *read_file(file.path());
  constexpr size_t kMagicBytes = 8, kChecksumBytes = 32;
  ASSERT_GT(bytes.size(), kChecksumBytes);
  constexpr size_t kApart = 13;
  for (size_t at = bytes.size() % kApart; at < bytes.size(); at += kApart) {
    const size_t left = bytes.size() - at;
    // Without the magic it is a module of an older version, as whole as before.
    if (left <= kChecksumBytes && left > kChecksumBytes - kMagicBytes) continue;
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
    ASSERT_TRUE(write_file(file.path(), flipped).ok());
    EXPECT_NE(pruner_check_module_file(file.path().c_str()), nullptr) << "byte " << at;
    if (at % 97 == 0) {
      EXPECT_FALSE(load_module(file.path()).ok()) << "byte " << at;
    }
  }
  std::string flipped = bytes;
  flipped[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(write_file(file.path(), flipped).ok());
  EXPECT_ERROR(load_module(file.path()), "flipped.so: damaged");
  ASSERT_TRUE(write_file(file.path(), bytes).ok());
  EXPECT_TRUE(load_module(file.path()).ok());
}

TEST(LoadModule, TakesModulesWithoutAChecksum) {
  SKIP_ELSEWHERE;
  const ModuleFile file("no_checksum.so");
  ASSERT_TRUE(make_tiny_module(file.path()).ok());
  std::string bytes = *read_file(file.path());
  bytes.resize(bytes.size() - sizeof(PrunerChecksum));
  ASSERT_TRUE(write_file(file.path(), bytes).ok());
  EXPECT_TRUE(load_module(file.path()).ok());
}

TEST(LoadedModule, TakesTimes) {
  SKIP_ELSEWHERE;
  const ModuleFile file("times.so");
  ASSERT_TRUE(make_tiny_module(file.path()).ok());
  Result<LoadedModule> module = load_module(file.path());
  ASSERT_TRUE(module.ok());
  const std::vector<Tensor> inputs = seeded_inputs(module->inputs(), 0);
  const BenchOptions options = {.warm_up = 1, .min_runs = 5, .min_s = 0};
  const Result<BenchResult> bench = module->bench(inputs, options);
  ASSERT_TRUE(bench.ok()) << bench.error().message();
  EXPECT_EQ(bench->runs, 5);
  EXPECT_EQ(bench->threads, 2);
  EXPECT_GT(bench->median_ms, 0);
  EXPECT_GT(bench->mean_ms, 0);
  EXPECT_GE(bench->std_ms, 0);
  const Result<std::vector<KernelTime>> kernels = module->profile(inputs, options);
  ASSERT_TRUE(kernels.ok());
  ASSERT_EQ(kernels->size(), 2u);
  EXPECT_EQ((*kernels)[0].name, "first");
  EXPECT_EQ((*kernels)[0].sketch, "by hand");
  EXPECT_EQ((*kernels)[0].flops, 16);
  EXPECT_EQ((*kernels)[0].bytes, 192);
  EXPECT_EQ((*kernels)[0].precision, "float32");
  EXPECT_EQ((*kernels)[1].name, "second");
  EXPECT_EQ((*kernels)[1].precision, "");
}

TEST(LoadedModule, NamesTheInputThatDoesNotFit) {
  SKIP_ELSEWHERE;
  const ModuleFile file("inputs.so");
  ASSERT_TRUE(make_tiny_module(file.path()).ok());
  Result<LoadedModule> module = load_module(file.path());
  ASSERT_TRUE(module.ok());
  EXPECT_ERROR(module->run(std::vector<Tensor>{}), "expected 2 inputs, found 0");
  const std::vector<Tensor> wrong = {row(8, 1), Tensor(DType::kInt64, {})};
  EXPECT_ERROR(module->run(wrong), "expected x float32 16, found x float32 8");
}

TEST(LoadModule, SaysWhatIsNoModule) {
  SKIP_ELSEWHERE;
  EXPECT_ERROR(load_module("/nowhere/m.so"), "/nowhere/m.so: cannot load: No such file");
  EXPECT_ERROR(load_module(test_path("golden.h")),
               "not a shared library; expected a module made by");

  const ModuleFile file("none.so");
  const Result<std::string> object = assemble(".global other\nother:\n  ret\n");
  ASSERT_TRUE(object.ok()) << object.error().message();
  const ModuleFile part("none.o");
  ASSERT_TRUE(write_file(part.path(), *object).ok());
  ASSERT_TRUE(link_shared_library({part.path()}, file.path(), {"other"}).ok());
  EXPECT_ERROR(load_module(file.path()), "not a pruner module: it has no pruner_module_abi");

  const ModuleFile cut("cut.so");
  ASSERT_TRUE(make_tiny_module(cut.path()).ok());
  std::filesystem::resize_file(cut.path(), std::filesystem::file_size(cut.path()) / 2);
  EXPECT_ERROR(load_module(cut.path()), "truncated; compile it again");
}

TEST(LoadModule, NamesTheCpuFeatureThatIsMissing) {
  SKIP_ELSEWHERE;
  const ModuleFile known("known.so"), missing("missing.so");
  ASSERT_TRUE(make_tiny_module(known.path(), [](ModulePlan& plan) {
                plan.cpu_features = "sse3 never-heard-of sse4.1";
              }).ok());
  const Result<LoadedModule> loaded = load_module(known.path());
  EXPECT_TRUE(loaded.ok()) << loaded.error().message();
  ASSERT_TRUE(make_tiny_module(missing.path(), [](ModulePlan& plan) {
                plan.cpu_features = "sse3 avx512fp16 sse4.1";
              }).ok());
  if (load_module(missing.path()).ok()) GTEST_SKIP() << "a CPU of the newest kind";
  EXPECT_ERROR(load_module(missing.path()), "this CPU lacks avx512fp16, which it was compiled for");
}

TEST(LoadModule, LinksNoLibraryOfOurs) {
  SKIP_ELSEWHERE;
  const ModuleFile file("needs.so");
  ASSERT_TRUE(make_tiny_module(file.path()).ok());
  const std::string check = "! readelf -dW " + file.path() + " | grep NEEDED | grep -v libc.so";
  EXPECT_EQ(std::system(check.c_str()), 0);
  const std::string symbols =
      "! readelf --dyn-syms -W " + file.path() +
      " | awk '$7 != \"UND\" && $5 == \"GLOBAL\" {print $8}' | grep -v '^pruner_module_'";
  EXPECT_EQ(std::system(symbols.c_str()), 0);
  const std::string drivers = "! readelf --dyn-syms -W " + file.path() + " | grep dlopen";
  EXPECT_EQ(std::system(drivers.c_str()), 0) << "the GPU's executor is in a module for CPUs";
}

}  // namespace
}  // namespace pruner
