// Resize: each output element is one of the input, or a mix of neighbours, at a place that follows
// from the extents alone. Places are fractions of integers, so no rounding moves an index.
#include <cmath>
#include <numeric>

#include "graph/ops/op.h"

namespace pruner {

using enum Fusion;

namespace {

// Output o lies at (o * step + offset) / denominator of the input, along one dimension.
struct Place {
  int64_t step = 1, offset = 0, denominator = 1;

  bool is_identity() const { return step == denominator && offset == 0; }
  Expr at(const Expr& o) const { return o * step + offset; }
};

}  // namespace

static constexpr std::string_view kPlacings[] = {
    "align_corners", "asymmetric", "half_pixel", "pytorch_half_pixel"};
static constexpr std::string_view kRoundings[] = {
    "ceil", "floor", "round_prefer_ceil", "round_prefer_floor"};

static std::string placing(const OpCall& call) {
  return call.text("coordinate_transformation_mode", "half_pixel");
}
static std::string rounding(const OpCall& call) {
  return call.text("nearest_mode", "round_prefer_floor");
}
static bool is_linear(const OpCall& call) { return call.text("mode", "nearest") == "linear"; }

static Place reduced(int64_t step, int64_t offset, int64_t denominator) {
  const int64_t g = std::gcd(std::gcd(step, offset), denominator);
  return {step / g, offset / g, denominator / g};
}

// ONNX's coordinate_transformation_mode: o (in - 1) / (out - 1), o in / out, or the centre of the
// pixel, (o + 1/2) in / out - 1/2.
static Place place_of(const std::string& mode, int64_t in, int64_t out) {
  if (out == 1 && (mode == "align_corners" || mode == "pytorch_half_pixel")) {
    return {0, 0, 1};
  }
  if (mode == "align_corners") return reduced(in - 1, 0, out - 1);
  if (mode == "asymmetric") return reduced(in, 0, out);
  return reduced(2 * in, in - out, 2 * out);
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
  static constexpr std::string_view kModes[] = {"linear", "nearest"};
  TRY(check("mode", call.text("mode", "nearest"), kModes));
  TRY(check("coordinate_transformation_mode", placing(call), kPlacings));
  TRY(check("nearest_mode", rounding(call), kRoundings));
  if (call.integer("antialias", 0) != 0) return Error("antialias is not supported");
  const std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch") {
    return Error("keep_aspect_ratio_policy \"", policy, "\" is not supported; stretch is");
  }
  if (!is_linear(call) || is_float(call.input(0).dtype)) return Unit{};
  return Error("linear of ", dtype_name(call.input(0).dtype), ", expected a floating-point type");
}

// What `scale` makes of an extent. A rest would put the places elsewhere than the extents say.
static Result<int64_t> scaled(int64_t extent, double scale) {
  const double exact = static_cast<double>(extent) * scale, whole = std::round(exact);
  if (!(std::abs(exact - whole) <= 1e-4 * whole)) {
    return Error("a scale of ", scale, " makes no whole extent of ", extent);
  }
  return static_cast<int64_t>(whole);
}

static Types infer_resize(const OpCall& call) {
  TRY(check_modes(call));
  std::vector<int64_t> axes = call.integers("axes"), sizes;
  if (axes.empty()) {
    axes.resize(call.shape(0).size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (call.has(3)) {
    TRY_ASSIGN(sizes, call.constant_integers(3, "sizes"));
  } else if (!call.has(2) || !call.input(2).constant) {
    return Error("neither sizes nor scales are constants");
  }
  const auto given = static_cast<size_t>(call.has(3) ? sizes.size() : element_count(call.shape(2)));
  if (given != axes.size()) {
    return Error("sizes or scales for ", given, " dimensions, expected ", axes.size());
  }
  TensorType out = call.type(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    TRY_ASSIGN(const int64_t axis, normal_axis(axes[i], call.rank()));
    int64_t& extent = out.shape[axis];
    if (call.has(3)) {
      extent = sizes[i];
    } else {
      TRY_ASSIGN(extent, scaled(extent, call.input(2).constant->get(static_cast<int64_t>(i))));
    }
    if (extent < 1) return Error("the output would have an extent of ", extent);
  }
  return {{out}};
}

namespace {

// One point of the output, dimension by dimension.
class Point {
 public:
  Point(const OpCall& call, StageSink& to, StageId data, std::span<const Expr> axes)
      : call_(call), to_(to), data_(data), axes_(axes) {}

  /// The value at indices_ and, in dimensions from d on, where the axes lie in the input.
  Expr value(size_t d = 0) {
    if (d == axes_.size()) return to_.dag.at(data_, indices_);
    const int64_t in = call_.shape(0)[d], out = call_.output().shape[d];
    const Place place = place_of(placing(call_), in, out);
    if (place.is_identity()) return next(axes_[d], d);
    if (!is_linear(call_)) {
      const Place whole = nearest(place, rounding(call_));
      return next(inside(whole, 0, in, out, d), d);
    }
    const Expr low = next(inside(place, 0, in, out, d), d);
    if (place.denominator == 1 || in == 1) return low;
    const Expr high = next(inside(place, 1, in, out, d), d);
    const DType dtype = call_.input(0).dtype;
    const Expr rest = cast(dtype, floor_mod(place.at(axes_[d]), place.denominator));
    const double unit = 1 / static_cast<double>(place.denominator);
    return low + (high - low) * (rest * float_imm(unit, dtype));
  }

 private:
  Expr next(const Expr& index, size_t d) {
    indices_.push_back(index);
    const Expr made = value(d + 1);
    indices_.pop_back();
    return made;
  }
  // The place rounded down, plus `more`, inside the input.
  Expr inside(const Place& place, int64_t more, int64_t in, int64_t out, size_t d) const {
    const auto whole = [&](int64_t o) {
      return floor_div(o * place.step + place.offset, place.denominator) + more;
    };
    Expr index = floor_div(place.at(axes_[d]), place.denominator) + more;
    if (whole(0) < 0) index = max(index, 0);
    if (whole(out - 1) >= in) index = min(index, in - 1);
    return index;
  }

  const OpCall& call_;
  StageSink& to_;
  StageId data_;
  std::span<const Expr> axes_;
  std::vector<Expr> indices_;
};

}  // namespace

static StageId lower_resize(const OpCall& call, StageSink& to) {
  const StageId data = to.input(call, 0);
  const auto body = [&](std::span<const Expr> axes) { return Point(call, to, data, axes).value(); };
  return to.dag.compute("T_resize", call.output().shape, body, "injective");
}

// clang-format off
static constexpr GraphOp kRows[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"Resize", kInjective, 1, 4, "antialias:i axes:I coordinate_transformation_mode:s keep_aspect_ratio_policy:s mode:s nearest_mode:s", infer_resize, lower_resize}.with(kRepeatsReads),
};
// clang-format on

std::span<const GraphOp> resize_ops() { return kRows; }

}  // namespace pruner
