// What learned models read of one program: a row of numbers for each stored buffer, and the records
// of the tiled contraction's data flow (Pruner, sections 4.3 and 4.4; the statement rows are
// Ansor's, appendix B); or its schedule primitives (primitives.h). Each model reads one or the
// other, and what it does not read may be left out.
#pragma once

#include <array>
#include <iterator>
#include <vector>

#include "analysis/statements.h"
#include "target/dot_rates.h"

namespace pruner {

inline constexpr int kStatementFeatures = 164;  // of the program
inline constexpr int kTaskFeatures = 10;        // flags of the task, the same in every row
inline constexpr int kPublishedRowFeatures = kStatementFeatures + kTaskFeatures;
// Of the unit for narrow numbers (UnitUse): which of eight; bits of the factors and of the sums;
// the share of its products that is of use; its instructions in one iteration of the parallel
// loops, or of a warp; registers (of a warp fragments) loaded for one of them; those of rows and of
// columns. Zeros where there is none.
inline constexpr int kUnits = 8;
inline constexpr int kUnitFeatures = kUnits + 7;
static_assert(std::size(kDotRates) <= kUnits);
// Of a unit that is a warp's: which shape of mma.h; stages of the pipeline; steps of a chunk; warps
// of a block; bytes of a stage, of those on their way, and of the sums in shared memory.
inline constexpr int kWarpFeatures = kMmaShapes + 6;
inline constexpr int kRowFeatures = kPublishedRowFeatures + kUnitFeatures + kWarpFeatures;
inline constexpr int kDataflowSteps = 8;
inline constexpr int kDataflowFeatures = 23;  // of a step

struct ProgramFeatures {
  std::vector<float> rows;  // stored buffers x kRowFeatures
  // All zero where the program has no such pattern.
  std::array<float, size_t{kDataflowSteps} * kDataflowFeatures> dataflow{};
  std::vector<int32_t> primitives = {};  // the sequence, as primitives() gives it

  size_t row_count() const { return rows.size() / kRowFeatures; }
  friend bool operator==(const ProgramFeatures&, const ProgramFeatures&) = default;
};

using TaskFlags = std::array<float, kTaskFeatures>;

/// 1 for each of nine words that the DAG's print holds anywhere, and a 0 (reference.md, flags).
TaskFlags task_flags(const ComputeDag& task);

/// Rows in the order of symbols(). `compat`: data flow only where the reference has it, on GPUs; a
/// CPU's tile has none then, nor has a row what it says of units.
ProgramFeatures features(const Statements& program, const TaskFlags& flags, bool compat = false);

}  // namespace pruner
