#include "target/target.h"

#include "golden.h"
#include "target/device_file.h"
#include "target/gpu_table.h"

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
  const auto unknown = parse_target(
      "cuda -keys=cuda,gpu -arch=sm_37 -max_num_threads=512 -max_threads_per_block=512 "
      "-model=unknown -registers_per_block=32768 -shared_memory_per_block=16384 "
      "-local_memory_per_block=524288 -thread_warp_size=16",
      0);
  ASSERT_TRUE(unknown.ok()) << unknown.error().message();
  EXPECT_EQ(unknown->device, "");
  EXPECT_EQ(unknown->gpu.max_threads_per_block, 512);
  EXPECT_EQ(unknown->gpu.registers_per_block, 32768);
  EXPECT_EQ(unknown->gpu.shared_bytes_per_block, 16384);
  EXPECT_EQ(unknown->gpu.warp_size, 16);
  EXPECT_EQ(print(*unknown),
            "cuda --arch=sm_37 --max_threads_per_block=512 --registers_per_block=32768 "
            "--shared_memory_per_block=16384 --thread_warp_size=16");
  const auto usual =
      parse_target("cuda -keys=cuda,gpu -arch=sm_86 -max_num_threads=1024 -thread_warp_size=32", 0);
  EXPECT_EQ(print(*usual), "cuda --arch=sm_86") << "what the arch has anyway is not printed";
}

TEST(ParseTarget, KnowsGpus) {
  const auto a100 = parse_target("cuda --model=a100_40 --arch=sm_80", 0);
  ASSERT_TRUE(a100.ok()) << a100.error().message();
  EXPECT_TRUE(a100->is_gpu());
  EXPECT_EQ(a100->gpu.sms, 108);
  EXPECT_EQ(a100->gpu.shared_bytes_per_sm, 164 << 10);
  EXPECT_EQ(a100->gpu.dram_bandwidth, 1555e9);
  EXPECT_EQ(print(*a100), "cuda --model=a100_40");
  EXPECT_EQ(device_fingerprint(*a100), "cuda a100_40 sm_80");

  const auto sm86 = parse_target("cuda --arch=sm_86", 0);
  ASSERT_TRUE(sm86.ok()) << sm86.error().message();
  EXPECT_EQ(sm86->gpu.max_threads_per_sm, 1536);
  EXPECT_EQ(sm86->gpu.shared_bytes_per_sm, 100 << 10);
  EXPECT_EQ(sm86->gpu.shared_bytes_per_block, 48 << 10) << "without opt-in";
  EXPECT_EQ(parse_target("cuda --arch=sm_62", 0)->gpu.registers_per_block, 32768);
  EXPECT_EQ(parse_target("cuda", 0)->gpu.psa.glbmem_bandwidth, 1555) << "the a100_40's";

  const auto any = parse_target("opencl", 0);
  ASSERT_TRUE(any.ok());
  EXPECT_EQ(any->backend, Backend::kOpenCl);
  EXPECT_EQ(any->gpu.max_threads_per_block, 256);
  EXPECT_EQ(any->gpu.shared_bytes_per_block, 32 << 10);
  EXPECT_EQ(parse_target("opencl --model=t4", 0)->gpu.max_threads_per_block, 1024);
  EXPECT_EQ(parse_target("opencl --model=t4", 0)->gpu.arch, "") << "OpenCL C has no tensor cores";
}

