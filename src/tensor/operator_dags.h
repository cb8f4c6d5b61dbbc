// The operators as stages: each function adds what TVM's operator of that name adds (names, tags
// and axis order as there) to a DagBuilder and gives the stage that holds the result. Used by
// `--op` and by the lowering of graphs. Data are channels-last ([n, spatial..., c]); shapes must
// fit (CHECK): whoever calls has inferred them. Sums of narrow floats, and what is computed with
// them, are float32 (sum_type()); the result alone has the operands' type.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dag_builder.h"
#include "tensor/products.h"

namespace pruner {

/// The type in which values add up, and in which what follows from sums is computed before it is
/// rounded: float32 for a narrower float (ONNX's stash_type).
constexpr DType sum_type(DType t) { return is_narrow_float(t) ? DType::kFloat32 : t; }

/// How a window moves over the spatial dimensions; an empty vector is all ones (pads: all zeros).
struct Window {
  std::vector<int64_t> stride, dilation, pad_before, pad_after;
  int64_t pad_value = 0;        // value that a convolution reads in the padding
  bool channels_first = false;  // data are [n, c, spatial...], not [n, spatial..., c]
};

struct ConvParams {
  Window window;
  int64_t groups = 1;
  Products products = {};
};

enum class PoolKind : uint8_t { kMax, kAverage, kSum };

struct PoolParams {
  PoolKind kind = PoolKind::kMax;
  std::vector<int64_t> kernel;
  Window window;
  bool count_include_pad = false;  // average: count the padding, not only what lies inside
  bool ceil = false;               // same as `ceil` of window_output()
  bool keeps_padding = false;      // also padding that no window reads
};

/// Extent of a window operator's output along one dimension; with `ceil`, a last window that starts
/// inside the input or the padding before it counts though it ends outside.
int64_t window_output(int64_t input,
                      int64_t kernel,
                      int64_t stride,
                      int64_t dilation,
                      int64_t pad_before,
                      int64_t pad_after,
                      bool ceil = false);

/// Adds a convolution of any spatial rank: data [n, spatial..., ci], weight
/// [kernel..., ci / groups, co], marked layout free. With channels first the weight is
/// [co, ci / groups, kernel...]. A pad stage is added only if something is padded.
StageId add_conv(DagBuilder& b, StageId data, StageId weight, const ConvParams& params);
/// Depthwise: weight [kernel..., c, multiplier], with channels first [c * multiplier, 1,
/// kernel...]; output channel c * multiplier + m.
StageId add_depthwise_conv(DagBuilder& b,
                           StageId data,
                           StageId weight,
                           const Window& window,
                           const Products& products = {});
/// Transposed convolution, weight [kernel..., ci / groups, co]; output extent
/// (in - 1) * stride - pads + dilation * (kernel - 1) + 1 + output_padding. Gathers: the input is
/// spread by stride with zeros between and convolved with the flipped kernel, so an output element
/// is one reduction. Its FLOPs include the products with those zeros (stride^rank times the useful
/// ones).
StageId add_conv_transpose(DagBuilder& b,
                           StageId data,
                           StageId weight,
                           const ConvParams& params,
                           std::span<const int64_t> output_padding = {});

/// The phases of a transposed convolution of dilation 1: along a spatial dimension of stride s,
/// output q * s + p is number q of phase p. Vectors have one element a dimension.
struct TransposedPhases {
  std::vector<int64_t> stride;
  std::vector<int64_t> pad_before;  // outputs that are cut off before the first one
  std::vector<int64_t> first;       // the first phase that is computed
  std::vector<int64_t> outputs;     // the number of outputs of a phase
};

/// Adds a transposed convolution without the products with zeros. All outputs of a phase take the
/// same taps of the kernel, every s-th one.
///
/// data: [n, spatial..., ci]
/// weight: [phases..., taps..., ci / groups, co]; tap a of phase p, which counts from the first one
///     computed, is tap (first + p + pad_before) % s + (taps - 1 - a) * s of the kernel
/// Returns [n, outputs_0, phases_0, outputs_1, phases_1, ..., co]. With all phases, it lies in
/// memory as [n, outputs_0 * s_0, outputs_1 * s_1, ..., co] does.
StageId add_conv_transpose_phases(
    DagBuilder& b, StageId data, StageId weight, const TransposedPhases& phases, int64_t groups);

/// a * b, both first made what they are multiplied as.
Expr product(const Expr& a, const Expr& b, const Products& products = {});

/// Returns the stage in another type, or `stage` itself if `dtype` is the stage's own type.
StageId add_cast(DagBuilder& b, StageId stage, DType dtype);
/// [..., n] as [..., n / width, width]: heads.
StageId add_heads(DagBuilder& b, StageId data, int64_t width);

/// T_dense: data [..., k] times weight [n, k], transposed as TVM has it.
StageId add_dense(DagBuilder& b, StageId data, StageId weight, const Products& products = {});
/// [batch..., m, k] times [batch..., k, n]; a transposed operand has its last two dims exchanged.
/// Batch dims broadcast as in numpy.
StageId add_matmul(DagBuilder& b,
                   StageId lhs,
                   StageId rhs,
                   bool transpose_lhs = false,
                   bool transpose_rhs = false,
                   const Products& products = {});

/// A constant matrix [k, n] of whole numbers with a sign that stand for reals, (code - zero) *
/// scale, with one scale and one zero for each `block` of a column's elements, which divides k.
struct CodedMatrix {
  StageId codes = {};   // int8; bits 8: [k, n]; bits 4: [k / 2, n], the lower half first
  StageId scales = {};  // float32 [k / block, n]
  StageId zeros = {};   // any type, shape of the scales; not valid: all are `zero`
  int bits = 8;
  int64_t block = 1;
  int64_t zero = 0;
};

/// [..., k] of float32 times the matrix, whose elements become float32 where they are multiplied.
StageId add_coded_matmul(DagBuilder& b, StageId data, const CodedMatrix& matrix);

StageId add_pool(DagBuilder& b, StageId data, const PoolParams& params);
/// `value` around the data: output extent before + in + after per dim (negative: cuts). `guarded`:
/// also where there is nothing around them.
StageId add_pad(DagBuilder& b,
                StageId data,
                std::span<const int64_t> before,
                std::span<const int64_t> after,
                double value,
                std::string name = "PaddedInput",
                bool guarded = false);

enum class ReduceKind : uint8_t { kSum, kMean, kMax, kMin, kProd };
StageId add_reduce(
    DagBuilder& b, StageId data, std::span<const int64_t> axes, bool keep_dims, ReduceKind kind);
/// Index (int64) of the largest or smallest element along `axis`; the first of equals, or the last.
StageId add_arg_reduce(
    DagBuilder& b, StageId data, int64_t axis, bool keep_dims, bool largest, bool last = false);
/// T_softmax_maxelem, _exp, _expsum, _norm; with `log` the last stage is x - max - log(sum).
StageId add_softmax(DagBuilder& b, StageId data, int64_t axis, bool log = false);
/// Along `axis`: the largest elements, exp(x - largest), and the sums of these.
struct SoftmaxTerms {
  StageId largest, exps, sum;
};
SoftmaxTerms add_softmax_terms(DagBuilder& b, StageId data, int64_t axis);

/// Tensors that attention reads: query, key and value are [b, heads, positions, width], or
/// [b, positions, heads, width] with `positions_first`. The heads that are read begin at
/// `first_heads`, so that one tensor may be all three. Bias and visible are broadcast to the scores
/// [b, heads, queries, keys].
struct AttentionInputs {
  StageId query, key, value;
  StageId bias = {};     // is added to the scores
  StageId visible = {};  // bool: a score is `hidden` where visible is false
};
struct AttentionParams {
  int64_t heads = 1;    // heads of queries
  int64_t sharing = 1;  // heads of queries per head of keys and values; divides `heads`
  double scale = 1;
  double hidden = 0;
  bool causal = false;       // the last query is as late as the last key, and none sees a later one
  bool nan_is_zero = false;  // a query whose softmax is no number sees nothing (torch)
  // One entry each for query, key and value:
  std::array<bool, 3> positions_first = {};
  std::array<int64_t, 3> first_heads = {};
  Products products = {};
  std::optional<DType> result = {};  // nullopt: the queries' type
};
/// softmax(scale * query * key^T + bias) * value, laid out as the query: what is divided by the
/// sums of the exponentials is the result, as in Dao et al., FlashAttention (2022), section 3.1.
StageId add_attention(DagBuilder& b, const AttentionInputs& in, const AttentionParams& params);

/// (x - mean) / sqrt(variance + epsilon) over `axes`.
StageId add_normalize(DagBuilder& b, StageId data, std::span<const int64_t> axes, double epsilon);
/// add_normalize over the dims from `axis` on, times scale plus shift (an invalid StageId:
/// without); both broadcast to the data.
StageId add_layernorm(
    DagBuilder& b, StageId data, int64_t axis, StageId scale, StageId shift, double epsilon);
/// x / sqrt(mean(x * x) + epsilon) over the dims from `axis` on, of `scale`'s type and times it
/// (Zhang and Sennrich 2019).
StageId add_rms_norm(DagBuilder& b, StageId data, int64_t axis, StageId scale, double epsilon);
/// Local response normalisation over the last axis (ONNX LRN).
StageId add_lrn(DagBuilder& b, StageId data, int64_t size, double alpha, double beta, double bias);

/// The index of a tensor of `shape` that meets `vars`, those of `out_shape`, when the shapes are
/// aligned at their last dim, as in numpy.
std::vector<Expr> broadcast_index(std::span<const int64_t> shape,
                                  std::span<const int64_t> out_shape,
                                  std::span<const Expr> vars);

/// One value a point from one value of each input; shapes broadcast as in numpy.
StageId add_elementwise(DagBuilder& b,
                        std::string name,
                        std::span<const StageId> inputs,
                        const std::function<Expr(std::span<const Expr>)>& fn);
StageId add_add(DagBuilder& b, StageId lhs, StageId rhs);  // T_add

/// An activation by name: "relu", "relu6", "gelu", "sigmoid", "tanh", "silu", "hardswish", ...
struct Activation {
  std::string_view name;
  std::string_view stage;  // TVM's name of the stage: "T_relu"
  Expr (*fn)(const Expr& x);
};
std::span<const Activation> activations();
const Activation* find_activation(std::string_view name);
StageId add_activation(DagBuilder& b, StageId data, const Activation& activation);

}  // namespace pruner
