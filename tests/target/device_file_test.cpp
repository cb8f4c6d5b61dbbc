#include "target/device_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "golden.h"
#include "target/gpu_table.h"
#include "target/tensor_rates.h"

namespace pruner {
namespace {

Result<Target> read(const char* text) { return target_from_json(*parse_json(text)); }

TEST(DeviceFile, OverridesWhatTheCpuHas) {
  const Result<Target> target =
      read(R"({"name": "box", "mcpu": "haswell", "threads": 6, "l3_bytes": 1000})");
  ASSERT_TRUE(target.ok()) << target.error().message();
  EXPECT_EQ(target->device, "box");
  EXPECT_EQ(target->threads, 6);
  EXPECT_EQ(target->l3_bytes, 1000);
  EXPECT_EQ(target->vector_bytes, 32);
  const Result<Target> again = target_from_json(target_to_json(*target));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(target_to_json(*again), target_to_json(*target));
}

TEST(DeviceFile, HasTheRatesOfUnits) {
  const Result<Target> typical = read(R"({"name": "box", "mcpu": "sapphirerapids"})");
  ASSERT_TRUE(typical.ok()) << typical.error().message();
  EXPECT_EQ(typical->dots.int8_tile, 32);
  const Result<Target> probed = read(
      R"({"name": "box", "mcpu": "sapphirerapids", "dots": {"int8_tile": 28.4, "int8": 0.5,
          "bfloat16_tile": 0}})");
  ASSERT_TRUE(probed.ok()) << probed.error().message();
  EXPECT_EQ(probed->dots.int8_tile, 28.4);
  EXPECT_EQ(probed->dots.int8, 0.5);
  EXPECT_EQ(probed->dots.bfloat16_tile, 0);
  EXPECT_EQ(probed->dots.bfloat16, 0.5);
  const Result<Target> again = target_from_json(target_to_json(*probed));
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->dots.int8, 0.5);
  EXPECT_EQ(again->dots.bfloat16_tile, 0);
  EXPECT_EQ(target_to_json(*again), target_to_json(*probed));
}

TEST(DeviceFile, HasNoUnitWithoutItsFeatures) {
  const Result<Target> hidden = read(
      R"({"name": "box", "mcpu": "sapphirerapids", "features": "+avx512f,-amx-int8,-avx512bf16"})");
  ASSERT_TRUE(hidden.ok()) << hidden.error().message();
  EXPECT_EQ(hidden->dots.int8, 4) << "of which nothing is said";
  EXPECT_EQ(hidden->dots.int8_tile, 0);
  EXPECT_EQ(hidden->dots.bfloat16, 0);
  EXPECT_EQ(hidden->dots.bfloat16_tile, 16);
}

TEST(DeviceFile, NamesWhatIsWrongWithTheRatesOfUnits) {
  const auto with = [](const char* mcpu, const char* dots) {
    return read(fmt::format(R"({{"name": "a", "mcpu": "{}", "dots": {}}})", mcpu, dots).c_str());
  };
  EXPECT_ERROR(with("znver4", "2"), "dots is 2, expected an object");
  EXPECT_ERROR(with("znver4", R"({"int8": -1})"),
               "dots: int8 is -1, expected a number from 0 to 1024");
  EXPECT_ERROR(with("znver4", R"({"int8": 1025})"), "dots: int8 is 1025, expected a number");
  EXPECT_ERROR(with("znver4", R"({"int8": "4"})"), "dots: int8 is \"4\", expected a number");
  EXPECT_ERROR(with("znver4", R"({"int4": 1})"),
               "unknown field \"int4\", expected one of: bfloat16, int8");
  EXPECT_ERROR(with("znver4", R"({"int8_tile": 28})"),
               "dots: int8_tile is 28, but this CPU lacks amx-tile amx-int8");
  EXPECT_TRUE(with("haswell", R"({"int8_tile": 0})").ok());
}

