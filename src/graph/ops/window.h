// Functions that convolutions and pools share: the window's attributes (strides, dilations, pads,
// auto_pad) are read from a node and checked against its input.
#pragma once

#include "graph/ops/op.h"
#include "tensor/operator_dags.h"

namespace pruner {

/// Extents of the spatial dimensions of input 0, wherever the channels stand.
std::vector<int64_t> spatial_shape(const OpCall& call);
int64_t channels(const OpCall& call);
bool channels_last(const OpCall& call);
/// Whether the node is a Conv, a ConvTranspose, or phases of a ConvTranspose.
bool is_convolution(const Node& node);
/// A Conv of one input channel a group; several output channels a group are its multiplier.
bool is_depthwise(const OpCall& call);
/// [n, c, spatial...], or [n, spatial..., c] when the node is channels-last.
std::vector<int64_t> data_shape(const OpCall& call,
                                int64_t n,
                                int64_t c,
                                std::span<const int64_t> spatial);

/// The node's window over its input with auto_pad resolved; vectors have one element a spatial
/// dimension.
Result<Window> window_of(const OpCall& call, std::span<const int64_t> kernel);
/// The output's spatial extents; an error when the kernel doesn't fit.
Result<std::vector<int64_t>> window_outputs(const OpCall& call,
                                            std::span<const int64_t> kernel,
                                            const Window& window,
                                            bool ceil);

/// A ConvTranspose's window with the pads that output_shape and auto_pad imply, its output extents,
/// and the output padding that is added at the end; vectors have one element a spatial dimension.
struct TransposedWindow {
  Window window;
  std::vector<int64_t> output, output_padding;
};
Result<TransposedWindow> transposed_window(const OpCall& call, std::span<const int64_t> kernel);

/// Outputs along one dimension, from `begin` up to `end`.
struct TapOutputs {
  int64_t begin = 0, end = 0;
  bool empty() const { return begin == end; }
};
/// Returns the outputs for which tap `tap` of dimension d reads one of `in` data, not padding.
TapOutputs outputs_on_data(const Window& window, size_t d, int64_t tap, int64_t in, int64_t out);

/// The permutation `order` of a stage, as an injective stage (the same stage if nothing moves).
StageId add_transpose(DagBuilder& dag, StageId data, std::span<const int64_t> order);

/// Input 0 in channels-last form, and what a stage in that form is in the node's own form.
StageId data_channels_last(const OpCall& call, StageSink& to);
StageId result_in_layout(const OpCall& call, StageSink& to, StageId result);

}  // namespace pruner
