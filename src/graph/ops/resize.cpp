// Resize: each output element is one of the input, or a mix of neighbours, at a place that follows
// from the extents, scales and regions alone. Places are fractions of integers, so no rounding
// moves an index.
#include <cmath>
#include <numeric>

#include "graph/ops/op.h"
#include "tensor/operator_dags.h"

namespace pruner {

using enum Fusion;

namespace {

// A fraction of integers, the denominator above 0.
struct Fraction {
  int64_t numerator = 1, denominator = 1;
};

// Output o lies at (o * step + offset) / denominator of the input, along one dimension.
struct Place {
  int64_t step = 1, offset = 0, denominator = 1;

  bool is_identity() const { return step == denominator && offset == 0; }
  Expr at(const Expr& o) const { return o * step + offset; }
};

// The resizing along one dimension.
struct Axis {
  int64_t in = 1, out = 1;
  Fraction scale;  // elements of the output for one of the input
  Place place;
};

}  // namespace

static constexpr std::string_view kPlacings[] = {"align_corners",
                                                 "asymmetric",
                                                 "half_pixel",
                                                 "half_pixel_symmetric",
                                                 "pytorch_half_pixel",
                                                 "tf_crop_and_resize",
                                                 "tf_half_pixel_for_nn"};
// "by_scale", of ours, is that of opset 10: "ceil" where the scale is less than 1, else "floor".
static constexpr std::string_view kRoundings[] = {
    "by_scale", "ceil", "floor", "round_prefer_ceil", "round_prefer_floor"};

static std::string placing(const OpCall& call) {
  return call.text("coordinate_transformation_mode", "half_pixel");
}
static std::string rounding(const OpCall& call) {
  return call.text("nearest_mode", "round_prefer_floor");
}
static std::string mode_of(const OpCall& call) { return call.text("mode", "nearest"); }
static bool crops(const OpCall& call) { return placing(call) == "tf_crop_and_resize"; }

// The fraction with the least denominator that is `value` but for the rounding of a float32, by its
// continued fraction.
static Fraction fraction_of(double value) {
  Fraction before{1, 0}, found{static_cast<int64_t>(std::floor(value)), 1};
  double rest = value - std::floor(value);
  const auto distance = [&] {
    const auto near = static_cast<double>(found.numerator) / static_cast<double>(found.denominator);
    return std::abs(near - value);
  };
  while (distance() > 1e-7 * std::abs(value) && found.denominator < (1 << 20)) {
    const auto whole = static_cast<int64_t>(1 / rest);
    rest = 1 / rest - static_cast<double>(whole);
    const Fraction next{whole * found.numerator + before.numerator,
                        whole * found.denominator + before.denominator};
    before = std::exchange(found, next);
  }
  return found;
}

static Place reduced(int64_t step, int64_t offset, int64_t denominator) {
  const int64_t g = std::gcd(std::gcd(step, offset), denominator);
  return {step / g, offset / g, denominator / g};
}

// ONNX's coordinate_transformation_mode, with s = n / d the scale and w = s * in the output's
// extent before it was rounded down: o (in - 1) / (w - 1), o / s, or the centre of the pixel,
// (o + 1/2) / s - 1/2, which half_pixel_symmetric moves by in / 2 * (1 - out / w), or, for
// tf_half_pixel_for_nn, (o + 1/2) / s.
static Place place_of(const std::string& mode, const Axis& axis) {
  const auto [n, d] = axis.scale;
  const int64_t in = axis.in, out = axis.out;
  if (mode == "align_corners" && n * in == d) return {0, 0, 1};
  if (mode == "align_corners") return reduced((in - 1) * d, 0, n * in - d);
  if (mode == "pytorch_half_pixel" && out == 1) return {0, 0, 1};
  if (mode == "asymmetric") return reduced(d, 0, n);
  if (mode == "tf_half_pixel_for_nn") return reduced(2 * d, d, 2 * n);
  const int64_t moved = mode == "half_pixel_symmetric" ? in * n - out * d : 0;
  return reduced(2 * d, moved + d - n, 2 * n);
}

// tf_crop_and_resize: (in - 1) * (start + o (end - start) / (w - 1)), or the middle of both.
static Place cropped_place(const Axis& axis, double start, double end) {
  const Fraction a = fraction_of(start), b = fraction_of(end);
  const int64_t all = std::lcm(a.denominator, b.denominator), last = axis.in - 1;
  const int64_t from = a.numerator * (all / a.denominator);
  const int64_t to = b.numerator * (all / b.denominator);
  const auto [n, d] = axis.scale;
  const int64_t gaps = n * axis.in - d;  // d (w - 1)
  if (gaps == 0) return reduced(0, (from + to) * last, 2 * all);
  return reduced((to - from) * d * last, from * gaps * last, all * gaps);
}

// floor(x + 1/2) prefers the upper neighbour, ceil(x - 1/2) the lower one.
// The nearest whole place, by rounding down.
static Place nearest(const Place& p, const std::string& mode) {
  if (mode == "floor") return p;
  if (mode == "ceil") return {p.step, p.offset + p.denominator - 1, p.denominator};
  const int64_t half = mode == "round_prefer_ceil" ? p.denominator : p.denominator - 1;
  return {2 * p.step, 2 * p.offset + half, 2 * p.denominator};
}

static Result<Unit> check_modes(const OpCall& call) {
  const auto check = [](const char* name, const std::string& found, auto& known) -> Result<Unit> {
    std::string list;
    for (const std::string_view mode : known) {
      if (mode == found) return Unit{};
      list += (list.empty() ? "" : ", ") + std::string(mode);
    }
    return Error(name, " \"", found, "\" is not supported; it is one of ", list);
  };
  static constexpr std::string_view kModes[] = {"cubic", "linear", "nearest"};
  static constexpr std::string_view kPolicies[] = {"not_larger", "not_smaller", "stretch"};
  TRY(check("mode", mode_of(call), kModes));
  TRY(check("coordinate_transformation_mode", placing(call), kPlacings));
  TRY(check("nearest_mode", rounding(call), kRoundings));
  TRY(check(
      "keep_aspect_ratio_policy", call.text("keep_aspect_ratio_policy", "stretch"), kPolicies));
  if (mode_of(call) == "nearest" || is_float(call.input(0).dtype)) return Unit{};
  return Error(
      mode_of(call), " of ", dtype_name(call.input(0).dtype), ", expected a floating-point type");
}

// The extent that `scale` makes. Where a whole one is meant, the scale is what leads to it.
static void set_scale(Axis& axis, double scale) {
  const double exact = static_cast<double>(axis.in) * scale, whole = std::round(exact);
  const bool meant = whole >= 1 && std::abs(exact - whole) <= 1e-4 * whole;
  axis.out = static_cast<int64_t>(meant ? whole : std::floor(exact));
  axis.scale = meant ? Fraction{axis.out, axis.in} : fraction_of(scale);
}

// `sizes` of the resized dimensions, all by one scale where the policy keeps the aspect ratio.
static void set_sizes(std::vector<Axis*> axes,
                      std::span<const int64_t> sizes,
                      const std::string& policy) {
  Fraction one{sizes[0], axes[0]->in};
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i]->out = sizes[i];
    axes[i]->scale = {sizes[i], axes[i]->in};
    const bool less = sizes[i] * one.denominator < one.numerator * axes[i]->in;
    if (less == (policy == "not_larger")) one = axes[i]->scale;
  }
  if (policy == "stretch") return;
  for (Axis* axis : axes) {
    // Rounded to nearest, halves up.
    axis->out = (2 * one.numerator * axis->in + one.denominator) / (2 * one.denominator);
    axis->scale = one;
  }
}

