// The least and the greatest number that the elements of a value may be, whatever the data are. An
// axis may be as long as a number of the run time says: then there has to be room for the greatest.
#pragma once

#include <functional>
#include <limits>
#include <map>

#include "graph/graph.h"

namespace pruner {

/// Infinite where nothing is known.
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
  /// Which of its inputs a Where gives, as far as bounds of what is compared decide; 0: either.
  size_t chosen(const Node& where);
  /// The node that makes a value; null: it is an input or a constant.
  const Node* maker(ValueId id);

 private:
  Bounds of_node(const Node& node, size_t output);
  Bounds of_arithmetic(const Node& node);
  Bounds of_all(const Node& node, size_t first);

  const Graph& graph_;
  std::function<bool(ValueId)> varies_;
  size_t seen_ = 0;                                      // nodes
  std::map<ValueId, std::pair<size_t, size_t>> makers_;  // a node, and which of its outputs
  std::map<ValueId, Bounds> known_;
};

}  // namespace pruner
