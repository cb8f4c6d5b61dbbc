// Operators that fold whole dimensions: reductions, softmax, normalisations.
#include <algorithm>
#include <numeric>

#include "support/check.h"
#include "tensor/operator_dags.h"

namespace pruner {

// A shape split into the dims that are reduced and those that stay.
struct ReducedShape {
  std::vector<int64_t> axes, out, extents;
  bool keep_dims;
  size_t rank;

  ReducedShape(const std::vector<int64_t>& in, std::span<const int64_t> reduced, bool keep)
      : axes(reduced.begin(), reduced.end()), keep_dims(keep), rank(in.size()) {
    std::sort(axes.begin(), axes.end());
    for (size_t d = 0; d < rank; ++d) {
      if (is_reduced(d)) extents.push_back(in[d]);
      if (!is_reduced(d)) out.push_back(in[d]);
      if (is_reduced(d) && keep) out.push_back(1);
    }
  }
  bool is_reduced(size_t dim) const {
    return std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(dim));
  }
  /// The input's index for output variables and reduce variables.
  std::vector<Expr> input_index(std::span<const Expr> i, std::span<const Expr> r) const {
    std::vector<Expr> index;
    size_t next_out = 0, next_reduced = 0;
    for (size_t d = 0; d < rank; ++d) {
      index.push_back(is_reduced(d) ? r[next_reduced++] : i[next_out]);
      next_out += keep_dims || !is_reduced(d);
    }
    return index;
  }
  /// The output's index at a point of the input.
  std::vector<Expr> output_index(std::span<const Expr> point) const {
    std::vector<Expr> index;
    for (size_t d = 0; d < rank; ++d) {
      if (!is_reduced(d)) index.push_back(point[d]);
      if (is_reduced(d) && keep_dims) index.push_back(0);
    }
    return index;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (size_t d = 0; d < out.size(); ++d) names.push_back("ax" + std::to_string(d));
    for (int64_t axis : axes) names.push_back("k" + std::to_string(axis));
    return names;
  }
  int64_t size() const {
    return std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
  }
};

// Reduces fn(value, its point) over the axes of `shape`.
static StageId reduce_over(DagBuilder& b,
                           std::string name,
                           StageId data,
                           const ReducedShape& shape,
                           Combiner combiner,
                           const std::function<Expr(Expr, std::span<const Expr>)>& fn,
                           std::string tag = "comm_reduce") {
  const auto body = [&](std::span<const Expr> i, std::span<const Expr> r) {
    const std::vector<Expr> point = shape.input_index(i, r);
    return fn(b.at(data, point), point);
  };
  return b.reduce(
      std::move(name), shape.out, shape.extents, combiner, body, std::move(tag), shape.names());
}

static Expr value_itself(Expr value, std::span<const Expr>) { return value; }
static Expr widened(Expr value, std::span<const Expr>) {
  return cast(sum_type(value->dtype), value);
}

// value of `rows` for a point of the data that `shape` reduces.
static Expr row_value(const DagBuilder& b,
                      StageId rows,
                      const ReducedShape& shape,
                      std::span<const Expr> point) {
  return b.at(rows, shape.output_index(point));
}

// fn(value, its point) at every point of the data.
static StageId map_points(DagBuilder& b,
                          std::string name,
                          StageId data,
                          std::string tag,
                          const std::function<Expr(Expr, std::span<const Expr>)>& fn) {
  const auto body = [&](std::span<const Expr> i) {
    return fn(b.at(data, {i.begin(), i.end()}), i);
  };
  return b.compute(std::move(name), b.shape(data), body, std::move(tag));
}

