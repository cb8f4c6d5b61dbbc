// A network at the greatest extents of what the data find, and which of its values are other ones
// where the data find less.
#pragma once

#include <set>

#include "graph/ops/op.h"
#include "graph/pipeline/pipeline.h"

namespace pruner {

/// Places of symbols among those of the pipeline.
using Symbols = std::set<size_t>;

struct VaryingNetwork {
  Graph graph;
  std::vector<Symbols> depends = {};    // symbols that each value's shape or elements depend on
  std::set<ValueId> shape_varies = {};  // values of other shapes at other extents
  std::set<size_t> uneven_stacks = {};  // LoopStacks that do not just grow by a round at a time
  std::vector<int> makers = {};         // node of each value; -1: an input or a file's constant
  std::set<ValueId> rooms = {};         // values of which a part is used

  /// Sets `makers` and `rooms`, which follow from the graph.
  void index();

  const Symbols& depends_on(ValueId id) const { return depends[id.value]; }
  bool is_constant(ValueId id) const { return !id.valid() || graph[id].constant.has_value(); }
  bool has_nothing(ValueId id) const {
    return is_constant(id) && element_count(graph[id].shape) == 0;
  }
  bool is_true(ValueId id) const;

  /// The node that makes a value; null: it is an input or a constant of the file.
  const Node* maker_of(ValueId id) const;
  /// Whether the data say an extent of what the node, or the maker of the value, makes.
  static bool is_found(const Node& node);
  bool is_found(ValueId id) const;
  bool is_join(const Node& node) const;
  bool is_joined(ValueId id) const;
  bool begins_loop(ValueId id) const;

  /// The values that a node reads that is run between stages.
  std::vector<ValueId> read_between(const Node& node) const;
  /// Whether what the rounds of a loop make together is always as long, or longer by a round for
  /// each one that a symbol has more.
  bool grows_evenly(size_t stack) const;
};

/// Whether a node reads the shape of its input and none of its elements.
bool asks_shape(const Node& node);

/// The place of the symbol that a node kFound or kExtent is of.
size_t symbol_of(const Pipeline& pipeline, const Node& found);

/// The name that the nodes of graph/ops/loop.cpp around the rounds of one loop share.
const std::string& loop_name(const Node& node);

/// Imports the network at all the extents that there is room for, and at smaller ones. Sets the
/// pipeline's symbols and what its imports take (joined, limits, branches, expanded); nullopt: it
/// has neither symbols nor loops. Errors: of the import; a network that is another one at other
/// extents.
Result<std::optional<VaryingNetwork>> find_dependences(const ImportStage& import,
                                                       Pipeline& pipeline);

}  // namespace pruner