TEST(DeviceFile, HasTheNumbersOfADraft) {
  const Result<Target> fitted = read(
      R"({"name": "box", "mcpu": "haswell", "draft": {"spill_cycles": 4.5, "exposed_share": 1}})");
  ASSERT_TRUE(fitted.ok()) << fitted.error().message();
  EXPECT_EQ(fitted->draft.spill_cycles, 4.5);
  EXPECT_EQ(fitted->draft.exposed_share, 1);
  EXPECT_EQ(fitted->draft.entry_cycles, CpuModel().entry_cycles) << "of which nothing is said";
  const Json json = target_to_json(*fitted);
  EXPECT_EQ(json.at("draft").size(), 2) << "what is the usual one is not written";
  const Result<Target> again = target_from_json(json);
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(again->draft, fitted->draft);
  EXPECT_FALSE(target_to_json(*read(R"({"name": "a", "mcpu": "haswell"})")).contains("draft"));
}

TEST(DeviceFile, NamesWhatIsWrongWithTheNumbersOfADraft) {
  const auto with = [](const char* draft) {
    return read(fmt::format(R"({{"name": "a", "mcpu": "haswell", "draft": {}}})", draft).c_str());
  };
  EXPECT_ERROR(with("2"), "draft is 2, expected an object");
  EXPECT_ERROR(with(R"({"spill_cycle": 1})"),
               "draft: unknown field \"spill_cycle\", expected one of");
  EXPECT_ERROR(with(R"({"spill_cycles": 0})"), "draft: spill_cycles is 0, expected a number from");
  EXPECT_ERROR(with(R"({"spill_cycles": "1"})"), "draft: spill_cycles is \"1\", expected a number");
  EXPECT_ERROR(with(R"({"exposed_share": 1.5})"),
               "draft: exposed_share is 1.5, expected a number from 0.001 to 1");
}

TEST(DeviceFile, OverridesWhatTheArchHas) {
  const Result<Target> target = read(
      R"({"name": "box", "backend": "cuda", "arch": "sm_89", "sms": 10, "l2_bytes": 1000,
          "max_blocks_per_sm": 8, "peak_flops": 2e12, "dram_bandwidth": 100e9, "clock_hz": 1e9})");
  ASSERT_TRUE(target.ok()) << target.error().message();
  EXPECT_EQ(target->gpu.max_threads_per_sm, 1536);
  EXPECT_EQ(target->gpu.max_blocks_per_sm, 8);
  EXPECT_EQ(target->gpu.l2_bytes, 1000);
  EXPECT_DOUBLE_EQ(target->gpu.psa.peak_performance, 2000) << "its own, in GFLOP/s";
  EXPECT_DOUBLE_EQ(target->gpu.psa.glbmem_bandwidth, 100);
  EXPECT_EQ(target->gpu.psa.sm_nums, 10);
  EXPECT_EQ(target->gpu.psa.vec_len, 11);
  EXPECT_DOUBLE_EQ(target->gpu.l2_bandwidth, 300e9);
  EXPECT_DOUBLE_EQ(target->gpu.shared_bandwidth, 10 * 128 * 1e9);
}

// A card's own rates go before its architecture's; they are written as they are read.
TEST(DeviceFile, HasTheRatesOfTensorCores) {
  const auto read = [](const std::string& rates) {
    return target_from_json(
        *parse_json(R"({"name": "a", "backend": "cuda", "arch": "sm_86")" + rates + "}"));
  };
  const Result<Target> arch = read("");
  ASSERT_TRUE(arch.ok()) << arch.error().message();
  EXPECT_EQ(arch->gpu.tensor_rates.f16_f32, 1024);
  EXPECT_EQ(arch->gpu.most_shared_bytes_per_block, 99 << 10);
  EXPECT_EQ(compute_capability(arch->gpu), 86);
  const Result<Target> card = read(R"(, "tensor_rates": {"f16_f32": 512})");
  ASSERT_TRUE(card.ok()) << card.error().message();
  EXPECT_EQ(card->gpu.tensor_rates.f16_f32, 512);
  EXPECT_EQ(card->gpu.tensor_rates.s8, 2048);
  EXPECT_EQ(target_to_json(*card)["tensor_rates"]["f16_f32"], 512);
  EXPECT_EQ(compute_capability(Gpu{}), 0);
  const Result<Target> none = read(R"(, "tensor_rates": {"s8": 0})");
  ASSERT_TRUE(none.ok()) << none.error().message();
  EXPECT_EQ(none->gpu.tensor_rates.s8, 0);
  EXPECT_EQ(target_from_json(target_to_json(*none))->gpu.tensor_rates.s8, 0);
  EXPECT_ERROR(read(R"(, "tensor_rates": 3)"), "tensor_rates is 3, expected an object");
  EXPECT_ERROR(read(R"(, "tensor_rates": {"f32": 3})"), "tensor_rates: unknown field \"f32\"");
  EXPECT_ERROR(read(R"(, "tensor_rates": {"s8": -1})"),
               "tensor_rates: s8 is -1, expected a number from 0 to ");
  EXPECT_ERROR(read(R"(, "tensor_rates": {"s8": "2"})"), "tensor_rates: s8 is \"2\", expected");
}

