// FusedAttention, of ours: softmax(scale * query * key^T + bias) * value as one kernel. Inputs are
// query, key and value, each [b, heads, positions, width] or, with its element of positions_first,
// [b, positions, heads, width], of which the heads from its element of first_heads on are read; a
// bias that is added to the scores [b, heads, queries, keys]; and where they are visible (else
// `hidden`). Operands of 16 bits have a result of their type, or of float32 where the attribute
// `sums` says so.
#include "graph/ops/op.h"
#include "tensor/operator_dags.h"

namespace pruner {

static AttentionParams params_of(const OpCall& call) {
  AttentionParams params;
  params.heads = call.integer("heads", 1);
  params.sharing = call.integer("sharing", 1);
  params.scale = call.number("scale", 1);
  params.hidden = call.number("hidden", 0);
  params.causal = call.integer("causal", 0) != 0;
  params.result = call.sums();
  params.nan_is_zero = call.integer("nan_is_zero", 0) != 0;
  const std::vector<int64_t> order = call.integers("positions_first");
  if (order.size() == params.positions_first.size())
    std::ranges::transform(order, params.positions_first.begin(), [](int64_t i) { return i != 0; });
  const std::vector<int64_t> first = call.integers("first_heads");
  if (first.size() == params.first_heads.size())
    std::ranges::copy(first, params.first_heads.begin());
  return params;
}

static Types infer_attention(const OpCall& call) {
  const AttentionParams p = params_of(call);
  if (p.heads < 1 || p.sharing < 1 || p.heads % p.sharing != 0)
    return Error("heads is ", p.heads, ", expected a multiple of sharing ", p.sharing);
  const auto dim_of_positions = [&](size_t i) -> size_t { return p.positions_first[i] ? 1 : 2; };
  for (size_t i = 0; i < 3; ++i) {
    const int64_t first = p.first_heads[i], count = i == 0 ? p.heads : p.heads / p.sharing;
    const size_t heads = 3 - dim_of_positions(i);
    if (call.rank(i) != 4 || first < 0 || first + count > call.shape(i)[heads] ||
        call.shape(i)[0] != call.shape(0)[0])
      return Error(print_shape(call.shape(i)), " has no ", count, " heads from ", first, " on");
    const DType dtype = call.input(i).dtype;
    if (dtype != DType::kFloat32 && !is_narrow_float(dtype))
      return Error(dtype_name(dtype), ", expected float32 or a type of 16 bits");
    if (dtype != call.input(0).dtype)
      return Error(dtype_name(dtype), " beside queries of ", dtype_name(call.input(0).dtype));
  }
  const std::vector<int64_t>&q = call.shape(0), &k = call.shape(1), &v = call.shape(2);
  const int64_t queries = q[dim_of_positions(0)], keys = k[dim_of_positions(1)];
  if (q[3] != k[3] || keys != v[dim_of_positions(2)]) {
    return Error("query ",
                 print_shape(q),
                 ", key ",
                 print_shape(k),
                 " and value ",
                 print_shape(v),
                 " do not fit");
  }
  if (p.causal && keys < queries) return Error("causal, with fewer keys than queries");
  const std::vector<int64_t> scores = {q[0], p.heads, queries, keys};
  for (size_t i = 3; i < call.num_inputs(); ++i) {
    if (!call.has(i)) continue;
    const Result<std::vector<int64_t>> both = broadcast_shapes(scores, call.shape(i));
    if (!both.ok() || *both != scores)
      return Error(print_shape(call.shape(i)), " does not fit scores of ", print_shape(scores));
  }
  std::vector<int64_t> out = q;
  out[3 - dim_of_positions(0)] = p.heads;
  out[3] = v[3];
  return {{{p.result.value_or(call.input(0).dtype), out}}};
}

static StageId lower_attention(const OpCall& call, StageSink& to) {
  AttentionInputs in;
  in.query = to.input(call, 0);
  in.key = to.input(call, 1);
  in.value = to.input(call, 2);
  if (call.has(3)) in.bias = to.input(call, 3);
  if (call.has(4)) in.visible = to.input(call, 4);
  return add_attention(to.dag, in, params_of(call));
}

// clang-format off
static constexpr GraphOp kAttentionOps[] = {
    GraphOp{"FusedAttention", Fusion::kOpaque, 3, 5, "causal:i first_heads:I heads:i hidden:f nan_is_zero:i positions_first:I scale:f sharing:i sums:s", infer_attention, lower_attention}.with(kOwn).shown_as("attention"),
};
// clang-format on

std::span<const GraphOp> attention_ops() { return kAttentionOps; }

}  // namespace pruner
