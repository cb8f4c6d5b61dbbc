// Normalizations that ONNX defines by others, and reductions of more than one step. Sums of narrow
// floats are float32's (stash_type).
#include <algorithm>
#include <limits>
#include <numeric>

#include "graph/functions/body.h"
#include "tensor/operator_dags.h"

namespace pruner {

static std::vector<int64_t> axes_from(int64_t first, int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(std::max<int64_t>(rank - first, 0)));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

// [c] as [1, c, 1, ...], to stand beside data of `rank` dimensions.
static Term by_channel(Body& b, Term x, int64_t rank) {
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape[1] = x.extent(0);
  return b.reshape(x, shape);
}

// (x - mean) / sqrt(variance + epsilon) of each of the groups into which the channels are parted.
static void group_normalization(Body& b) {
  const Term x = b.input(0);
  const int64_t groups = b.call().integer("num_groups", 1), rank = x.rank();
  if (rank < 2 || groups < 1 || x.extent(1) % groups != 0)
    return b.fail(Error(groups, " groups do not part data of shape ", print_shape(x.shape())));
  const Term grouped = b.reshape(x, {x.extent(0), groups, -1});
  Term unit = b.add("LayerNormalization",
                    {grouped, b.scalar(1, x.dtype())},
                    {{"axis", int64_t{2}}, {"epsilon", b.call().number("epsilon", 1e-5)}});
  Term scale = b.input(1), bias = b.input(2);
  if (b.opset() < 21) {  // they were the groups', later the channels'
    if (scale.extent(0) != groups || bias.extent(0) != groups)
      return b.fail(Error("scale and bias have to be of ", groups, " groups"));
    unit = unit * b.reshape(scale, {1, groups, 1}) + b.reshape(bias, {1, groups, 1});
    return b.output(0, b.reshape(unit, x.shape()));
  }
  unit = b.reshape(unit, x.shape());
  b.output(0, unit * by_channel(b, scale, rank) + by_channel(b, bias, rank));
}

// ONNX Runtime's name of RMSNormalization.
static void simplified_layer_normalization(Body& b) {
  const OpCall& call = b.call();
  b.output(0,
           b.add("RMSNormalization",
                 {b.input(0), b.input(1)},
                 {{"axis", call.integer("axis", -1)}, {"epsilon", call.number("epsilon", 1e-5)}}));
}

// x / |x|; nothing but zeros stays as it is.
static void lp_normalization(Body& b) {
  const Term x = b.input(0);
  const Result<int64_t> axis = b.call().axis("axis", -1, x.rank());
  if (!axis.ok()) return b.fail(axis.error());
  const int64_t p = b.call().integer("p", 2);
  if (p != 1 && p != 2) return b.fail(Error("p is ", p, ", expected 1 or 2"));
  const Term norm = b.reduce(p == 1 ? "ReduceL1" : "ReduceL2", x, {{*axis}});
  const Term zero = b.add("Equal", {norm, b.scalar(0, x.dtype())});
  b.output(0, x / b.add("Where", {zero, b.scalar(1, x.dtype()), norm}));
}

// With the statistics of the data themselves, which move the running ones. The upgrade to the
// newest form gives a BatchNormalization that trains this name.
static void training_batch_normalization(Body& b) {
  const Term x = b.input(0);
  const int64_t rank = x.rank();
  if (rank < 2) return b.fail(Error("data of shape ", print_shape(x.shape()), " have no channels"));
  const double momentum = b.call().number("momentum", 0.9);
  std::vector<int64_t> axes = axes_from(1, rank);
  axes[0] = 0;
  const Term mean = b.reduce("ReduceMean", x, axes), centred = x - mean;
  const Term variance = b.reduce("ReduceMean", centred * centred, axes);
  const Term unit = centred / b.add("Sqrt", {variance + b.call().number("epsilon", 1e-5)});
  b.output(0, unit * by_channel(b, b.input(1), rank) + by_channel(b, b.input(2), rank));
  const auto moved = [&](size_t i, Term now) {
    const Term flat = b.cast(b.reshape(now, {x.extent(1)}), b.input(i).dtype());
    return b.input(i) * momentum + flat * (1 - momentum);
  };
  b.output(1, moved(3, mean));
  b.output(2, moved(4, variance));
}

// Its mean and the inverse of its deviation, beside the result.
static void statistical_layer_normalization(Body& b) {
  const Term x = b.input(0);
  const Result<int64_t> axis = b.call().axis("axis", -1, x.rank());
  if (!axis.ok()) return b.fail(axis.error());
  const double epsilon = b.call().number("epsilon", 1e-5);
  std::vector<Term> inputs = {x, b.input(1)};
  if (b.has(2)) inputs.push_back(b.input(2));
  b.output(0, b.add("LayerNormalization", inputs, {{"axis", *axis}, {"epsilon", epsilon}}));
  const Term wide = b.cast(x, sum_type(x.dtype()));
  const std::vector<int64_t> axes = axes_from(*axis, x.rank());
  const Term mean = b.reduce("ReduceMean", wide, axes), centred = wide - mean;
  const Term variance = b.reduce("ReduceMean", centred * centred, axes);
  b.output(1, mean);
  b.output(2, b.add("Reciprocal", {b.add("Sqrt", {variance + epsilon})}));
}

static void mean_variance_normalization(Body& b) {
  std::vector<int64_t> axes = b.call().integers("axes");
  if (!b.call().has_attribute("axes")) axes = {0, 2, 3};
  const Term x = b.input(0);
  const Term centred = x - b.reduce("ReduceMean", x, axes);
  const Term variance = b.reduce("ReduceMean", centred * centred, axes);
  b.output(0, centred / (b.add("Sqrt", {variance}) + 1e-9));
}

// log(sum(exp(x))), what is largest taken out first; infinite ones stay in.
static void reduce_log_sum_exp(Body& b) {
  const Term x = b.input(0);
  std::vector<Term> inputs = {x};
  if (b.has(1)) inputs.push_back(b.input(1));
  if (b.call().has_attribute("axes")) {  // before opset 18
    inputs.resize(1);
    inputs.push_back(b.integers(b.call().integers("axes")));
  }
  const auto noop = b.call().integer("noop_with_empty_axes", 0);
  const auto reduced = [&](const char* op, Term of, int64_t keep) {
    inputs[0] = of;
    return b.add(op, inputs, {{"keepdims", keep}, {"noop_with_empty_axes", noop}});
  };
  const int64_t keep = b.call().integer("keepdims", 1);
  const Term most = reduced("ReduceMax", x, 1);
  const Term infinity = b.scalar(std::numeric_limits<double>::infinity(), x.dtype());
  const Term infinite = b.add("Equal", {b.add("Abs", {most}), infinity});
  const Term taken = b.add("Where", {infinite, b.scalar(0, x.dtype()), most});
  const Term sum = b.add("Log", {reduced("ReduceSum", b.add("Exp", {x - taken}), keep)});
  b.output(0, keep ? sum + taken : sum + b.reshape(taken, sum.shape()));
}

// The sum of data, what is skipped to here and a bias.
static Term skip_sum(Body& b, size_t bias) {
  const Term sum = b.input(0) + b.input(1);
  return b.has(bias) ? sum + b.input(bias) : sum;
}

static void skip_layer_normalization(Body& b) {
  const Term sum = skip_sum(b, 4);
  std::vector<Term> inputs = {sum, b.input(2)};
  if (b.has(3)) inputs.push_back(b.input(3));
  const double epsilon = b.call().number("epsilon", 1e-12);
  b.output(0, b.add("LayerNormalization", inputs, {{"epsilon", epsilon}}));
  b.output(3, sum);
}

static void skip_simplified_layer_normalization(Body& b) {
  const Term sum = skip_sum(b, 3);
  const double epsilon = b.call().number("epsilon", 1e-12);
  b.output(0, b.add("RMSNormalization", {sum, b.input(2)}, {{"epsilon", epsilon}}));
  b.output(3, sum);
}

// The embeddings of words, places and segments, summed and normalized; how long each text is.
static void embed_layer_normalization(Body& b) {
  const Term ids = b.input(0);
  for (const size_t i : {2, 3, 5, 6}) {
    if (!b.has(i)) return b.fail(Error("input ", i, " is missing"));
  }
  const auto looked_up = [&](size_t table, Term at) {
    return b.add("Gather", {b.input(table), at}, {{"axis", int64_t{0}}});
  };
  Term sum = looked_up(2, ids);
  sum = sum + (b.has(8) ? looked_up(3, b.input(8)) : b.slice(b.input(3), 0, 0, ids.extent(1)));
  if (b.has(1) && b.has(4)) sum = sum + looked_up(4, b.input(1));
  b.output(0,
           b.add("LayerNormalization",
                 {sum, b.input(5), b.input(6)},
                 {{"epsilon", b.call().number("epsilon", 1e-12)}}));
  if (b.wants(1)) {
    const Term none = b.constant(Tensor(DType::kInt32, {ids.extent(0)}));
    const Term mask = b.has(7) ? b.cast(b.input(7), DType::kInt32) : none;
    b.output(1, b.has(7) ? b.reshape(b.reduce("ReduceSum", mask, {{1}}), {ids.extent(0)}) : none);
  }
  b.output(2, sum);
}

// clang-format off
static constexpr Function kNormalizationFunctions[] = {
    {"GroupNormalization", 3, 3, "epsilon:f num_groups:i stash_type:i", group_normalization},
    {"LpNormalization", 1, 1, "axis:i p:i", lp_normalization},
    {"MeanVarianceNormalization", 1, 1, "axes:I", mean_variance_normalization},
    {kStatisticalLayerNormalization, 2, 3, "axis:i epsilon:f stash_type:i", statistical_layer_normalization},
    {kTrainingBatchNormalization, 5, 5, "epsilon:f momentum:f training_mode:i", training_batch_normalization},
    {"ReduceLogSumExp", 1, 2, "axes:I keepdims:i noop_with_empty_axes:i", reduce_log_sum_exp},
    {"SimplifiedLayerNormalization", 2, 2, "axis:i epsilon:f stash_type:i", simplified_layer_normalization},
    {"com.microsoft::EmbedLayerNormalization", 1, 9, "epsilon:f mask_index_type:i", embed_layer_normalization},
    {"com.microsoft::SimplifiedLayerNormalization", 2, 2, "axis:i epsilon:f stash_type:i", simplified_layer_normalization},
    {"com.microsoft::SkipLayerNormalization", 3, 5, "epsilon:f", skip_layer_normalization},
    {"com.microsoft::SkipSimplifiedLayerNormalization", 3, 4, "epsilon:f", skip_simplified_layer_normalization},
};
// clang-format on

std::span<const Function> normalization_functions() { return kNormalizationFunctions; }

}  // namespace pruner