TEST(DeviceFile, HasNoTensorCoresThatItsArchLacks) {
  const Result<Target> plain = read(R"({"name": "a", "backend": "cuda"})");
  ASSERT_TRUE(plain.ok()) << plain.error().message();
  EXPECT_EQ(plain->gpu.most_shared_bytes_per_block, 48 << 10);
  for (const TensorRateRow& row : kTensorRates)
    EXPECT_EQ(plain->gpu.tensor_rates.*row.rate, 0) << row.name;
  EXPECT_FALSE(target_to_json(*plain).contains("tensor_rates"));
  EXPECT_ERROR(
      read(R"({"name": "a", "backend": "cuda", "arch": "sm_75", "tensor_rates": {"bf16": 1024}})"),
      "bf16 is 1024, but sm_75 lacks it: sm_80 is the first that has it");
  EXPECT_ERROR(read(R"({"name": "a", "backend": "cuda", "tensor_rates": {"s8": 1}})"),
               "s8 is 1, but a device without an arch lacks it");
}

TEST(DeviceFile, HasNoLessSharedMemoryWithOptInThanWithout) {
  const Result<Target> more =
      read(R"({"name": "a", "backend": "cuda", "shared_bytes_per_block": 65536})");
  ASSERT_TRUE(more.ok()) << more.error().message();
  EXPECT_EQ(more->gpu.most_shared_bytes_per_block, 65536);
  EXPECT_ERROR(
      read(R"({"name": "a", "backend": "cuda", "most_shared_bytes_per_block": 1024})"),
      "most_shared_bytes_per_block is 1024, expected no less than shared_bytes_per_block, 49152");
}

TEST(DeviceFile, EachNumberHasARange) {
  for (const char* base : {R"({"mcpu": "haswell", "name": "a", )",
                           R"({"backend": "cuda", "arch": "sm_80", "name": "a", )"}) {
    const Json written =
        target_to_json(*target_from_json(*parse_json(base + std::string(R"("source": ""})"))));
    for (const auto& [field, value] : written.items()) {
      if (!value.is_number()) continue;
      for (const char* absurd :
           {"0", "-1", "1e300", "9223372036854775808", "-9223372036854775808", "null"}) {
        const std::string text = base + ("\"" + field + "\": ") + absurd + "}";
        EXPECT_ERROR(target_from_json(*parse_json(text)), field + " is ") << text;
      }
    }
  }
}

TEST(DeviceFile, ABlockHoldsWhatSchedulesNeed) {
  const auto with = [](const std::string& fields) {
    return target_from_json(*parse_json(R"({"name": "a", "backend": "cuda", )" + fields + "}"));
  };
  EXPECT_ERROR(with(R"("shared_bytes_per_block": 32)"),
               "shared_bytes_per_block is 32, expected at least 1024");
  EXPECT_ERROR(with(R"("registers_per_block": 3)"), "registers_per_block is 3, expected at least");
  EXPECT_ERROR(with(R"("max_registers_per_thread": 33)"),
               "max_registers_per_thread is 33, expected");
  EXPECT_ERROR(with(R"("max_threads_per_block": 16)"),
               "max_threads_per_block is 16, expected at least 32");
  EXPECT_ERROR(with(R"("warp_size": 1000)"), "warp_size is 1000, expected at most 128");
  EXPECT_TRUE(with(R"("warp_size": 16, "max_threads_per_block": 16)").ok());
}

