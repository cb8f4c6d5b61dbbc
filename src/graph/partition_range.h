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
  /// At the greatest shape, with the constants. One that has fewer elements at other shapes is
  /// there the box of it that begins with its first one.
  Partition largest;
  std::vector<std::vector<Expr>> shapes;  // of each value; variable i is symbol i
  std::vector<DagRange> dags;             // one a group; of a routine's without stages
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
  std::vector<std::vector<Expr>> input_shapes = {};  // of all of them; variable i is symbol i
  PartitionAt at = {};                               // for checks; may be missing
};

/// The network over all shapes of the symbols: as few ranges as there are structures. Shapes at
/// which the structure is one of a kind, as at a length of one, are a range each; where there are
/// more than kMostRanges, and a symbol says which extents matter, those shapes alone are. Where a
/// constant has other values at other shapes, or shapes differ in what has nothing to do, all are
/// made anew with hints to keep it. Formulas
/// are found from some shapes and compared with the network made at each of checked_shapes(); where
/// one is wrong, it is found again from more shapes. Errors: of an import; what differs from shape
/// to shape, where that is none of these; a number that no formula gives at every shape.
Result<NetworkRanges> partition_over(const std::vector<Symbol>& symbols,
                                     const HintedPartitionAt& at);
inline constexpr size_t kMostRanges = 16;

/// The distinct extents of a range's values that are more than a number or a symbol.
std::vector<Expr> extents_of(const PartitionRange& range);

/// The network at one shape of a range as its formulas say, as far as `groups` need it. Values of
/// others keep the greatest shape.
Partition partition_at(const PartitionRange& range,
                       const std::vector<size_t>& groups,
                       const SymbolValues& shape);

/// The values whose bytes groups read.
std::set<ValueId> values_read(const Partition& partition);

}  // namespace pruner