TEST(ParseTarget, NamesWhatIsWrongWithAGpu) {
  EXPECT_ERROR(parse_target("cuda --model=a1000", 0),
               "cuda: unknown device \"a1000\", expected a FILE.json or one of: a100, a100_40");
  EXPECT_ERROR(parse_target("cuda --arch=sm_10", 0),
               "cuda: unknown arch \"sm_10\", expected one of: sm_35, sm_37");
  for (const char* arch : {"sm_75a", "sm_80a", "sm_89a", "a", "sm_90aa"})
    EXPECT_ERROR(parse_target(std::string("cuda --arch=") + arch, 0), "unknown arch");
  for (const char* arch : {"sm_90a", "sm_100a", "sm_120a"})
    EXPECT_TRUE(parse_target(std::string("cuda --arch=") + arch, 0).ok()) << arch;
  EXPECT_ERROR(parse_target("cuda --model=t4 --arch=sm_80", 0), "\"t4\" is sm_75, --arch is sm_80");
  EXPECT_ERROR(parse_target("cuda --modle=t4", 0), "unknown option --modle, expected --model");
  EXPECT_ERROR(parse_target("cuda --model=t4 --device=k80", 0), "leave out one");
  EXPECT_ERROR(parse_target("cuda --max_num_threads=0", 0),
               "--max_num_threads is \"0\", expected 1");
  EXPECT_ERROR(parse_target("cuda --shared_memory_per_block=32", 0),
               "cuda: shared_bytes_per_block is 32, expected at least 1024");
  EXPECT_ERROR(parse_target("cuda --model=epyc_9004", 0), "\"epyc_9004\" is a CPU, expected a GPU");
  EXPECT_ERROR(parse_target("llvm --device=t4", 0), "llvm: \"t4\" is a GPU, expected a CPU");
  EXPECT_ERROR(parse_target("opencl --device=nowhere.json", 0), "nowhere.json");
}

TEST(GpuArchs, HaveWholeWarpsAndRegistersForABlock) {
  for (const GpuArchRow& row : kGpuArchs) {
    EXPECT_EQ(row.max_threads_per_sm % 32, 0) << row.name;
    EXPECT_GE(row.registers_per_sm, row.registers_per_block) << row.name;
    EXPECT_EQ(row.fp32_lanes_per_sm % row.partitions_per_sm, 0) << row.name;
  }
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
  EXPECT_ERROR(parse_target("llvm", 1 << 30), "llvm: 1073741824 threads, expected 1 to 4096");
  EXPECT_ERROR(parse_target("llvm", -1), "llvm: -1 threads, expected 1 to 4096");
  EXPECT_ERROR(parse_target("llvm --threads=2x", 0), "--threads is \"2x\"");
  EXPECT_ERROR(parse_target("llvm --device=nowhere.json", 0), "nowhere.json");
  EXPECT_ERROR(parse_target("llvm --device=a.json --mcpu=haswell", 0), "leave out --mcpu");
}

TEST(PrintTarget, ReadsBack) {
  for (const char* text : {"llvm",
                           "llvm -mcpu=haswell --threads=7",
                           "llvm -mcpu=neoverse-n1 --threads=2",
                           "llvm -mtriple=aarch64-linux-gnu --threads=2",
                           "llvm --device=epyc_9004 --threads=3",
                           "cuda",
                           "cuda --model=a100",
                           "cuda --arch=sm_89 --max_threads_per_block=256",
                           "opencl --model=l4 --thread_warp_size=16",
                           "opencl"}) {
    const Result<Target> target = parse_target(text, 0);
    ASSERT_TRUE(target.ok()) << text;
    const Result<Target> again = parse_target(print(*target), 0);
    ASSERT_TRUE(again.ok()) << print(*target);
    EXPECT_EQ(print(*again), print(*target));
    EXPECT_EQ(device_fingerprint(*again), device_fingerprint(*target));
    EXPECT_EQ(target_to_json(*again), target_to_json(*target)) << "the caches of this machine stay";
    const Result<Target> read = target_from_json(target_to_json(*again));
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ(target_to_json(*read), target_to_json(*target));
  }
}

TEST(DeviceFingerprint, TellsThreadsAndIsaApart) {
  const std::string host = device_fingerprint(*parse_target("llvm --threads=1", 0));
  EXPECT_NE(host, device_fingerprint(*parse_target("llvm --threads=2", 0)));
  EXPECT_NE(device_fingerprint(*parse_target("llvm -mcpu=x86-64 --threads=1", 0)),
            device_fingerprint(*parse_target("llvm -mcpu=x86-64-v2 --threads=1", 0)));
}

}  // namespace
}  // namespace pruner