TEST(DeviceFile, NamesWhatIsWrong) {
  EXPECT_ERROR(read("[]"), "found array, expected an object");
  EXPECT_ERROR(read("{}"), "missing key \"mcpu\"");
  EXPECT_ERROR(read(R"({"mcpu": 5})"), "mcpu is 5, expected a text");
  EXPECT_ERROR(read(R"({"mcpu": "i9", "name": "a"})"), "unknown cpu \"i9\"");
  EXPECT_ERROR(read(R"({"mcpu": "haswell"})"), "missing key \"name\"");
  EXPECT_ERROR(read(R"({"mcpu": "haswell", "name": "a", "threads": 0})"),
               "threads is 0, expected a whole number from 1 to 4096");
  EXPECT_ERROR(read(R"({"mcpu": "haswell", "name": "a", "l1_bytes": -1})"), "l1_bytes is -1");
  EXPECT_ERROR(read(R"({"mcpu": "haswell", "name": "a", "peak_flops": 0})"),
               "peak_flops is 0, expected a number from 1000 to 1e+18");
  EXPECT_ERROR(read(R"({"mcpu": "haswell", "name": "a", "vector_bytes": 24})"),
               "expected 16, 32 or 64");
  EXPECT_ERROR(read(R"({"mcpu": "haswell", "name": "a", "vector_registers": 0})"),
               "vector_registers is 0");
  EXPECT_ERROR(read(R"({"mcpu": "haswell", "name": "a", "vector_registers": 2})"),
               "vector_registers is 2, expected a whole number from 8 to 1024");
  EXPECT_ERROR(read(R"({"mcpu": "haswell", "name": "a", "masked_vectors": 1})"),
               "masked_vectors is 1, expected true or false");
  EXPECT_ERROR(read(R"({"mcpu": "haswell", "name": "a", "isa": "mips"})"),
               "isa is \"mips\", expected x86-64 or AArch64");
  EXPECT_ERROR(read(R"({"mcpu": "haswell", "name": "a", "peak": 1})"),
               "unknown field \"peak\", expected one of: name, source, mcpu");
}

TEST(DeviceFile, NamesWhatIsWrongWithAGpu) {
  EXPECT_ERROR(read(R"({"name": "a", "backend": "metal"})"),
               "backend is \"metal\", expected llvm, cuda or opencl");
  EXPECT_ERROR(read(R"({"name": "a", "backend": "cuda", "arch": "sm_1"})"),
               "unknown arch \"sm_1\", expected one of: sm_35");
  EXPECT_ERROR(read(R"({"name": "a", "backend": "cuda", "sms": "many"})"),
               "sms is \"many\", expected a whole number from 1 to 65536");
  EXPECT_ERROR(read(R"({"name": "a", "backend": "cuda", "sms": 1.5})"), "sms is 1.5, expected");
  EXPECT_ERROR(read(R"({"name": "a", "backend": "cuda", "mcpu": "haswell"})"),
               "unknown field \"mcpu\"");
  EXPECT_ERROR(read(R"({"name": "a", "backend": "cuda", "psa": 3})"),
               "psa is 3, expected an object");
  EXPECT_ERROR(read(R"({"name": "a", "backend": "cuda", "psa": {"sm_nums": 0}})"),
               "psa: sm_nums is 0, expected a whole number from 1 to 65536");
  EXPECT_ERROR(read(R"({"name": "a", "backend": "cuda", "psa": {"peak": 1}})"),
               "psa: unknown field \"peak\", expected one of: peak_performance");
}

TEST(DeviceFiles, AreThoseOfTheRepository) {
  size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(test_path("../devices"))) {
    const std::string name = file.path().stem();
    const DeviceFile* known = find_device_file(name);
    ASSERT_NE(known, nullptr) << name;
    EXPECT_EQ(known->text, *read_file(file.path()));
    ++files;
  }
  EXPECT_EQ(device_files().size(), files);
}

