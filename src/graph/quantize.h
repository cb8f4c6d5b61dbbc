// Quantization after training: a network of float32 and the ranges of its values -> the network in
// QDQ form, which ONNX Runtime reads, too. Contractions read unsigned bytes and constant signed
// ones; sums of what is quantized, means and what only moves elements stay in bytes between them.
#pragma once

#include <span>

#include "graph/graph.h"

namespace pruner {

/// Whether a network converts to or from steps, or adds up products of integers.
bool is_quantized(const Graph& graph);

/// The least and the greatest element that a value was found to have.
struct ValueRange {
  double low = 0, high = 0;
};

/// The values whose ranges are asked for, of a network that was prepared; an error where there are
/// none, or where it is quantized already.
Result<std::vector<ValueId>> values_to_quantize(const Graph& graph);

/// The network with few spellings, and batch norms in the weights: what is quantized.
Graph prepared_to_quantize(Graph graph);

/// The network with other outputs: the least and the greatest element of each value, two by two.
Graph with_ranges_of(Graph graph, std::span<const ValueId> values);

/// The network in QDQ form, to be exported. Each value has the range that stands in its place:
/// min-max in 256 steps, 0 among them. A weight has a scale for each output, and no zero point.
Graph quantized(Graph graph, std::span<const ValueId> values, std::span<const ValueRange> ranges);

}  // namespace pruner