StageId add_reduce(
    DagBuilder& b, StageId data, std::span<const int64_t> axes, bool keep_dims, ReduceKind kind) {
  // In the order of ReduceKind.
  static constexpr Combiner kCombiners[] = {
      Combiner::kSum, Combiner::kSum, Combiner::kMax, Combiner::kMin, Combiner::kProd};
  if (axes.empty()) return data;
  const ReducedShape shape(b.shape(data), axes, keep_dims);
  const DType dtype = b.stage(data).dtype;
  const Combiner combiner = kCombiners[static_cast<size_t>(kind)];
  const bool selects = combiner == Combiner::kMax || combiner == Combiner::kMin;
  const StageId reduced = reduce_over(
      b, b.stage(data).name + "_red", data, shape, combiner, selects ? value_itself : widened);
  if (kind != ReduceKind::kMean) return add_cast(b, reduced, dtype);
  return map_points(b, "T_divide", reduced, "elemwise", [&](Expr sum, auto) {
    if (!is_float(sum->dtype)) return floor_div(sum, shape.size());
    return cast(dtype, sum / float_imm(static_cast<double>(shape.size())));
  });
}

StageId add_arg_reduce(
    DagBuilder& b, StageId data, int64_t axis, bool keep_dims, bool largest, bool last) {
  const ReducedShape shape(b.shape(data), std::span(&axis, 1), keep_dims);
  const std::string name = b.stage(data).name;
  const StageId extreme = reduce_over(
      b, name + "_red", data, shape, largest ? Combiner::kMax : Combiner::kMin, value_itself);
  // A value that is no extreme gives an index that the fold never chooses before a real one. NaN is
  // an extreme, though NaN equals nothing.
  const auto index_if_equal = [&](Expr value, std::span<const Expr> point) {
    Expr equal = binary(BinaryOp::kEq, value, row_value(b, extreme, shape, point));
    if (is_float(value->dtype)) {
      equal = binary(BinaryOp::kOr, equal, binary(BinaryOp::kNe, value, value));
    }
    return select(equal, point[axis], last ? Expr(-1) : Expr(shape.size()));
  };
  return reduce_over(b,
                     name + (largest ? "_argmax" : "_argmin"),
                     data,
                     shape,
                     last ? Combiner::kMax : Combiner::kMin,
                     index_if_equal);
}

static constexpr const char* kSoftmaxTag = "softmax_output";

// exp(x - max): no exponential overflows.
SoftmaxTerms add_softmax_terms(DagBuilder& b, StageId data, int64_t axis) {
  const ReducedShape shape(b.shape(data), std::span(&axis, 1), false);
  const StageId largest =
      reduce_over(b, "T_softmax_maxelem", data, shape, Combiner::kMax, value_itself, kSoftmaxTag);
  const StageId exps = map_points(b, "T_softmax_exp", data, kSoftmaxTag, [&](Expr x, auto i) {
    return call(Intrinsic::kExp, {x - row_value(b, largest, shape, i)});
  });
  const StageId sum =
      reduce_over(b, "T_softmax_expsum", exps, shape, Combiner::kSum, value_itself, kSoftmaxTag);
  return {largest, exps, sum};
}

StageId add_softmax(DagBuilder& b, StageId data, int64_t axis, bool log) {
  const DType dtype = b.stage(data).dtype;
  data = add_cast(b, data, sum_type(dtype));
  const ReducedShape shape(b.shape(data), std::span(&axis, 1), false);
  const auto [largest, exps, sum] = add_softmax_terms(b, data, axis);
  if (!log) {
    return map_points(b, "T_softmax_norm", exps, kSoftmaxTag, [&](Expr e, auto i) {
      return cast(dtype, e / row_value(b, sum, shape, i));
    });
  }
  const StageId log_sum = map_points(b, "T_softmax_logsum", sum, kSoftmaxTag, [&](Expr s, auto) {
    return call(Intrinsic::kLog, {s});
  });
  // The maximum first: added to the logarithm, a large one would leave none of its digits.
  return map_points(b, "T_softmax_norm", data, kSoftmaxTag, [&](Expr x, auto i) {
    const Expr below = x - row_value(b, largest, shape, i);
    return cast(dtype, below - row_value(b, log_sum, shape, i));
  });
}

// 1 / sqrt(sum / size + epsilon): once a row, not once an element.
static StageId add_inverse_root(DagBuilder& b, StageId sums, int64_t size, double epsilon) {
  const Expr n = float_imm(static_cast<double>(size));
  return map_points(b, "T_rsqrt", sums, "elemwise", [&](Expr s, auto) {
    return call(Intrinsic::kRsqrt, {s / n + float_imm(epsilon)});
  });
}

