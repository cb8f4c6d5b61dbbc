// Products that a GPU's matrix instructions compute in one kernel with what makes their data: a
// norm of rows, or a depthwise convolution. Each block of the product computes its rows of the data
// in shared memory. A norm may also be what the product's result is added to.
#pragma once

#include <optional>

#include "graph/ops/op.h"
#include "graph/passes.h"
#include "graph/rotation.h"
#include "target/held_operand.h"

namespace pruner {

/// Whether kernels of the target's matrix instructions compute data of products themselves.
bool holds_operands(const PassOptions& options);

/// Returns the product that a node computes of its data and a constant matrix; nullopt if it
/// computes something else.
std::optional<HeldOperand> product_of(const OpCall& call);

/// Whether the node is a layer norm or RMS norm of the last dimension.
bool normalizes_rows(const OpCall& call);

/// Whether the node's one kernel may make its data `data`, which another node would else make.
bool may_hold(const OpCall& product, ValueId data, const PassOptions& options);

/// Returns the product of the same data that gates the result of the product `node`: the one reader
/// of the result multiplies it by an element-wise function of the other product alone (SwiGLU).
/// Null: there is none.
const Node* gate_of(const Graph& graph, const Readers& readers, const Node& node);

/// Whether the kernel of a FusedAttention may make its queries, or its keys, from others element by
/// element, as rotary embeddings do.
bool may_rotate(const OpCall& attention, const PassOptions& options);

/// Whether the kernel of a product may normalize the rows of `normalized` that the Add `add` adds
/// to the product's result, or to the sum of the result and a constant.
bool may_add(const Graph& graph, const Node& add, ValueId normalized, const PassOptions& options);

}  // namespace pruner