// The dimensions of the data; an axis that is not resized has a scale of one.
static Result<std::vector<Axis>> axes_of(const OpCall& call) {
  std::vector<Axis> all;
  for (const int64_t extent : call.shape(0)) all.push_back({extent, extent, {}, {}});
  std::vector<int64_t> numbers = call.integers("axes");
  if (numbers.empty()) {
    numbers.resize(all.size());
    std::iota(numbers.begin(), numbers.end(), 0);
  }
  std::vector<Axis*> axes;
  for (const int64_t number : numbers) {
    TRY_ASSIGN(const int64_t axis, normal_axis(number, call.rank()));
    axes.push_back(&all[axis]);
  }
  const bool sized = call.has(3);
  if (!call.has(sized ? 3 : 2) || !call.input(sized ? 3 : 2).constant) {
    return Error("neither sizes nor scales are constants");
  }
  const Tensor& given = *call.input(sized ? 3 : 2).constant;
  if (given.num_elements() != std::ssize(axes)) {
    return Error(
        "sizes or scales for ", given.num_elements(), " dimensions, expected ", axes.size());
  }
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < given.num_elements(); ++i) {
    if (!(given.get(i) > 0 && given.get(i) < 1e9))
      return Error("a size or scale of ", given.get(i));
    if (sized) sizes.push_back(given.get_int(i));
    if (!sized) set_scale(*axes[i], given.get(i));
  }
  if (sized && !axes.empty())
    set_sizes(axes, sizes, call.text("keep_aspect_ratio_policy", "stretch"));
  for (Axis& axis : all) axis.place = place_of(placing(call), axis);
  if (!crops(call)) return all;
  const std::optional<Tensor>* roi = call.has(1) ? &call.input(1).constant : nullptr;
  if (roi == nullptr || !*roi || (*roi)->num_elements() != 2 * std::ssize(axes)) {
    return Error("tf_crop_and_resize needs a constant roi of ", 2 * axes.size(), " elements");
  }
  for (Axis& axis : all) axis.place = {};
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    *axes[i] = {axes[i]->in,
                axes[i]->out,
                axes[i]->scale,
                cropped_place(*axes[i], (*roi)->get(at), (*roi)->get(at + std::ssize(axes)))};
  }
  return all;
}

