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
  /// By symbol. Where there is room for nothing, nothing is found all the same.
  std::map<std::string, int64_t> extents;
  bool all_known =
      false;  // false: there are other symbols, whose extents are all there is room for
  /// Outputs of Concat whose parts have such extents, with the symbol of what they are together.
  std::map<std::string, std::string> joined = {};
  /// Of boxes that NonMaxSuppression finds, by symbol: no more are read, so that no more are to be
  /// found. They are those of one class of one image, and stand in the order in which they are
  /// found.
  std::map<std::string, int64_t> limits = {};
  /// Nodes that are replaced before the import, by the names of their first outputs.
  std::map<std::string, RunTimeNumbers> expanded = {};
};

class FoundValues {
 public:
  /// Takes the next node of a graph, in order; an error where it reads such a value. True: it makes
  /// one.
  Result<bool> add(const Graph& graph, const Node& node);

 private:
  std::map<ValueId, std::string> makers_;  // the operator that finds it
};

/// Returns the operator whose finds the inputs of `node` are made of, directly or through the nodes
/// of the graph; nothing where they are made of none.
std::optional<std::string> finder_of(const Graph& graph, const Node& node);

/// Says that `node` reads what the operator `maker` finds.
Error reads_found_values(const Graph& graph, const Node& node, const std::string& maker);

}  // namespace pruner