TEST(DeviceFiles, EachReadsAndSaysWhereItIsFrom) {
  for (const DeviceFile& file : device_files()) {
    const std::string name(file.name);
    const Result<Target> target = read_device(name);
    ASSERT_TRUE(target.ok()) << target.error().message();
    EXPECT_GT(target->source.size(), 20u) << name;
    const Json json = *parse_json(file.text);
    EXPECT_EQ(json["name"], name);
    // The written JSON reads as the same device.
    const Json written = target_to_json(*target);
    const Result<Target> again = target_from_json(written);
    ASSERT_TRUE(again.ok()) << again.error().message();
    EXPECT_EQ(target_to_json(*again), written);
    const std::string text = (target->is_gpu() ? "cuda --model=" : "llvm --device=") + name;
    const std::string threads = " --threads=" + std::to_string(target->threads);
    EXPECT_EQ(print(*parse_target(text, 0)), text + (target->is_gpu() ? "" : threads));
  }
}

TEST(DeviceFiles, HaveTheNumbersPublishedWithPruner) {
  struct Published {
    const char* name;
    double peak_performance, glbmem_bandwidth;
    int sm_nums;
  };
  for (const Published& row : {Published{"k80", 8226, 480, 26},
                               Published{"t4", 8141, 320, 40},
                               Published{"titanv", 14900, 651, 80},
                               Published{"orin", 2660, 204, 16},
                               Published{"a100", 19490, 1935, 108},
                               Published{"a100_40", 19490, 1555, 108}}) {
    const Result<Target> target = read_device(row.name);
    ASSERT_TRUE(target.ok()) << target.error().message();
    const DeviceAbstraction& psa = target->gpu.psa;
    EXPECT_EQ(psa.peak_performance, row.peak_performance) << row.name;
    EXPECT_EQ(psa.glbmem_bandwidth, row.glbmem_bandwidth) << row.name;
    EXPECT_EQ(psa.sm_nums, row.sm_nums) << row.name;
    EXPECT_EQ(psa.vec_len, 11);
    EXPECT_EQ(psa.active_blocks_per_sm, 1);
    EXPECT_EQ(psa.arch_sm_partition, 4);
    EXPECT_EQ(psa.arch_warp_size, 32);
    EXPECT_EQ(psa.reg_cap, 128);
  }
}

// GeForce cards sum in float32 at half the rate; V100 and TITAN V have no instruction of ours.
TEST(DeviceFiles, OfGpusHaveTheRatesOfTensorCoresAndSharedMemory) {
  struct Row {
    const char* name;
    int64_t most_shared_kib;
    double f16_f32, f16_f16, bf16, tf32, s8;
  };
  for (const Row& row : {Row{"k80", 48, 0, 0, 0, 0, 0},
                         Row{"v100", 96, 0, 0, 0, 0, 0},
                         Row{"titanv", 96, 0, 0, 0, 0, 0},
                         Row{"t4", 64, 1024, 1024, 0, 0, 2048},
                         Row{"a100", 163, 2048, 2048, 2048, 1024, 4096},
                         Row{"a100_40", 163, 2048, 2048, 2048, 1024, 4096},
                         Row{"rtx3080", 99, 512, 1024, 512, 256, 2048},
                         Row{"orin", 163, 2048, 2048, 2048, 1024, 4096},
                         Row{"rtx4090", 99, 512, 1024, 512, 256, 2048},
                         Row{"l4", 99, 1024, 1024, 1024, 512, 2048},
                         Row{"h100", 227, 2620, 2620, 2620, 1310, 5240},
                         Row{"h200", 227, 2620, 2620, 2620, 1310, 5240}}) {
    const Gpu gpu = read_device(row.name)->gpu;
    EXPECT_EQ(gpu.most_shared_bytes_per_block, row.most_shared_kib << 10) << row.name;
    EXPECT_EQ(gpu.tensor_rates.f16_f32, row.f16_f32) << row.name;
    EXPECT_EQ(gpu.tensor_rates.f16_f16, row.f16_f16) << row.name;
    EXPECT_EQ(gpu.tensor_rates.bf16, row.bf16) << row.name;
    EXPECT_EQ(gpu.tensor_rates.tf32, row.tf32) << row.name;
    EXPECT_EQ(gpu.tensor_rates.s8, row.s8) << row.name;
  }
}