static Types infer_resize(const OpCall& call) {
  TRY(check_modes(call));
  TRY_ASSIGN(const std::vector<Axis> axes, axes_of(call));
  TensorType out = call.type(0);
  for (size_t d = 0; d < axes.size(); ++d) {
    out.shape[d] = axes[d].out;
    if (axes[d].out < 1 && axes[d].in > 0)
      return Error("the output would have an extent of ", axes[d].out);
  }
  return {{out}};
}

// The place rounded down, plus `more`, inside the input; `o` from 0 to out - 1. Bounds that nothing
// reaches are left out, unless `bounded`.
static Expr inside(const Axis& axis,
                   const Place& place,
                   const Expr& more,
                   int64_t most,
                   const Expr& o,
                   bool bounded) {
  const auto whole = [&](int64_t at) {
    return floor_div(at * place.step + place.offset, place.denominator);
  };
  const int64_t* known = as_int(more);
  const auto [low, high] = std::minmax({whole(0), whole(axis.out - 1)});
  Expr index = floor_div(place.at(o), place.denominator) + more;
  if (bounded || low + (known ? *known : -most) < 0) index = max(index, 0);
  if (bounded || high + (known ? *known : most) >= axis.in) index = min(index, axis.in - 1);
  return index;
}

namespace {

// One point of the output of a nearest or linear Resize, dimension by dimension.
class Point {
 public:
  Point(const OpCall& call,
        StageSink& to,
        StageId data,
        std::span<const Axis> dims,
        std::span<const Expr> axes)
      : call_(call), to_(to), data_(data), dims_(dims), axes_(axes) {}

