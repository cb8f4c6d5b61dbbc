#include "analysis/symbols.h"

#include <algorithm>
#include <cmath>

#include "analysis/gpu_limits.h"
#include "target/machine_model.h"

namespace pruner {
namespace {

// The reference leaves these two out by name (reference.md, names).
bool is_first_dimension(LoopRole role) {
  return role == LoopRole::kThreadX || role == LoopRole::kBlockX;
}

// Returns the product of the extents of the loops that move both `access` and `also`.
float extents(std::span<const StatementLoop> loops,
              std::span<const LoopUse> access,
              std::span<const LoopUse> also) {
  float product = 1;
  for (size_t i = loops.size(); i-- > 0;) {
    if (access[i].used && also[i].used && !is_first_dimension(loops[i].role))
      product *= static_cast<float>(loops[i].extent);
  }
  return product;
}

// The unit of footprints and traffic: elements, as in the release, or bytes.
enum class Measure : uint8_t { kElements, kBytes };

void set_row(Symbols& row, const Statements& program, const Statement& s, Measure measure) {
  const auto loops = program.loops_of(s);
  const auto accesses = program.accesses_of(s);
  const auto stored = program.uses_of(s, accesses.back());
  const auto size_of = [&](StageId buffer) {
    const int bytes = program.buffer(buffer).element_bytes;
    return static_cast<float>(measure == Measure::kBytes ? bytes : 1);
  };
  const Bindings bound = bindings_of(loops);
  row.is_gpu = s.gpu ? 1 : 0;
  row.grid = bound.blocks();
  row.block = bound.threads();
  row.vthread = bound.vthreads;
  row.f_thread = s.work * static_cast<float>(s.counts.float_arithmetic());
  row.f_total = row.f_thread * row.grid * row.block;
  row.reg = row.smem = row.dram = 0;
  row.reuse = 1;
  for (const StatementAccess& access : accesses) {
    const auto uses = program.uses_of(s, access);
    if (row.f_thread != 0) {
      row.reg += extents(loops, uses, stored) * size_of(access.buffer);
      row.mem_thread += extents(loops, uses, uses);  // kept over stores (reference.md, kept)
    } else if (program.buffer(s.buffer).scope == BufferScope::kShared) {
      row.smem += extents(loops, uses, stored) * row.block * size_of(s.buffer);
      row.dram += row.smem * row.grid;
      break;
    } else {
      row.dram += s.work * row.grid * row.block * size_of(s.buffer);
      break;
    }
  }
  if (row.f_thread != 0 && row.mem_thread != 0) row.reuse += row.f_thread / row.mem_thread;
}

std::vector<Symbols> rows_of(const Statements& program, Measure measure) {
  std::vector<Symbols> rows;
  for (const Statement& s : program.statements) {
    auto row = std::ranges::find(rows, s.buffer, &Symbols::buffer);
    if (row == rows.end()) {
      rows.emplace_back().buffer = s.buffer;
      row = rows.end() - 1;
    }
    set_row(*row, program, s, measure);
  }
  return rows;
}

// The factors of one row that the two forms share (reference.md, score).
struct Factors {
  double thread = 1;     // (1, 2]: work is inflated by what has no reuse
  double warp = 1;       // lanes that are used
  double peak = 1;       // slots that are used over all waves
  double registers = 1;  // >= 1: spilled
};

Factors factors(const Symbols& s, const DeviceAbstraction& device, Penalties penalties) {
  Factors p;
  p.thread = 1 + 1 / static_cast<double>(s.reuse);
  const double warps = static_cast<double>(s.block) / device.arch_warp_size;
  p.warp = warps / std::ceil(warps);
  const double held = static_cast<double>(device.active_blocks_per_sm) * device.sm_nums;
  double units = s.grid, slots = held;
  if (units < held) {
    units *= std::min(std::ceil(warps), static_cast<double>(device.arch_sm_partition));
    slots = static_cast<double>(device.arch_sm_partition) * device.sm_nums;
  }
  p.peak = units / (std::ceil(units / slots) * slots);
  if (s.reg >= static_cast<float>(device.reg_cap))
    p.registers = static_cast<double>(s.reg) / device.reg_cap;
  if (!penalties.counts(Penalty::kComputeL0)) p.thread = 1;
  if (!penalties.counts(Penalty::kMemoryL0)) p.registers = 1;
  if (!penalties.counts(Penalty::kComputeL1)) p.warp = 1;
  if (!penalties.counts(Penalty::kComputeL2)) p.peak = 1;
  return p;
}

double compute_ms(const Symbols& s, const DeviceAbstraction& device, Penalties penalties) {
  const Factors p = factors(s, device, penalties);
  const double peak = device.peak_performance * p.peak * p.warp / p.registers;
  return static_cast<double>(s.f_total) * p.thread / peak / 1e6;
}

// Loops inside of the stored buffer's allocation start here: each fills it once.
size_t inside_allocation(const Statements& program, const Statement& s) {
  const auto loops = program.loops_of(s);
  const double own =
      static_cast<double>(s.iterations) / program.buffer(s.buffer).realize_iterations;
  double product = 1;
  size_t i = loops.size();
  while (i > 0 && product * static_cast<double>(loops[i - 1].extent) <= own * 1.0001)
    product *= static_cast<double>(loops[--i].extent);
  return i;
}

// Share of the transactions' bytes that a copy to shared memory uses: rows of n neighbours fetch
// whole transactions (the paper's n / (ceil(n / tx) * tx), of which tx is as many elements of the
// buffer's type as a transaction has room for).
double transaction_penalty(const Statements& program, const Statement& s) {
  if (program.buffer(s.buffer).scope != BufferScope::kShared) return 1;
  const size_t first = inside_allocation(program, s);
  if (first >= static_cast<size_t>(s.loops) || program.shape_of(s.buffer).empty()) return 1;
  const StatementAccess& stored = program.accesses_of(s).back();
  const auto row = static_cast<double>(program.region(stored, static_cast<int>(first)).back());
  const double bytes = row * program.buffer(s.buffer).element_bytes;
  return bytes / (std::ceil(bytes / kGpuModel.sector_bytes) * kGpuModel.sector_bytes);
}

}  // namespace

std::vector<Symbols> symbols(const Statements& program) {
  return rows_of(program, Measure::kElements);
}

double release_latency_ms(const std::vector<Symbols>& rows,
                          const DeviceAbstraction& device,
                          Penalties penalties) {
  double latency_ms = 0;
  for (const Symbols& s : rows) {
    const double memory_ms =
        static_cast<double>(s.dram) / device.glbmem_bandwidth * 1000 / (1 << 30);
    latency_ms += std::max(compute_ms(s, device, penalties), memory_ms);
  }
  return latency_ms;
}

double paper_latency_ms(const Statements& program, const Gpu& gpu, Penalties penalties) {
  std::vector<Symbols> rows = rows_of(program, Measure::kBytes);
  std::vector<double> shared_bytes(static_cast<size_t>(program.kernels), 0);
  const auto last_store = [&](StageId buffer) {
    const auto end = program.statements.rend();
    return *std::find_if(
        program.statements.rbegin(), end, [&](const Statement& s) { return s.buffer == buffer; });
  };
  for (const Symbols& row : rows) {
    const StatementBuffer& buffer = program.buffer(row.buffer);
    if (buffer.scope == BufferScope::kShared)
      shared_bytes[last_store(row.buffer).kernel] += buffer.allocated * buffer.element_bytes;
  }
  double latency_ms = 0;
  for (Symbols& row : rows) {
    const Statement s = last_store(row.buffer);
    const double shared = shared_bytes[s.kernel];
    const double capacity = static_cast<double>(gpu.shared_bytes_per_block);
    double penalty = 1;  // share of memory's speed
    if (penalties.counts(Penalty::kMemoryL1) && shared > capacity) penalty *= capacity / shared;
    if (penalties.counts(Penalty::kMemoryL2)) penalty *= transaction_penalty(program, s);
    row.reg /= static_cast<float>(kGpuModel.register_bytes);
    const double memory_ms = static_cast<double>(row.dram) / gpu.psa.glbmem_bandwidth / 1e6;
    latency_ms += compute_ms(row, gpu.psa, penalties) + memory_ms / penalty;
  }
  return latency_ms;
}

}  // namespace pruner
