#include "target/target.h"

#include <filesystem>

#include "golden.h"
#include "target/host.h"

namespace pruner {
namespace {

TEST(HostTarget, DescribesThisMachine) {
  const Target host = host_target(3);
  EXPECT_EQ(host.backend, Backend::kLlvm);
  EXPECT_EQ(host.device, "host");
  EXPECT_EQ(host.threads, 3);
  EXPECT_FALSE(host.mcpu.empty());
  EXPECT_GT(host.peak_flops, 1e9);
  EXPECT_GE(host.l2_bytes, host.l1_bytes);
  EXPECT_GE(host_target(0).threads, 1);
}

TEST(ParseTarget, KnowsCpus) {
  const Result<Target> haswell = parse_target("llvm -mcpu=haswell", 4);
  ASSERT_TRUE(haswell.ok());
  EXPECT_EQ(haswell->mcpu, "haswell");
  EXPECT_EQ(haswell->vector_bytes, 32);
  EXPECT_EQ(haswell->threads, 4);
  EXPECT_FALSE(haswell->masked_vectors);
  const Result<Target> skylake = parse_target("llvm --mcpu=skylake-avx512", 1);
  ASSERT_TRUE(skylake.ok());
  EXPECT_EQ(skylake->lanes(4), 16);
  EXPECT_EQ(skylake->vector_registers, 32);
  EXPECT_TRUE(skylake->masked_vectors);
  EXPECT_EQ(parse_target("llvm -mcpu=cortex-a76", 1)->vector_bytes, 16);
}

#if defined(__x86_64__)
TEST(ParseTarget, KnowsWhoseInstructionsACpuHas) {
  const Result<Target> neon =
      parse_target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a76 --threads=2", 0);
  ASSERT_TRUE(neon.ok()) << neon.error().message();
  EXPECT_EQ(neon->isa, Isa::kArm);
  EXPECT_EQ(neon->lanes(4), 4);
  EXPECT_EQ(neon->vector_registers, 32);
  EXPECT_EQ(neon->threads, 2);
  EXPECT_EQ(neon->features, "");
  EXPECT_EQ(print(*neon), "llvm -mcpu=cortex-a76 --threads=2");
  EXPECT_EQ(device_fingerprint(*neon), "AArch64 cortex-a76 x2");

  const Result<Target> any = parse_target("llvm -mtriple=arm64-linux-gnu", 1);
  ASSERT_TRUE(any.ok()) << any.error().message();
  EXPECT_EQ(any->isa, Isa::kArm);
  EXPECT_EQ(any->mcpu, "generic");
  EXPECT_EQ(any->vector_registers, 32);
  EXPECT_EQ(print(*any), "llvm -mtriple=aarch64-linux-gnu -mcpu=generic --threads=1");

  EXPECT_EQ(parse_target("llvm -mtriple=x86_64-unknown-linux-gnu", 1)->device, "host");
  EXPECT_EQ(parse_target("llvm -mcpu=haswell", 1)->isa, Isa::kX86);
  EXPECT_ERROR(parse_target("llvm -mtriple=aarch64-linux-gnu -mcpu=haswell", 1),
               "--mcpu=haswell is x86-64, --mtriple is AArch64");
  EXPECT_ERROR(parse_target("llvm -mtriple=aarch64-linux-gnu -mcpu=native", 1), "is x86-64");
  EXPECT_ERROR(parse_target("llvm -mtriple=riscv64-linux-gnu", 1),
               "--mtriple is \"riscv64-linux-gnu\", expected x86_64-linux-gnu or aarch64");
}
#endif

TEST(ParseTarget, ReadsTvmsTargets) {
  const auto target = parse_target("llvm -keys=cpu -link-params=0 -mcpu=skylake-avx512", 2);
  ASSERT_TRUE(target.ok()) << target.error().message();
  EXPECT_EQ(target->mcpu, "skylake-avx512");
  const auto cuda =
      parse_target("cuda -keys=cuda,gpu -arch=sm_80 -model=a100 -thread_warp_size=32", 0);
  ASSERT_TRUE(cuda.ok()) << cuda.error().message();
  EXPECT_EQ(cuda->backend, Backend::kCuda);
  EXPECT_EQ(cuda->device, "a100");
  EXPECT_EQ(parse_target("opencl", 0)->backend, Backend::kOpenCl);
}

TEST(ParseTarget, LetsTheCallersThreadsWin) {
  EXPECT_EQ(parse_target("llvm --threads=5", 0)->threads, 5);
  EXPECT_EQ(parse_target("llvm --threads=5", 2)->threads, 2);
}

TEST(ParseTarget, NamesWhatIsWrong) {
  EXPECT_ERROR(parse_target("", 0), "unknown target \"\", expected llvm, cuda or opencl");
  EXPECT_ERROR(parse_target("metal", 0), "unknown target \"metal\", expected llvm, cuda or opencl");
  EXPECT_ERROR(parse_target("llvm -mcpu=i9", 0),
               "unknown cpu \"i9\", expected native or one of: generic");
  EXPECT_ERROR(parse_target("llvm fast", 0), "\"fast\" is not of the form --name=value");
  EXPECT_ERROR(parse_target("llvm --speed=9", 0),
               "unknown option --speed, expected --mcpu, --threads");
  EXPECT_ERROR(parse_target("llvm --threads=0", 0), "--threads is \"0\", expected 1 to 4096");
  EXPECT_ERROR(parse_target("llvm --threads=2x", 0), "--threads is \"2x\"");
  EXPECT_ERROR(parse_target("llvm --device=nowhere.json", 0), "nowhere.json");
  EXPECT_ERROR(parse_target("llvm --device=a.json --mcpu=haswell", 0), "leave out --mcpu");
}

TEST(PrintTarget, ReadsBack) {
  for (const char* text : {"llvm",
                           "llvm -mcpu=haswell --threads=7",
                           "llvm -mcpu=neoverse-n1 --threads=2",
                           "llvm -mtriple=aarch64-linux-gnu --threads=2",
                           "cuda --model=a100",
                           "opencl"}) {
    const Result<Target> target = parse_target(text, 0);
    ASSERT_TRUE(target.ok()) << text;
    const Result<Target> again = parse_target(print(*target), 0);
    ASSERT_TRUE(again.ok()) << print(*target);
    EXPECT_EQ(print(*again), print(*target));
    EXPECT_EQ(device_fingerprint(*again), device_fingerprint(*target));
    EXPECT_EQ(target_to_json(*again), target_to_json(*target)) << "the caches of this machine stay";
    if (target->backend != Backend::kLlvm) continue;
    EXPECT_EQ(target_to_json(*target_from_json(target_to_json(*again))), target_to_json(*target));
  }
}

TEST(DeviceFingerprint, TellsThreadsAndIsaApart) {
  const std::string host = device_fingerprint(*parse_target("llvm --threads=1", 0));
  EXPECT_NE(host, device_fingerprint(*parse_target("llvm --threads=2", 0)));
  EXPECT_NE(device_fingerprint(*parse_target("llvm -mcpu=x86-64 --threads=1", 0)),
            device_fingerprint(*parse_target("llvm -mcpu=x86-64-v2 --threads=1", 0)));
}

TEST(DeviceFile, OverridesWhatTheCpuHas) {
  const Json json =
      *parse_json(R"({"name": "box", "mcpu": "haswell", "threads": 6, "l3_bytes": 1000})");
  const Result<Target> target = target_from_json(json);
  ASSERT_TRUE(target.ok()) << target.error().message();
  EXPECT_EQ(target->device, "box");
  EXPECT_EQ(target->threads, 6);
  EXPECT_EQ(target->l3_bytes, 1000);
  EXPECT_EQ(target->vector_bytes, 32);
  const Result<Target> again = target_from_json(target_to_json(*target));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(target_to_json(*again), target_to_json(*target));
}

TEST(DeviceFile, NamesWhatIsWrong) {
  const auto read = [](const char* text) { return target_from_json(*parse_json(text)); };
  EXPECT_ERROR(read("[]"), "missing key \"mcpu\"");
  EXPECT_ERROR(read(R"({"mcpu": "i9", "name": "a"})"), "unknown cpu \"i9\"");
  EXPECT_ERROR(read(R"({"mcpu": "haswell"})"), "missing key \"name\"");
  EXPECT_ERROR(read(R"({"mcpu": "haswell", "name": "a", "threads": 0})"), "threads is 0");
  EXPECT_ERROR(read(R"({"mcpu": "haswell", "name": "a", "l1_bytes": -1})"), "l1_bytes is -1");
  EXPECT_ERROR(read(R"({"mcpu": "haswell", "name": "a", "peak_flops": 0})"), "peak_flops is 0");
  EXPECT_ERROR(read(R"({"mcpu": "haswell", "name": "a", "vector_bytes": 24})"),
               "expected 16, 32 or 64");
  EXPECT_ERROR(read(R"({"mcpu": "haswell", "name": "a", "vector_registers": 0})"),
               "vector_registers is 0");
}

TEST(DeviceFile, EveryOneOfTheRepositoryReads) {
  int read = 0;
  for (const auto& file : std::filesystem::directory_iterator(test_path("../devices"))) {
    const std::string path = file.path();
    const Result<Target> target = parse_target("llvm --device=" + path, 0);
    ASSERT_TRUE(target.ok()) << target.error().message();
    EXPECT_EQ(print(*target),
              "llvm --device=" + path + " --threads=" + std::to_string(target->threads));
    ++read;
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace pruner