TEST(DeviceFiles, OfGpusHaveTheirPeakByLanesAndClock) {
  int gpus = 0;
  for (const DeviceFile& file : device_files()) {
    const Target target = *read_device(std::string(file.name));
    if (!target.is_gpu()) continue;
    const Gpu& gpu = target.gpu;
    const double peak = 2.0 * gpu.sms * gpu.fp32_lanes_per_sm * gpu.clock_hz;
    EXPECT_NEAR(gpu.peak_flops / peak, 1, 0.01) << file.name;
    ++gpus;
  }
  EXPECT_EQ(gpus, 12);
}

TEST(ReadDevice, TakesANameOrAPath) {
  const std::string path = test_path("../devices/t4.json");
  const Result<Target> file = read_device(path);
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_EQ(file->device, path);
  EXPECT_EQ(file->gpu.arch, "sm_75");
  EXPECT_EQ(print(*parse_target("cuda --device=" + path, 0)),
            "cuda --device=" + path + " --arch=sm_75");
  EXPECT_ERROR(parse_target("cuda --thread_warp_size=8 --device=" + path, 0),
               "--device has its own limits, leave out --thread_warp_size");
  EXPECT_ERROR(read_device("t5"), "unknown device \"t5\", expected a FILE.json or one of: a100");
  EXPECT_ERROR(read_device("t5.json"), "t5.json");

  const std::string bad = (std::filesystem::temp_directory_path() /
                           ("pruner_device_" + std::to_string(getpid()) + ".json"))
                              .string();
  ASSERT_TRUE(write_file(bad, R"({"name": "a", "backend": "cuda", "sms": []})").ok());
  EXPECT_ERROR(read_device(bad), bad + ": sms is [], expected a whole number");
  ASSERT_TRUE(write_file(bad, "{").ok());
  EXPECT_ERROR(read_device(bad), bad + ": ");
  std::filesystem::remove(bad);
}

TEST(WithAbstraction, ChangesTheNumbersOfTheAnalysisAlone) {
  const Target a100 = *parse_target("cuda --model=a100", 0);
  const Result<Target> as_k80 = with_abstraction(a100, "k80");
  ASSERT_TRUE(as_k80.ok()) << as_k80.error().message();
  EXPECT_EQ(as_k80->gpu.psa.sm_nums, 26);
  EXPECT_EQ(as_k80->gpu.sms, 108);
  EXPECT_EQ(as_k80->drafted_gpu().sms, 13);
  EXPECT_EQ(a100.drafted_gpu().sms, 108);
  EXPECT_EQ(device_fingerprint(*as_k80), device_fingerprint(a100));
  EXPECT_EQ(print(*as_k80), print(a100));

  const Target haswell = *parse_target("llvm -mcpu=haswell", 2);
  const Result<Target> as_epyc = with_abstraction(haswell, "epyc_9004");
  ASSERT_TRUE(as_epyc.ok()) << as_epyc.error().message();
  EXPECT_EQ(as_epyc->peak_flops, 112e9);
  EXPECT_EQ(as_epyc->vector_bytes, 32);
  EXPECT_EQ(device_fingerprint(*as_epyc), device_fingerprint(haswell));

  EXPECT_ERROR(with_abstraction(haswell, "t4"),
               "\"t4\" is a GPU, expected a file of a CPU or one of: epyc_9004, xeon_8375c");
  EXPECT_ERROR(with_abstraction(a100, "epyc_9004"),
               "\"epyc_9004\" is a CPU, expected a file of a GPU or one of: a100, a100_40");
  EXPECT_ERROR(with_abstraction(a100, "a1000"), "unknown device \"a1000\"");
}

}  // namespace
}  // namespace pruner