  /// The value at indices_ and, in dimensions from d on, where the axes lie in the input.
  Expr value(size_t d = 0) {
    if (d == axes_.size()) return to_.dag.at(data_, indices_);
    const Axis& axis = dims_[d];
    const Place& place = axis.place;
    if (place.is_identity()) return next(axes_[d], d);
    if (mode_of(call_) == "nearest") {
      return next(bounded(axis, nearest(place, rounding_along(axis)), 0, axes_[d]), d);
    }
    const Expr low = next(bounded(axis, place, 0, axes_[d]), d);
    if (place.denominator == 1 || axis.in == 1) return low;
    const Expr high = next(bounded(axis, place, 1, axes_[d]), d);
    const DType dtype = call_.input(0).dtype;
    const Expr rest = cast(dtype, floor_mod(place.at(axes_[d]), place.denominator));
    const double unit = 1 / static_cast<double>(place.denominator);
    return low + (high - low) * (rest * float_imm(unit, dtype));
  }

 private:
  Expr bounded(const Axis& axis, const Place& place, int64_t more, const Expr& o) const {
    return inside(axis, place, more, more, o, call_.graph.keeps_all());
  }

  std::string rounding_along(const Axis& axis) const {
    const std::string mode = rounding(call_);
    if (mode != "by_scale") return mode;
    return axis.scale.numerator < axis.scale.denominator ? "ceil" : "floor";
  }

  Expr next(const Expr& index, size_t d) {
    indices_.push_back(index);
    const Expr made = value(d + 1);
    indices_.pop_back();
    return made;
  }

  const OpCall& call_;
  StageSink& to_;
  StageId data_;
  std::span<const Axis> dims_;
  std::span<const Expr> axes_;
  std::vector<Expr> indices_;
};

// A filter along one dimension: a weighted sum of the elements around each place. With antialias
// it is as many times wider as the output is smaller.
class Filter {
 public:
  Filter(const OpCall& call, const Axis& axis)
      : axis_(axis),
        dtype_(call.input(0).dtype),
        keeps_bounds_(call.graph.keeps_all()),
        is_cubic_(mode_of(call) == "cubic"),
        a_(call.number("cubic_coeff_a", -0.75)),
        exclude_outside_(call.integer("exclude_outside", 0) != 0) {
    const bool antialias = call.integer("antialias", 0) != 0;
    normalizes_ = antialias || exclude_outside_;
    const auto [n, d] = axis.scale;
    if (antialias && n < d) width_ = static_cast<double>(n) / static_cast<double>(d);
    first_ = 1 + static_cast<int64_t>(std::floor(-(is_cubic_ ? 2 : 1) / width_));
  }

  StageId add(DagBuilder& dag, StageId data, size_t d) const {
    std::vector<int64_t> shape = dag.shape(data);
    shape[d] = axis_.out;
    const int64_t taps = 2 - 2 * first_;
    const auto term = [&](std::span<const Expr> axes, std::span<const Expr> k) {
      std::vector<Expr> at(axes.begin(), axes.end());
      at[d] = inside(axis_, axis_.place, k[0] + first_, 1 - first_, axes[d], keeps_bounds_);
      return dag.at(data, at) * weight(axes[d], k[0]);
    };
    const StageId sum =
        dag.reduce("T_resize_sum", shape, {taps}, Combiner::kSum, term, "comm_reduce");
    if (!normalizes_) return sum;
    const StageId all = dag.reduce(
        "T_resize_weight",
        {axis_.out},
        {taps},
        Combiner::kSum,
        [&](std::span<const Expr> axes, std::span<const Expr> k) { return weight(axes[0], k[0]); },
        "comm_reduce");
    return dag.compute(
        "T_resize_norm",
        shape,
        [&](std::span<const Expr> axes) {
          return dag.at(sum, {axes.begin(), axes.end()}) / dag.at(all, {axes[d]});
        },
        "broadcast");
  }

 private:
  Expr imm(double value) const { return float_imm(value, dtype_); }