StageId add_normalize(DagBuilder& b, StageId data, std::span<const int64_t> axes, double epsilon) {
  const ReducedShape shape(b.shape(data), axes, true);
  const DType dtype = b.stage(data).dtype;
  data = add_cast(b, data, sum_type(dtype));
  const StageId mean = add_reduce(b, data, axes, true, ReduceKind::kMean);
  // The sum of squared distances: n times the variance.
  const StageId squares =
      reduce_over(b, "T_variance", data, shape, Combiner::kSum, [&](Expr x, auto i) {
        const Expr distance = x - row_value(b, mean, shape, i);
        return distance * distance;
      });
  const StageId scale = add_inverse_root(b, squares, shape.size(), epsilon);
  return map_points(b, "T_normalize", data, "broadcast", [&](Expr x, auto i) {
    return cast(dtype, (x - row_value(b, mean, shape, i)) * row_value(b, scale, shape, i));
  });
}

static std::vector<int64_t> axes_from(const DagBuilder& b, StageId data, int64_t axis) {
  std::vector<int64_t> axes(b.shape(data).size() - static_cast<size_t>(axis));
  std::iota(axes.begin(), axes.end(), axis);
  return axes;
}

static StageId add_multiply(DagBuilder& b, StageId data, StageId scale) {
  const StageId inputs[] = {data, scale};
  return add_elementwise(b, "T_multiply", inputs, [](auto x) { return x[0] * x[1]; });
}

StageId add_layernorm(
    DagBuilder& b, StageId data, int64_t axis, StageId scale, StageId shift, double epsilon) {
  StageId out = add_normalize(b, data, axes_from(b, data, axis), epsilon);
  if (scale.valid()) out = add_multiply(b, out, scale);
  return shift.valid() ? add_add(b, out, shift) : out;
}

StageId add_rms_norm(DagBuilder& b, StageId data, int64_t axis, StageId scale, double epsilon) {
  const std::vector<int64_t> axes = axes_from(b, data, axis);
  const ReducedShape shape(b.shape(data), axes, true);
  const DType dtype = b.stage(scale).dtype;
  data = add_cast(b, data, sum_type(b.stage(data).dtype));
  const StageId squares =
      reduce_over(b, "T_squares", data, shape, Combiner::kSum, [](Expr x, auto) { return x * x; });
  const StageId inverse = add_inverse_root(b, squares, shape.size(), epsilon);
  const StageId unit = map_points(b, "T_normalize", data, "broadcast", [&](Expr x, auto i) {
    return cast(dtype, x * row_value(b, inverse, shape, i));
  });
  return add_multiply(b, unit, scale);
}

// ONNX, LRN: x / (bias + alpha / size * sum of squares)^beta. The window of `size` channels begins
// floor((size - 1) / 2) before its channel.
StageId add_lrn(DagBuilder& b, StageId data, int64_t size, double alpha, double beta, double bias) {
  std::vector<int64_t> before(b.shape(data).size(), 0), after = before;
  before.back() = (size - 1) / 2;
  after.back() = size - 1 - before.back();
  const DType dtype = b.stage(data).dtype;
  data = add_cast(b, data, sum_type(dtype));
  const StageId padded = add_pad(b, data, before, after, 0, "pad_temp");
  const auto square = [&](std::span<const Expr> i, std::span<const Expr> r) {
    std::vector<Expr> index(i.begin(), i.end());
    index.back() = index.back() + r[0];
    return b.at(padded, index) * b.at(padded, index);
  };
  const StageId sum =
      b.reduce("T_lrn_sum", b.shape(data), {size}, Combiner::kSum, square, "comm_reduce");
  return map_points(b, "T_lrn", data, "elemwise", [&](Expr x, auto i) {
    const Expr scaled =
        b.at(sum, {i.begin(), i.end()}) * float_imm(alpha / static_cast<double>(size));
    const Expr size_to_beta = call(Intrinsic::kPow, {scaled + float_imm(bias), float_imm(beta)});
    return cast(dtype, x / size_to_beta);
  });
}

}  // namespace pruner
