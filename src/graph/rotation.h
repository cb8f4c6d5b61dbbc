// Rotations of a product's columns (rotary position embeddings, Su et al. 2021), in whatever nodes
// they are written: x's halves, or x and its halves exchanged, by cosines and sines.
#pragma once

#include <optional>
#include <vector>

#include "graph/ops/op.h"

namespace pruner {

/// The nodes that read each value, ascending, each once. An output of the graph has one more
/// reader, numbered after the last node.
using Readers = std::vector<std::vector<size_t>>;
Readers readers_of(const Graph& graph);

/// The nodes between a product and the last node of what turns its columns, in order, this one
/// included: element-wise ones, slices and concatenations of the last dimension, a reshape that
/// parts it into heads, and a transpose of these and positions. Nothing where what reads `product`
/// is something else, or does not end in one node, or where a head has more than 256 columns (the
/// product's tile has all of a head), or the product fewer than 16 rows (it takes as long as its
/// weights take to read).
std::optional<std::vector<size_t>> rotation_of(const Graph& graph,
                                               const Readers& readers,
                                               ValueId product);

/// Whether it is the transpose between [b, heads, positions, width] and [b, positions, heads,
/// width].
bool exchanges_heads(const OpCall& call);

}  // namespace pruner
