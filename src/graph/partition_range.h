// A network over a range of shapes: one cut into groups whose extents are formulas of the symbols.
// It is found from the network at some shapes, each imported and cut as any static one, so that
// every pass and every operator serves ranges as it stands.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "graph/partition.h"
#include "tensor/generalize.h"

namespace pruner {

/// A network for all shapes of a box of symbols.
struct PartitionRange {
  SymbolBox box;
  /// The network at the greatest shape, with the constants. A constant that has fewer elements at
  /// another shape is there the box that begins with its first element.
  Partition largest;
  std::vector<std::vector<Expr>> shapes;  // shape of each value; variable i is symbol i
  std::vector<DagRange> dags;             // one per group; a routine's has no stages
  /// The parameters of routines that are not the same at every shape, and outputs that are a few
  /// integers, by the value that has them at the greatest shape: a formula for each number.
  std::map<ValueId, std::vector<Expr>> parameters = {};
  std::map<size_t, std::vector<Expr>> index_extents = {};  // Group::index_extents, by group

  bool is_one_shape() const { return box.min == box.max; }
};

/// The network at one shape, made from its file alone, with what the hints say if they are not
/// null. Called from several threads at once.
using HintedPartitionAt = std::function<Result<Partition>(
    const SymbolValues& values, const std::shared_ptr<const RangeHints>& hints)>;
using PartitionAt = std::function<Result<Partition>(const SymbolValues& values)>;

/// A network over all shapes of some symbols.
struct NetworkRanges {
  std::vector<Symbol> symbols;
  std::vector<PartitionRange> ranges;                // the first has the greatest shape
  std::vector<std::vector<Expr>> input_shapes = {};  // over all ranges; variable i is symbol i
  PartitionAt at = {};                               // partition for checks; may be missing
};

/// Returns the network over all shapes of the symbols, in as few ranges as there are structures.
/// Shapes at which the structure is one of a kind, as at a length of one, are a range each. If
/// there are more than kMostRanges, and a symbol says which extents matter, only those shapes are
/// ranges. If a constant has other values at other shapes, or shapes differ in nodes that do
/// nothing, all ranges are made anew with hints to keep the constant or the nodes. Formulas from
/// some shapes are compared with the network made at each of checked_shapes(); a wrong formula
/// is found again from more shapes. Errors: of an import; another difference from shape to shape; a
/// number that no formula gives at every shape.
Result<NetworkRanges> partition_over(const std::vector<Symbol>& symbols,
                                     const HintedPartitionAt& at);
inline constexpr size_t kMostRanges = 16;

/// Returns the network over shapes of the symbols, each of them a range of its own, for targets
/// whose kernels are for one shape. These are all shapes if there are at most kMostApart, else the
/// extents that matter. Errors: of an import; too many shapes.
Result<NetworkRanges> partition_each(const std::vector<Symbol>& symbols,
                                     const HintedPartitionAt& at);
inline constexpr int64_t kMostApart = 64;

/// The distinct extents of a range's values that are more than a number or a symbol.
std::vector<Expr> extents_of(const PartitionRange& range);

/// Returns the network at one shape of a range by the range's formulas, as far as `groups` need it.
/// The DAGs of other groups keep the greatest shape.
Partition partition_at(const PartitionRange& range,
                       const std::vector<size_t>& groups,
                       const SymbolValues& shape);

/// The values whose bytes groups read.
std::set<ValueId> values_read(const Partition& partition);

}  // namespace pruner
