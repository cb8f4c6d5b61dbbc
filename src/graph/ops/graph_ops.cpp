#include "graph/ops/op.h"
#include "graph/ops/rows.h"

namespace pruner {

using enum Fusion;

static constexpr size_t kAny = 1 << 20;
static constexpr const char* kReduceAttributes = "keepdims:i noop_with_empty_axes:i";
static constexpr const char* kPoolAttributes =
    "auto_pad:s ceil_mode:i channels_last:i count_include_pad:i dilations:I kernel_shape:I pads:I "
    "storage_order:i strides:I";

// clang-format off
static constexpr GraphOp kGraphOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering, first opset
    {"Abs", kElemWise, 1, 1, "", infer_elementwise, lower_elementwise},
    {"Add", kBroadcast, 2, 2, "", infer_elementwise, lower_elementwise},
    {"And", kBroadcast, 2, 2, "", infer_elementwise, lower_elementwise},
    {"ArgMax", kReduce, 1, 1, "axis:i keepdims:i select_last_index:i", infer_arg_reduce, lower_arg_reduce},
    {"ArgMin", kReduce, 1, 1, "axis:i keepdims:i select_last_index:i", infer_arg_reduce, lower_arg_reduce},
    {"AveragePool", kOutEWiseFusable, 1, 1, kPoolAttributes, infer_pool, lower_pool},
    {"BatchNormalization", kBroadcast, 5, 5, "epsilon:f training_mode:i", infer_channel_norm, lower_batch_norm},
    {"Cast", kElemWise, 1, 1, "to:s", infer_cast, lower_elementwise},
    {"Ceil", kElemWise, 1, 1, "", infer_float_elementwise, lower_elementwise},
    {"Clip", kElemWise, 1, 3, "", infer_elementwise, lower_elementwise},
    {"Concat", kInjective, 1, kAny, "axis:i", infer_concat, lower_concat},
    {"Constant", kConstant, 0, 0, "value:t", infer_constant, nullptr},
    {"ConstantOfShape", kConstant, 1, 1, "value:t", infer_constant_of_shape, nullptr},
    {"Conv", kOutEWiseFusable, 2, 3, "auto_pad:s channels_last:i dilations:I group:i kernel_shape:I pads:I strides:I", infer_conv, lower_conv},
    {"ConvTranspose", kOutEWiseFusable, 2, 3, "auto_pad:s channels_last:i dilations:I group:i kernel_shape:I output_padding:I output_shape:I pads:I strides:I", infer_conv_transpose, lower_conv_transpose},
    {"Cos", kElemWise, 1, 1, "", infer_float_elementwise, lower_elementwise},
    {"Div", kBroadcast, 2, 2, "", infer_elementwise, lower_elementwise},
    {"Dropout", kAlias, 1, 3, "", infer_dropout, nullptr},
    {"Elu", kElemWise, 1, 1, "alpha:f", infer_float_elementwise, lower_elementwise},
    {"Equal", kBroadcast, 2, 2, "", infer_elementwise, lower_elementwise},
    {"Erf", kElemWise, 1, 1, "", infer_float_elementwise, lower_elementwise},
    {"Exp", kElemWise, 1, 1, "", infer_float_elementwise, lower_elementwise},
    {"Expand", kInjective, 2, 2, "", infer_expand, lower_expand},
    {"Flatten", kAlias, 1, 1, "axis:i", infer_flatten, nullptr},
    {"Floor", kElemWise, 1, 1, "", infer_float_elementwise, lower_elementwise},
    {"Gather", kInjective, 2, 2, "axis:i", infer_gather, lower_gather},
    {"Gelu", kElemWise, 1, 1, "approximate:s", infer_float_elementwise, lower_elementwise, 20},
    {"Gemm", kOutEWiseFusable, 2, 3, "alpha:f beta:f transA:i transB:i", infer_gemm, lower_gemm},
    {"GlobalAveragePool", kOutEWiseFusable, 1, 1, "channels_last:i", infer_global_pool, lower_global_pool},
    {"GlobalMaxPool", kOutEWiseFusable, 1, 1, "channels_last:i", infer_global_pool, lower_global_pool},
    {"Greater", kBroadcast, 2, 2, "", infer_elementwise, lower_elementwise},
    {"GreaterOrEqual", kBroadcast, 2, 2, "", infer_elementwise, lower_elementwise},
    {"HardSigmoid", kElemWise, 1, 1, "alpha:f beta:f", infer_float_elementwise, lower_elementwise},
    {"HardSwish", kElemWise, 1, 1, "", infer_float_elementwise, lower_elementwise, 14},
    {"Identity", kAlias, 1, 1, "", infer_identity, nullptr},
    {"InstanceNormalization", kOpaque, 3, 3, "epsilon:f", infer_channel_norm, lower_instance_norm},
    {"LRN", kOpaque, 1, 1, "alpha:f beta:f bias:f channels_last:i size:i", infer_lrn, lower_lrn},
    {"LayerNormalization", kOpaque, 2, 3, "axis:i epsilon:f", infer_layernorm, lower_layernorm, 17},
    {"LeakyRelu", kElemWise, 1, 1, "alpha:f", infer_float_elementwise, lower_elementwise},
    {"Less", kBroadcast, 2, 2, "", infer_elementwise, lower_elementwise},
    {"LessOrEqual", kBroadcast, 2, 2, "", infer_elementwise, lower_elementwise},
    {"Log", kElemWise, 1, 1, "", infer_float_elementwise, lower_elementwise},
    {"LogSoftmax", kOpaque, 1, 1, "axis:i", infer_softmax, lower_softmax},
    {"MatMul", kOutEWiseFusable, 2, 2, "transA:i transB:i", infer_matmul, lower_matmul},
    {"Max", kBroadcast, 1, kAny, "", infer_elementwise, lower_elementwise},
    {"MaxPool", kOutEWiseFusable, 1, 1, kPoolAttributes, infer_pool, lower_pool},
    {"Min", kBroadcast, 1, kAny, "", infer_elementwise, lower_elementwise},
    {"Mod", kBroadcast, 2, 2, "fmod:i", infer_elementwise, lower_elementwise},
    {"Mul", kBroadcast, 2, 2, "", infer_elementwise, lower_elementwise},
    {"Neg", kElemWise, 1, 1, "", infer_elementwise, lower_elementwise},
    {"Not", kElemWise, 1, 1, "", infer_elementwise, lower_elementwise},
    {"Or", kBroadcast, 2, 2, "", infer_elementwise, lower_elementwise},
    {"PRelu", kBroadcast, 2, 2, "", infer_float_elementwise, lower_elementwise},
    {"Pad", kInjective, 2, 4, "mode:s", infer_pad, lower_pad},
    {"Pow", kBroadcast, 2, 2, "", infer_elementwise, lower_elementwise},
    {"Range", kConstant, 3, 3, "", infer_range, nullptr},
    {"Reciprocal", kElemWise, 1, 1, "", infer_float_elementwise, lower_elementwise},
    {"ReduceL1", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce},
    {"ReduceL2", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce},
    {"ReduceLogSum", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce},
    {"ReduceMax", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce},
    {"ReduceMean", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce},
    {"ReduceMin", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce},
    {"ReduceProd", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce},
    {"ReduceSum", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce},
    {"ReduceSumSquare", kReduce, 1, 2, kReduceAttributes, infer_reduce, lower_reduce},
    {"Relu", kElemWise, 1, 1, "", infer_elementwise, lower_elementwise},
    {"Reshape", kAlias, 2, 2, "allowzero:i", infer_reshape, nullptr},
    {"Resize", kInjective, 1, 4, "antialias:i axes:I coordinate_transformation_mode:s keep_aspect_ratio_policy:s mode:s nearest_mode:s", infer_resize, lower_resize},
    {"Round", kElemWise, 1, 1, "", infer_float_elementwise, lower_elementwise},
    {"Selu", kElemWise, 1, 1, "alpha:f gamma:f", infer_float_elementwise, lower_elementwise},
    {"Shape", kConstant, 1, 1, "end:i start:i", infer_shape, nullptr, 15},
    {"Sigmoid", kElemWise, 1, 1, "", infer_float_elementwise, lower_elementwise},
    {"Sign", kElemWise, 1, 1, "", infer_elementwise, lower_elementwise},
    {"Sin", kElemWise, 1, 1, "", infer_float_elementwise, lower_elementwise},
    {"Size", kConstant, 1, 1, "", infer_size, nullptr},
    {"Slice", kInjective, 3, 5, "", infer_slice, lower_slice},
    {"Softmax", kOpaque, 1, 1, "axis:i", infer_softmax, lower_softmax},
    {"Softplus", kElemWise, 1, 1, "", infer_float_elementwise, lower_elementwise},
    {"Softsign", kElemWise, 1, 1, "", infer_float_elementwise, lower_elementwise},
    {"Split", kInjective, 1, 2, "axis:i num_outputs:i", infer_split, lower_split},
    {"Sqrt", kElemWise, 1, 1, "", infer_float_elementwise, lower_elementwise},
    {"Squeeze", kAlias, 1, 2, "", infer_squeeze, nullptr},
    {"Sub", kBroadcast, 2, 2, "", infer_elementwise, lower_elementwise},
    {"Sum", kBroadcast, 1, kAny, "", infer_elementwise, lower_elementwise},
    {"Tanh", kElemWise, 1, 1, "", infer_float_elementwise, lower_elementwise},
    {"Tile", kInjective, 2, 2, "", infer_tile, lower_tile},
    {"Transpose", kInjective, 1, 1, "perm:I", infer_transpose, lower_transpose},
    {"Unsqueeze", kAlias, 2, 2, "", infer_unsqueeze, nullptr},
    {"Where", kBroadcast, 3, 3, "", infer_elementwise, lower_elementwise},
    {"Xor", kBroadcast, 2, 2, "", infer_elementwise, lower_elementwise},
};
// clang-format on

std::span<const GraphOp> graph_ops() { return kGraphOps; }

}  // namespace pruner
