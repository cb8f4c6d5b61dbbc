// The features of a program that learned models read. Some models read a row of numbers for each
// stored buffer (Ansor, appendix B), and the records of the tiled contraction's data flow (Pruner,
// sections 4.3 and 4.4). Others read the program's schedule primitives (primitives.h). Features
// that a model does not read may be left out.
#pragma once

#include <array>
#include <iterator>
#include <vector>

#include "analysis/statements.h"
#include "target/dot_rates.h"

namespace pruner {

inline constexpr int kStatementFeatures = 164;  // features of the program
inline constexpr int kTaskFeatures = 10;        // flags of the task, the same in every row
inline constexpr int kPublishedRowFeatures = kStatementFeatures + kTaskFeatures;
// Features of the unit for narrow numbers (UnitUse): one-hot of eight units; bits of the factors
// and of the sums; share of its products that is of use; instructions in one iteration of the
// parallel loops, or of a warp; registers (or a warp's fragments) loaded for an instruction, and
// registers of rows and of columns. All are zero without a unit.
inline constexpr int kUnits = 8;
inline constexpr int kUnitFeatures = kUnits + 7;
static_assert(std::size(kDotRates) <= kUnits);
// Features of a warp's unit: one-hot of the shapes of one warp (mma.h); stages of the pipeline;
// steps of a chunk; warps of a block; bytes of a stage, of those on their way, and of the sums in
// shared memory.
inline constexpr int kWarpFeatures = kWarpShapes + 6;
// Features of a group's unit: one-hot of the shapes of a group.
inline constexpr int kGroupFeatures = kMmaShapes - kWarpShapes;
inline constexpr int kRowFeatures =
    kPublishedRowFeatures + kUnitFeatures + kWarpFeatures + kGroupFeatures;
inline constexpr int kDataflowSteps = 8;
inline constexpr int kDataflowFeatures = 23;  // features of a step

struct ProgramFeatures {
  std::vector<float> rows;  // stored buffers x kRowFeatures
  // The records of the data flow, all zero if the program has no such pattern.
  std::array<float, size_t{kDataflowSteps} * kDataflowFeatures> dataflow{};
  std::vector<int32_t> primitives = {};  // the sequence, as primitives() gives it

  size_t row_count() const { return rows.size() / kRowFeatures; }
  friend bool operator==(const ProgramFeatures&, const ProgramFeatures&) = default;
};

using TaskFlags = std::array<float, kTaskFeatures>;

/// 1 for each of nine words that the DAG's print holds anywhere, and a 0 (reference.md, flags).
TaskFlags task_flags(const ComputeDag& task);

/// Returns rows in the order of symbols(). If `compat`, there is data flow only on GPUs, where the
/// reference has it, and the features of units are zero.
ProgramFeatures features(const Statements& program, const TaskFlags& flags, bool compat = false);

}  // namespace pruner
