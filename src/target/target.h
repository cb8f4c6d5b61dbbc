// Describes what code is made for: a backend, its instruction set and the numbers that the analysis
// needs. A target comes from this host, a target text ("llvm -mcpu=haswell", "cuda --model=a100")
// or a device file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "support/result.h"
#include "target/backend.h"
#include "target/machine_model.h"

namespace pruner {

/// Isa is the instruction set of a CPU.
enum class Isa : uint8_t { kX86, kArm };  // x86-64, AArch64
#if defined(__aarch64__)
inline constexpr Isa kHostIsa = Isa::kArm;
#else
inline constexpr Isa kHostIsa = Isa::kX86;
#endif

/// A device in the terms of Pruner's released formulas, in their units. The defaults are the
/// a100_40's, which the released program takes when none is named.
struct DeviceAbstraction {
  double peak_performance = 19490;  // GFLOP/s, fp32
  double glbmem_bandwidth = 1555;   // GB/s
  int vec_len = 11;
  int active_blocks_per_sm = 1;
  int sm_nums = 108;
  int arch_sm_partition = 4;
  int arch_warp_size = 32;
  int reg_cap = 128;  // elements of a thread before they count as spilled
};

/// TensorRates holds the operations per clock of one multiprocessor's matrix instructions of warps.
/// A multiplication and an addition count as 2; 0: no instruction for these types.
struct TensorRates {
  double f16_f32 = 0, f16_f16 = 0;    // operands and sums
  double bf16 = 0, tf32 = 0, s8 = 0;  // with sums of float32 and int32
  // Rates of instructions that four warps run together (PTX: wgmma).
  double wgmma_f16_f32 = 0, wgmma_f16_f16 = 0, wgmma_bf16 = 0, wgmma_tf32 = 0, wgmma_s8 = 0;
};

/// Gpu holds the limits that a GPU's kernels must keep to, and the GPU's rates. The defaults are
/// the limits of a block on every CUDA device (sm_53 and sm_62: half the registers) and the
/// rates of an A100 with 40 GB.
struct Gpu {
  std::string arch;  // "sm_80"; empty: not a CUDA device, or whichever is there
  int64_t max_threads_per_block = 1024;
  int64_t max_registers_per_thread = 255;
  int64_t registers_per_block = 65536;
  int64_t shared_bytes_per_block = 48 << 10;       // limit without opt-in
  int64_t most_shared_bytes_per_block = 48 << 10;  // limit with opt-in
  int64_t max_vthreads = 8;                        // per thread (Ansor's limit, not the device's)
  int64_t vector_bytes = 16;                       // widest load of a thread
  int warp_size = 32;
  int sms = 108;              // streaming multiprocessors (compute units)
  int partitions_per_sm = 4;  // warp schedulers
  int fp32_lanes_per_sm = 64;
  int64_t max_threads_per_sm = 2048;
  int64_t max_blocks_per_sm = 16;
  int64_t registers_per_sm = 65536;
  int64_t shared_bytes_per_sm = 64 << 10;
  int64_t l2_bytes = 40 << 20;
  double clock_hz = 1410e6;        // boost
  double peak_flops = 19.49e12;    // FLOP/s of the device, fp32, FMA counted as 2
  double dram_bandwidth = 1555e9;  // bytes/s of the device
  double l2_bandwidth = 4665e9;
  double shared_bandwidth = 19.49e12;  // bytes/s of the shared memories together
  double launch_s = 3e-6;              // time that an empty kernel takes
  TensorRates tensor_rates;
  DeviceAbstraction psa;  // numbers of the analysis: --psa, else the device's own
};

/// 80 of "sm_80"; 0: it is no such name.
int compute_capability(std::string_view arch);
inline int compute_capability(const Gpu& gpu) { return compute_capability(gpu.arch); }

/// DotRates holds the rates of CPU instructions that add several narrow products to each float32 or
/// int32 sum of a vector or a tile. A rate is the products in the time of one FMA's product; 0: no
/// such instruction.
struct DotRates {
  double bfloat16 = 0;       // two to a sum: AVX512-BF16's vdpbf16ps, bfdot
  double int8 = 0;           // four, of uint8 and int8: AVX512-VNNI's vpdpbusd, usdot
  double bfloat16_tile = 0;  // 32 to each sum of a tile: AMX's tdpbf16ps; 4: bfmmla
  double int8_tile = 0;      // 64, of uint8 and int8: tdpbusd; 8: usmmla, smmla, ummla
  double int8_alike = 0;     // four, both of int8 or both of uint8: sdot, udot
  double float16_tile = 0;   // like bfloat16_tile: AMX's tdpfp16ps
  /// Whether products of the type are faster than float32's.
  bool bfloat16_gains() const { return bfloat16 > 1 || bfloat16_tile > 1; }
  bool float16_gains() const { return float16_tile > 1; }
};

struct Target {
  Backend backend = {};  // the first row's: a CPU
  std::string device;    // "host", an mcpu, a name of device_files(), the path of a device file
  std::string source;    // origin of a device file's numbers
  std::string mcpu;      // LLVM's CPU name, e.g. "znver4", "haswell"
  std::string features;  // LLVM feature string of the host ("+avx512f,..."); empty: those of mcpu
  Isa isa = kHostIsa;    // instruction set of mcpu
  int threads = 1;
  DotRates dots;

