// The steps by which a network is drawn. A step appends an operator, or a few that belong together,
// to what there is, and returns whether the network may keep them.
#pragma once

#include "graph_maker.h"

namespace pruner {

using Step = bool(GraphMaker&);

// Each group of steps stands in the file of its name.
Step unary, binary, divide, integer_binary, compare, where, cast;  // element_steps
Step matmul, gemm, attention, conv, conv_transpose, einsum;        // contraction_steps
Step max_pool, average_pool, other_pool, resize;                   // window_steps
Step reduce, arg_reduce, softmax, layer_norm, channel_norm, other_norm, scan,
    top_k;                            // reduction_steps
Step concat, joined_products, split;  // join_steps
Step slice, pad, tile, expand, transpose, reshape, squeeze, trilu, depth_to_space, space_to_depth,
    reverse_sequence, center_crop_pad;  // movement_steps
Step gather, gather_elements, gather_nd, one_hot, scatter, scatter_nd, tensor_scatter, grid_sample,
    col2im, bit_shift, found, roi_align, max_unpool, deform_conv;  // indexing_steps
Step quantized_chain, quantize_alone, dequantize_blocks, integer_product, quantized_bytes,
    dynamic_quantization, coded_product, byte_chain;  // quantized_steps
Step attention_heads, attention_operator, recurrent;  // attention_steps
Step dense_block, residual_block, squeeze_excite, down_and_up, spelled_norm, normalized_conv,
    channels_last_block, channel_shuffle, split_and_join, roll, gated_product;  // block_steps

struct StepRow {
  int weight;  // how often the step is tried, in proportion to the others
  Step* step;
};

inline constexpr StepRow kSteps[] = {
    {10, unary},
    {10, binary},
    {4, divide},
    {2, integer_binary},
    {3, compare},
    {3, where},
    {3, cast},
    {8, matmul},
    {3, gemm},
    {2, attention},
    {9, conv},
    {3, conv_transpose},
    {6, max_pool},
    {4, average_pool},
    {2, other_pool},
    {6, reduce},
    {3, arg_reduce},
    {4, softmax},
    {4, layer_norm},
    {3, channel_norm},
    {8, concat},
    {8, joined_products},
    {7, slice},
    {5, split},
    {5, pad},
    {2, tile},
    {2, expand},
    {5, transpose},
    {4, reshape},
    {2, squeeze},
    {3, gather},
    {2, gather_elements},
    {1, gather_nd},
    {1, one_hot},
    {2, trilu},
    {2, depth_to_space},
    {2, space_to_depth},
    {1, reverse_sequence},
    {1, center_crop_pad},
    {2, scatter},
    {4, resize},
    {4, scan},
    {3, top_k},
    {2, einsum},
    {2, other_norm},
    {2, scatter_nd},
    {1, tensor_scatter},
    {2, grid_sample},
    {2, col2im},
    {1, bit_shift},
    {2, found},
    {1, roi_align},
    {1, max_unpool},
    {1, deform_conv},
    {6, quantized_chain},
    {2, quantize_alone},
    {2, dequantize_blocks},
    {3, integer_product},
    {3, quantized_bytes},
    {2, dynamic_quantization},
    {2, coded_product},
    {2, byte_chain},
    {7, attention_heads},
    {2, attention_operator},
    {2, recurrent},
    {5, dense_block},
    {3, residual_block},
    {2, squeeze_excite},
    {3, down_and_up},
    {3, spelled_norm},
    {3, normalized_conv},
    {3, channels_last_block},
    {2, channel_shuffle},
    {4, split_and_join},
    {3, roll},
    {3, gated_product},
};

// The functions below are shared by several steps.

/// Appends what is fused behind a contraction, at times: a bias, a Relu. Returns the last value.
ValueId epilogue(GraphMaker& m, ValueId x, size_t channel_axis);
/// Strides, dilations and pads of a window over the spatial dimensions of `x`.
Attributes window(GraphMaker& m, ValueId x, const Ints& kernel, bool pooled);

}  // namespace pruner
