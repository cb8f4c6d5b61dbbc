// The least and the greatest number that the elements of a value may be, whatever the data are. An
// axis may be as long as a number of the run time says: then there has to be room for the greatest.
#pragma once

#include <functional>
#include <limits>
#include <map>

#include "graph/graph.h"

namespace pruner {

/// The bounds of a value's elements, infinite if nothing is known.
struct Bounds {
  double least = -std::numeric_limits<double>::infinity();
  double greatest = std::numeric_limits<double>::infinity();
};

/// Follows the nodes of one graph, which may grow between calls. Elements that are NaN, and the
/// rounding of floating point, are not counted.
class ValueBounds {
 public:
  /// `varies`: whether a constant follows from the extents of what the data find, as their number
  /// does. The graph has it at the greatest extents. Shapes are taken to be from 0 to what they are
  /// then, and what is made of them is bounded by its node.
  ValueBounds(const Graph& graph, std::function<bool(ValueId)> varies)
      : graph_(graph), varies_(std::move(varies)) {}

  Bounds of(ValueId id);
  /// Returns the number of the input, 1 or 2, that a Where always gives by the bounds of the
  /// compared values; 0 if either input is possible.
  size_t chosen(const Node& where);
  /// Returns the node that makes a value; null if the value is an input or a constant.
  const Node* maker(ValueId id);

 private:
  Bounds of_node(const Node& node, size_t output);
  Bounds of_arithmetic(const Node& node);
  Bounds of_all(const Node& node, size_t first);

  const Graph& graph_;
  std::function<bool(ValueId)> varies_;
  size_t seen_ = 0;                                      // number of nodes in makers_
  std::map<ValueId, std::pair<size_t, size_t>> makers_;  // node and output number of a value
  std::map<ValueId, Bounds> known_;
};

}  // namespace pruner
