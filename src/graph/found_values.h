// Values of which only a part is used: what NonZero and its like find, whose extent the data say at
// run time. What reads one would take the rest for values, too, so that in a network of one stage
// it can be an output only. In a pipeline (graph/pipeline) a node kFound stands behind each: its
// inputs are the value and the number of what is found, its output is the part that is used, and
// its attribute `symbol` names the extent.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace pruner {

/// Ends the name of an If's condition where both branches are computed; the node's name begins it.
inline constexpr std::string_view kCondition = "/condition";

/// Extents that an import takes for those that the data will decide.
struct FoundExtents {
  /// The extent of each symbol. If there is room for nothing, the extent is 0 all the same.
  std::map<std::string, int64_t> extents;
  bool all_known = false;  // false: other symbols exist and take all the room
  /// Outputs of Concat whose parts have found extents, with the symbol of the joined extent.
  std::map<std::string, std::string> joined = {};
  /// The number of boxes of a NonMaxSuppression that are read, by symbol: no more boxes are to be
  /// found. The boxes belong to one class of one image and stand in the order in which they are
  /// found.
  std::map<std::string, int64_t> limits = {};
  /// Nodes that are replaced before the import, by the names of their first outputs.
  std::map<std::string, RunTimeNumbers> expanded = {};
};

class FoundValues {
 public:
  /// Takes the next node of a graph, in order. Returns whether the node makes a found value; an
  /// error if the node reads a found value.
  Result<bool> add(const Graph& graph, const Node& node);

 private:
  std::map<ValueId, std::string> makers_;  // operator that finds each value
};

/// Returns the operator whose found values the inputs of `node` are made of, directly or through
/// other nodes; nullopt if the inputs are made of no found values.
std::optional<std::string> finder_of(const Graph& graph, const Node& node);

/// Says that `node` reads what the operator `maker` finds.
Error reads_found_values(const Graph& graph, const Node& node, const std::string& maker);

}  // namespace pruner