  int64_t vector_bytes = 32;    // widest vector: 64 AVX-512, 32 AVX2, 16 SSE/NEON
  int vector_registers = 16;    // 32 with AVX-512 and NEON
  double fmas_per_cycle = 2;    // whole vectors that a core begins
  double loads_per_cycle = 2;   // ... that a core loads from L1; narrower ones two at least
  bool masked_vectors = false;  // cheap masked loads and stores (AVX-512)
  int64_t cache_line_bytes = 64;
  int64_t l1_bytes = 32 << 10;  // per core
  int64_t l2_bytes = 512 << 10;
  int64_t l3_bytes = 8 << 20;  // shared by the threads
  double peak_flops = 0;       // FLOP/s of one core, fp32, FMA counted as 2
  double l1_bandwidth = 0;     // bytes/s of one core
  double l2_bandwidth = 0;
  double l3_bandwidth = 0;
  double dram_bandwidth = 0;  // bytes/s of the machine
  double launch_s = 1.5e-6;   // time that a parallel loop takes to fork and join
  CpuModel draft;             // other numbers that the draft takes this CPU to have

  Gpu gpu;                                // set if is_gpu()
  std::shared_ptr<const Gpu> drafted_as;  // --psa: the GPU whose numbers the draft takes

  const Gpu& drafted_gpu() const { return drafted_as ? *drafted_as : gpu; }
  bool is_gpu() const { return row_of(backend).is_gpu; }
  int lanes(int64_t element_bytes) const { return static_cast<int>(vector_bytes / element_bytes); }
};

/// This machine's CPU: instruction set and caches as the operating system and CPUID give them,
/// rates as typical for the ISA (`device probe` measures them). `threads` 0: all cores.
Target host_target(int threads);

/// "llvm", "llvm -mcpu=haswell", "llvm -mtriple=aarch64-linux-gnu", "llvm --threads=2",
/// "cuda --arch=sm_80", "cuda --model=a100", "opencl"; each with "--device=FILE.json" or a name of
/// device_files(). TVM's words for a GPU's limits are read, its other options are passed over.
/// `threads`, if not 0, goes before the text's. Whether the build has a backend is the caller's
/// question; the error lists what is known.
Result<Target> parse_target(std::string_view text, int threads);
/// A CPU of the table (cpu_table.h) on so many threads; `generic`: whose instructions those of
/// "generic" are. The error lists the table.
Result<Target> cpu_target(std::string_view mcpu, int threads, Isa generic);
/// The limits that an architecture of the table (gpu_table.h) sets; the error lists the table.
Result<Gpu> with_arch(Gpu gpu, std::string_view arch);
/// Reads isa_name() and a triple's first part.
std::optional<Isa> parse_isa(std::string_view text);
/// "x86-64" or "AArch64".
std::string_view isa_name(Isa isa);
/// The target triple that compilers know it by: "aarch64-linux-gnu".
std::string triple_of(Isa isa);
/// Returns a text that parse_target reads back and that records carry.
std::string print(const Target& target);
/// Returns what two machines must share for a measured time to mean the same: CPU model, ISA,
/// threads.
std::string device_fingerprint(const Target& target);

}  // namespace pruner
