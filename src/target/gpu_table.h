// CUDA architectures with what one SM of each holds, as the CUDA C++ Programming Guide has it
// (table "Technical Specifications per Compute Capability"; lanes: section "Throughput of Native
// Arithmetic Instructions"). Rates of tensor cores follow from the data sheets' peaks, of
// workstation and data-center cards: GeForce cards add up in float32 at half the rate (devices/).
#pragma once

#include <cstdint>
#include <string_view>

#include "target/target.h"

namespace pruner {

struct GpuArchRow {
  std::string_view name;
  int64_t max_threads_per_sm, max_blocks_per_sm;
  int64_t registers_per_sm, registers_per_block;
  int64_t shared_kib_per_sm;
  int partitions_per_sm, fp32_lanes_per_sm;
  int64_t most_shared_kib_per_block;  // with opt-in
  // Dense. On sm_90, mma.sync reaches 64 % of what wgmma does.
  TensorRates tensor_rates = {};
};

inline constexpr GpuArchRow kGpuArchs[] = {
    {"sm_35", 2048, 16, 65536, 65536, 48, 4, 192, 48},
    {"sm_37", 2048, 16, 131072, 65536, 112, 4, 192, 48},
    {"sm_50", 2048, 32, 65536, 65536, 64, 4, 128, 48},
    {"sm_52", 2048, 32, 65536, 65536, 96, 4, 128, 48},
    {"sm_53", 2048, 32, 65536, 32768, 64, 4, 128, 48},
    {"sm_60", 2048, 32, 65536, 65536, 64, 2, 64, 48},
    {"sm_61", 2048, 32, 65536, 65536, 96, 4, 128, 48},
    {"sm_62", 2048, 32, 65536, 32768, 64, 4, 128, 48},
    {"sm_70", 2048, 32, 65536, 65536, 96, 4, 64, 96},
    {"sm_72", 2048, 32, 65536, 65536, 96, 4, 64, 96},
    {"sm_75", 1024, 16, 65536, 65536, 64, 4, 64, 64, {1024, 1024, 0, 0, 2048}},
    {"sm_80", 2048, 32, 65536, 65536, 164, 4, 64, 163, {2048, 2048, 2048, 1024, 4096}},
    {"sm_86", 1536, 16, 65536, 65536, 100, 4, 128, 99, {1024, 1024, 1024, 512, 2048}},
    {"sm_87", 1536, 16, 65536, 65536, 164, 4, 128, 163, {2048, 2048, 2048, 1024, 4096}},
    {"sm_89", 1536, 24, 65536, 65536, 100, 4, 128, 99, {1024, 1024, 1024, 512, 2048}},
    {"sm_90",
     2048,
     32,
     65536,
     65536,
     228,
     4,
     128,
     227,
     {2620, 2620, 2620, 1310, 5240, 4096, 4096, 4096, 2048, 8192}},
    {"sm_100", 2048, 32, 65536, 65536, 228, 4, 128, 227},
    {"sm_120", 1536, 24, 65536, 65536, 100, 4, 128, 99, {1024, 1024, 1024, 512, 2048}},
};

/// "sm_90a" is sm_90 with the instructions that no later architecture has. Architectures before it
/// have no such name.
constexpr const GpuArchRow* find_gpu_arch(std::string_view name) {
  const bool own = name.ends_with("a");
  if (own) name.remove_suffix(1);
  bool has_own = false;  // sm_90 and the rows after it
  for (const GpuArchRow& row : kGpuArchs) {
    has_own = has_own || row.name == "sm_90";
    if (row.name == name) return own && !has_own ? nullptr : &row;
  }
  return nullptr;
}

}  // namespace pruner
