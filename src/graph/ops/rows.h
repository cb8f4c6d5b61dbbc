// The functions that the rows of kGraphOps name, by what they do: infer_* checks a call and gives
// the types of its outputs, lower_* adds the stages of one output.
#pragma once

#include "graph/ops/op.h"

namespace pruner {

using Types = Result<std::vector<TensorType>>;

Types infer_arg_reduce(const OpCall& call);
Types infer_cast(const OpCall& call);
Types infer_channel_norm(const OpCall& call);
Types infer_concat(const OpCall& call);
Types infer_constant(const OpCall& call);
Types infer_constant_of_shape(const OpCall& call);
Types infer_conv(const OpCall& call);
Types infer_conv_transpose(const OpCall& call);
Types infer_dropout(const OpCall& call);
Types infer_elementwise(const OpCall& call);
Types infer_expand(const OpCall& call);
Types infer_flatten(const OpCall& call);
Types infer_float_elementwise(const OpCall& call);
Types infer_gather(const OpCall& call);
Types infer_gemm(const OpCall& call);
Types infer_global_pool(const OpCall& call);
Types infer_identity(const OpCall& call);
Types infer_layernorm(const OpCall& call);
Types infer_lrn(const OpCall& call);
Types infer_matmul(const OpCall& call);
Types infer_pad(const OpCall& call);
Types infer_pool(const OpCall& call);
Types infer_range(const OpCall& call);
Types infer_reduce(const OpCall& call);
Types infer_reshape(const OpCall& call);
Types infer_resize(const OpCall& call);
Types infer_shape(const OpCall& call);
Types infer_size(const OpCall& call);
Types infer_slice(const OpCall& call);
Types infer_softmax(const OpCall& call);
Types infer_split(const OpCall& call);
Types infer_squeeze(const OpCall& call);
Types infer_tile(const OpCall& call);
Types infer_transpose(const OpCall& call);
Types infer_unsqueeze(const OpCall& call);

StageId lower_arg_reduce(const OpCall& call, StageSink& to);
StageId lower_batch_norm(const OpCall& call, StageSink& to);
StageId lower_concat(const OpCall& call, StageSink& to);
StageId lower_conv(const OpCall& call, StageSink& to);
StageId lower_conv_transpose(const OpCall& call, StageSink& to);
StageId lower_elementwise(const OpCall& call, StageSink& to);
StageId lower_expand(const OpCall& call, StageSink& to);
StageId lower_gather(const OpCall& call, StageSink& to);
StageId lower_gemm(const OpCall& call, StageSink& to);
StageId lower_global_pool(const OpCall& call, StageSink& to);
StageId lower_instance_norm(const OpCall& call, StageSink& to);
StageId lower_layernorm(const OpCall& call, StageSink& to);
StageId lower_lrn(const OpCall& call, StageSink& to);
StageId lower_matmul(const OpCall& call, StageSink& to);
StageId lower_pad(const OpCall& call, StageSink& to);
StageId lower_pool(const OpCall& call, StageSink& to);
StageId lower_reduce(const OpCall& call, StageSink& to);
StageId lower_resize(const OpCall& call, StageSink& to);
StageId lower_slice(const OpCall& call, StageSink& to);
StageId lower_softmax(const OpCall& call, StageSink& to);
StageId lower_split(const OpCall& call, StageSink& to);
StageId lower_tile(const OpCall& call, StageSink& to);
StageId lower_transpose(const OpCall& call, StageSink& to);

/// The output of a call whose row is kConstant.
Tensor evaluate_constant(const OpCall& call);

}  // namespace pruner
