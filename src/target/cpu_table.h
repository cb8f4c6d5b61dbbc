// CPUs by LLVM's name, with typical numbers of one core; a device file or `device probe` has better
// ones. Instructions a cycle: the vendors' optimization manuals. Where multiplication and addition
// are two instructions, one pair counts as an FMA.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "target/target.h"

namespace pruner {

struct CpuRow {
  std::string_view name;
  int64_t vector_bytes;
  int vector_registers;
  int fmas_per_cycle, loads_per_cycle;  // counted in whole vectors
  double gflops;                        // fp32, of one core at the clock it holds under vector load
  int64_t l1_kib, l2_kib, l3_mib;
  Isa isa = Isa::kX86;  // "generic" stands for any
  DotRates dots = {};
};

// Intel's cores begin half as many of vdpbf16ps as FMAs (sapphirerapids), AMD's as many of each.
inline constexpr DotRates kInt8Dots = {0, 4}, kIntelDots = {0.5, 4}, kAmdDots = {2, 4};
// A core computes a tile of 16 x 16 sums in 16 cycles (measured on sapphirerapids).
inline constexpr DotRates kAmxDots = {0.5, 4, 16, 32};
// Float16 tiles are as fast as bfloat16 tiles (Intel's instruction set reference; not measured).
inline constexpr DotRates kAmxFloat16Dots = {0.5, 4, 16, 32, 0, 16};
// Arm's cores begin as many of sdot, usdot, bfdot, smmla and bfmmla as of fmla: LLVM's models of
// neoverse-n1, -n2, -v1 and -v2, and the guides of cortex-a76 and -a78. Those of apple-m2 are taken
// as neoverse-v2's.
inline constexpr DotRates kArmAlikeDots = {.int8_alike = 4};
inline constexpr DotRates kArmDots = {2, 4, 4, 8, 4};

inline constexpr CpuRow kCpus[] = {
    {"generic", 16, 16, 1, 1, 16, 32, 256, 4},
    {"x86-64", 16, 16, 1, 1, 24, 32, 256, 8},
    {"x86-64-v2", 16, 16, 1, 1, 24, 32, 256, 8},
    {"x86-64-v3", 32, 16, 2, 2, 96, 32, 512, 16},
    {"x86-64-v4", 64, 32, 1, 1, 112, 32, 1024, 32},
    {"nehalem", 16, 16, 1, 1, 24, 32, 256, 8},
    {"sandybridge", 32, 16, 1, 1, 48, 32, 256, 16},
    {"ivybridge", 32, 16, 1, 1, 48, 32, 256, 16},
    {"haswell", 32, 16, 2, 2, 96, 32, 256, 24},
    {"core-avx2", 32, 16, 2, 2, 96, 32, 256, 24},
    {"broadwell", 32, 16, 2, 2, 96, 32, 256, 24},
    {"skylake", 32, 16, 2, 2, 112, 32, 256, 8},
    {"skylake-avx512", 64, 32, 2, 2, 160, 32, 1024, 24},
    {"cascadelake", 64, 32, 2, 2, 160, 32, 1024, 32, Isa::kX86, kInt8Dots},
    {"cooperlake", 64, 32, 2, 2, 160, 32, 1024, 32, Isa::kX86, kIntelDots},
    {"icelake-client", 64, 32, 1, 2, 112, 48, 512, 8, Isa::kX86, kInt8Dots},
    {"icelake-server", 64, 32, 2, 2, 186, 48, 1280, 48, Isa::kX86, kInt8Dots},
    {"tigerlake", 64, 32, 1, 2, 128, 48, 1280, 12, Isa::kX86, kInt8Dots},
    {"sapphirerapids", 64, 32, 2, 2, 192, 48, 2048, 96, Isa::kX86, kAmxDots},
    {"emeraldrapids", 64, 32, 2, 2, 192, 48, 2048, 256, Isa::kX86, kAmxDots},
    {"graniterapids", 64, 32, 2, 2, 205, 48, 2048, 256, Isa::kX86, kAmxFloat16Dots},
    {"alderlake", 32, 16, 2, 3, 144, 48, 1280, 30},
    {"raptorlake", 32, 16, 2, 3, 160, 48, 2048, 36},
    {"znver1", 32, 16, 1, 1, 51, 32, 512, 8},
    {"znver2", 32, 16, 2, 2, 106, 32, 512, 16},
    {"znver3", 32, 16, 2, 2, 112, 32, 512, 32},
    {"znver4", 64, 32, 1, 1, 112, 32, 1024, 32, Isa::kX86, kAmdDots},
    {"znver5", 64, 32, 2, 2, 240, 48, 1024, 32, Isa::kX86, kAmdDots},
    {"cortex-a53", 16, 32, 1, 1, 11, 32, 512, 1, Isa::kArm},
    {"cortex-a72", 16, 32, 1, 1, 16, 32, 1024, 1, Isa::kArm},
    {"cortex-a76", 16, 32, 2, 2, 38, 64, 512, 2, Isa::kArm, kArmAlikeDots},
    {"cortex-a78", 16, 32, 2, 2, 42, 64, 512, 4, Isa::kArm, kArmAlikeDots},
    {"neoverse-n1", 16, 32, 2, 2, 42, 64, 1024, 32, Isa::kArm, kArmAlikeDots},
    {"neoverse-n2", 16, 32, 2, 2, 45, 64, 1024, 32, Isa::kArm, kArmDots},
    {"neoverse-v1", 16, 32, 4, 3, 83, 64, 1024, 32, Isa::kArm, kArmDots},
    {"neoverse-v2", 16, 32, 4, 3, 96, 64, 2048, 36, Isa::kArm, kArmDots},
    {"apple-m1", 16, 32, 4, 3, 102, 128, 12288, 16, Isa::kArm, kArmAlikeDots},
    {"apple-m2", 16, 32, 4, 3, 112, 128, 16384, 8, Isa::kArm, kArmDots},
};

constexpr const CpuRow* find_cpu(std::string_view name) {
  for (const CpuRow& row : kCpus) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace pruner