  // Returns the weight of tap k of output o, at the distance x = (k + first - rest) * width from
  // the place.
  Expr weight(const Expr& o, const Expr& k) const {
    const Place& place = axis_.place;
    const Expr tap = k + first_;
    const Expr rest = cast(dtype_, floor_mod(place.at(o), place.denominator)) *
                      imm(1 / static_cast<double>(place.denominator));
    const Expr x = call(Intrinsic::kAbs, {(cast(dtype_, tap) - rest) * imm(width_)});
    const Expr made = is_cubic_ ? cubic(x) : max(imm(1) - x, imm(0));
    if (!exclude_outside_) return made;
    const Expr index = floor_div(place.at(o), place.denominator) + tap;
    return select(index >= 0 && index < axis_.in, made, imm(0));
  }

  // Keys, "Cubic convolution interpolation for digital image processing" (1981), equation 15 with a
  // free a.
  Expr cubic(const Expr& x) const {
    const Expr inner = (imm(a_ + 2) * x - imm(a_ + 3)) * x * x + imm(1);
    const Expr outer = ((imm(a_) * x - imm(5 * a_)) * x + imm(8 * a_)) * x - imm(4 * a_);
    return select(x < imm(1), inner, select(x < imm(2), outer, imm(0)));
  }

  Axis axis_;
  DType dtype_;
  bool keeps_bounds_, is_cubic_;
  double a_;
  bool exclude_outside_, normalizes_ = false;
  double width_ = 1;   // output elements per element of the input, at most 1
  int64_t first_ = 0;  // the first tap, counted from the place rounded down
};

}  // namespace

// extrapolation_value where a place lies outside of the input.
static StageId add_extrapolation(const OpCall& call,
                                 StageSink& to,
                                 StageId inside,
                                 std::span<const Axis> dims) {
  const DType dtype = call.input(0).dtype;
  const double outside = call.number("extrapolation_value", 0);
  const auto body = [&](std::span<const Expr> axes) {
    Expr is_inside = int_imm(1, DType::kBool);
    for (size_t d = 0; d < dims.size(); ++d) {
      const Place& place = dims[d].place;
      if (place.is_identity()) continue;
      const Expr at = place.at(axes[d]);
      is_inside = is_inside && at >= 0 && at < (dims[d].in - 1) * place.denominator + 1;
    }
    const Expr value =
        is_float(dtype) ? float_imm(outside, dtype) : int_imm(static_cast<int64_t>(outside), dtype);
    return select(is_inside, to.dag.at(inside, {axes.begin(), axes.end()}), value);
  };
  return to.dag.compute("T_resize_inside", call.output().shape, body, "injective");
}

static StageId lower_resize(const OpCall& call, StageSink& to) {
  const std::vector<Axis> dims = *axes_of(call);
  StageId made = to.input(call, 0);
  const bool filters =
      mode_of(call) == "cubic" || (mode_of(call) == "linear" && call.integer("antialias", 0) != 0);
  if (filters) {
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!dims[d].place.is_identity()) made = Filter(call, dims[d]).add(to.dag, made, d);
    }
    if (made == to.input(call, 0)) {
      made = add_elementwise(to.dag, "T_identity", {{made}}, [](auto x) { return x[0]; });
    }
  } else {
    const StageId data = made;
    const auto body = [&](std::span<const Expr> axes) {
      return Point(call, to, data, dims, axes).value();
    };
    made = to.dag.compute("T_resize", call.output().shape, body, "injective");
  }
  return crops(call) ? add_extrapolation(call, to, made, dims) : made;
}

// clang-format off
static constexpr GraphOp kResizeOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"Resize", kInjective, 1, 4, "antialias:i axes:I coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i extrapolation_value:f keep_aspect_ratio_policy:s mode:s nearest_mode:s", infer_resize, lower_resize}.with(kRepeatsReads),
};
// clang-format on

std::span<const GraphOp> resize_ops() { return kResizeOps; }

}  // namespace pruner
