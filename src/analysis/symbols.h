// Pruner's symbols of a program, one row for each stored buffer, and the latency that they give on
// a device in the released form of the analyzer and in the published one (Pruner, section 4.2;
// reference.md, The analyzer).
#pragma once

#include <array>
#include <vector>

#include "analysis/penalty.h"
#include "analysis/statements.h"
#include "target/target.h"

namespace pruner {

inline constexpr int kSymbols = 11;

/// Level L0 are a thread's registers, L1 a block's shared memory, L2 the device's memory. Counted
/// in float operations and elements.
struct Symbols {
  StageId buffer;
  float f_thread = 0;    // L0 compute: operations of a thread
  float f_total = 0;     // L2 compute: ... of the whole grid
  float reg = 0;         // L0 memory: footprint of a thread
  float mem_thread = 0;  // elements that a thread touches
  float smem = 0;        // L1 memory: elements that a block copies to this buffer in all
  float dram = 0;        // L2 memory: elements that the grid moves
  float reuse = 1;       // 1 + f_thread / mem_thread
  float is_gpu = 0;
  float grid = 1, block = 1, vthread = 1;

  std::array<float, kSymbols> values() const {
    return {f_thread, f_total, reg, mem_thread, smem, dram, reuse, is_gpu, grid, block, vthread};
  }
};

/// Rows in the order in which buffers are first stored to; a later store replaces an earlier one.
std::vector<Symbols> symbols(const Statements& program);

/// Returns the released form's latency of all rows in milliseconds, in its own measure: elements
/// are taken for bytes (reference.md, score and bytes). Returns 0 if the form counts nothing.
double release_latency_ms(const std::vector<Symbols>& rows,
                          const DeviceAbstraction& device,
                          Penalties penalties = {});

/// Returns the published form's latency in milliseconds. A statement's compute and memory times are
/// added; memory is slowed by transactions that are used in part and by shared memory beyond a
/// block's limit. Registers, traffic and transactions are counted in bytes of each buffer's type.
double paper_latency_ms(const Statements& program, const Gpu& gpu, Penalties penalties = {});

}  // namespace pruner
