// GridSample and RoiAlign: elements at places between others, which the data say.
#include <bit>

#include "graph/ops/op.h"
#include "graph/routines/routines.h"

namespace pruner {

using enum Fusion;

using Axes = std::span<const Expr>;

static std::string mode_of(const OpCall& call) {
  const std::string mode = call.text("mode", "linear");
  return mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;  // names of opset 16
}

static Types infer_grid_sample(const OpCall& call) {
  const std::string mode = mode_of(call), padding = call.text("padding_mode", "zeros");
  const int64_t dims = call.rank() - 2;
  if (mode != "linear" && mode != "nearest" && (mode != "cubic" || dims != 2)) {
    return Error("mode is \"", mode, "\", expected linear, nearest or, of images, cubic");
  }
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    return Error("padding_mode is \"", padding, "\", expected zeros, border or reflection");
  if (!is_float(call.input(0).dtype) || !is_float(call.input(1).dtype))
    return Error("data and grid have to be of a floating-point type");
  const std::vector<int64_t>&data = call.shape(0), &grid = call.shape(1);
  if (dims < 1 || grid.size() != data.size() || grid[0] != data[0] || grid.back() != dims) {
    return Error("a grid of ", print_shape(grid), " for data of ", print_shape(data));
  }
  std::vector<int64_t> out = {data[0], data[1]};
  out.insert(out.end(), grid.begin() + 1, grid.end() - 1);
  return {{{call.input(0).dtype, out}}};
}

namespace {

// One point of a GridSample's output.
class GridPoint {
 public:
  GridPoint(const OpCall& call, StageSink& to, Axes axes)
      : call_(call),
        to_(to),
        mode_(mode_of(call)),
        padding_(call.text("padding_mode", "zeros")),
        align_(call.integer("align_corners", 0) != 0),
        data_(to.input(call, 0)),
        grid_(to.input(call, 1)),
        axes_(axes),
        at_({axes[0], axes[1]}),
        inside_(int_imm(1, DType::kBool)) {}

  /// The value at at_ and, in spatial dimensions from d on, around the grid's place.
  Expr value(size_t d = 0) {
    if (d == axes_.size() - 2) {
      const Expr found = cast(DType::kFloat32, to_.dag.at(data_, at_));
      return padding_ == "zeros" ? select(inside_, found, real(0)) : found;
    }
    const Expr x = place(d);
    if (mode_ == "nearest") return tap(cast(DType::kInt64, x), d);
    const Expr whole = pruner::call(Intrinsic::kFloor, {x}), rest = x - whole;
    const Expr low = cast(DType::kInt64, whole);
    if (mode_ == "linear") return tap(low, d) * (real(1) - rest) + tap(low + 1, d) * rest;
    return tap(low + -1, d) * outer(rest + real(1)) + tap(low, d) * inner(rest) +
           tap(low + 1, d) * inner(real(1) - rest) + tap(low + 2, d) * outer(real(2) - rest);
  }

 private:
  static Expr real(double value) { return float_imm(value, DType::kFloat32); }

  // Keys' cubic convolution with a = -0.75, at distances below 1 and from 1 to 2.
  static Expr inner(const Expr& x) { return (real(1.25) * x - real(2.25)) * x * x + real(1); }
  static Expr outer(const Expr& x) {
    return ((real(-0.75) * x + real(3.75)) * x - real(6)) * x + real(3);
  }

  int64_t extent(size_t d) const { return call_.shape(0)[d + 2]; }

  // Returns the point's place along spatial dimension d; the grid names the last dimension first.
  // The grid runs from -1 to 1 between the outer elements' centres (align_corners) or outer edges.
  Expr place(size_t d) const {
    std::vector<Expr> at = {axes_[0]};
    at.insert(at.end(), axes_.begin() + 2, axes_.end());
    at.emplace_back(static_cast<int64_t>(axes_.size() - 3 - d));
    const Expr g = cast(DType::kFloat32, to_.dag.at(grid_, at)) + real(1);
    const auto n = static_cast<double>(extent(d));
    Expr x = align_ ? g * real((n - 1) / 2) : g * real(n / 2) - real(0.5);
    if (mode_ == "nearest") x = pruner::call(Intrinsic::kRound, {x});
    const double low = align_ ? 0 : -0.5, high = align_ ? n - 1 : n - 0.5;
    // A cubic place stays outside, as in torch and ONNX Runtime; its taps are held inside.
    if (padding_ == "border" && mode_ != "cubic") x = min(max(real(0), x), real(n - 1));
    if (padding_ == "reflection" && high > low) {
      // A zigzag between the borders, of which one up and down is a period.
      const double period = 2 * (high - low);
      const Expr from = x - real(low);
      const Expr periods = pruner::call(Intrinsic::kFloor, {from * real(1 / period)});
      const Expr in_period = from - periods * real(period);
      const Expr moved = min(in_period, real(period) - in_period) + real(low);
      x = select(x < real(low), moved, select(real(high) < x, moved, x));
    }
    // A place that a cast to an integer could not hold is outside, and so is NaN.
    return min(max(real(-1e9), x), real(1e9));
  }

  Expr tap(Expr index, size_t d) {
    const int64_t n = extent(d);
    const Expr outer_inside = inside_;
    if (padding_ == "zeros") {
      inside_ = inside_ && index >= 0 && index < n;
    } else if (padding_ == "border") {
      index = min(max(index, 0), n - 1);
    } else {
      index = reflected(index, n);
    }
    at_.push_back(index);
    const Expr made = value(d + 1);
    at_.pop_back();
    inside_ = outer_inside;
    return made;
  }

  // -1 is 1 where corners are aligned, else 0; and so on.
  Expr reflected(const Expr& index, int64_t n) const {
    const int64_t period = align_ ? 2 * (n - 1) : 2 * n;
    if (period == 0) return 0;
    const Expr in_period = floor_mod(index, period);
    return min(in_period, (align_ ? period : period - 1) - in_period);
  }

  const OpCall& call_;
  StageSink& to_;
  std::string mode_, padding_;
  bool align_;
  StageId data_, grid_;
  Axes axes_;
  std::vector<Expr> at_;
  Expr inside_;
};

}  // namespace

static StageId lower_grid_sample(const OpCall& call, StageSink& to) {
  const auto body = [&](Axes axes) {
    return cast(call.input(0).dtype, GridPoint(call, to, axes).value());
  };
  return to.dag.compute("T_grid_sample", call.output().shape, body, "injective");
}

static Types infer_roi_align(const OpCall& call) {
  const std::string mode = call.text("mode", "avg");
  if (mode != "avg" && mode != "max") return Error("mode is \"", mode, "\", expected avg or max");
  const std::string placing = call.text("coordinate_transformation_mode", "half_pixel");
  if (placing != "half_pixel" && placing != "output_half_pixel")
    return Error("coordinate_transformation_mode is \"", placing, "\"");
  const TensorType data = call.type(0), rois = call.type(1), images = call.type(2);
  const int64_t height = call.integer("output_height", 1), width = call.integer("output_width", 1);
  const bool fits = data.shape.size() == 4 && rois.shape.size() == 2 && rois.shape[1] == 4 &&
                    images.shape == std::vector<int64_t>{rois.shape[0]};
  if (!fits || height < 1 || width < 1 || call.integer("sampling_ratio", 0) < 0) {
    return Error("regions of ",
                 print_shape(rois.shape),
                 " in images ",
                 print_shape(images.shape),
                 " of ",
                 print_shape(data.shape),
                 " to ",
                 height,
                 "x",
                 width);
  }
  if (!is_float(data.dtype) || rois.dtype != data.dtype || images.dtype != DType::kInt64)
    return Error("data and regions have to be of one floating-point type, images int64");
  return {{{data.dtype, {rois.shape[0], data.shape[1], height, width}}}};
}

static std::vector<int64_t> roi_align_parameters(const OpCall& call) {
  const std::vector<int64_t>&in = call.shape(0), &out = call.output().shape;
  return {static_cast<int64_t>(call.input(0).dtype),
          in[0],
          in[1],
          in[2],
          in[3],
          out[0],
          out[2],
          out[3],
          call.integer("sampling_ratio", 0),
          call.text("mode", "avg") == "max",
          call.text("coordinate_transformation_mode", "half_pixel") == "half_pixel",
          std::bit_cast<int64_t>(call.number("spatial_scale", 1))};
}

static std::vector<int64_t> images_of_regions(const OpCall& call) { return {call.shape(0)[0]}; }

static constexpr Routine kRoiAlign = {
    "pruner_roi_align", pruner_roi_align, 3, roi_align_parameters};

// clang-format off
static constexpr GraphOp kSamplingOps[] = {
    // name, fusion, fewest and most inputs, attributes, inference, lowering
    GraphOp{"GridSample", kInjective, 2, 2, "align_corners:i mode:s padding_mode:s", infer_grid_sample, lower_grid_sample}.from(16).with(kRepeatsReads),
    GraphOp{"RoiAlign", kOpaque, 3, 3, "coordinate_transformation_mode:s mode:s output_height:i output_width:i sampling_ratio:i spatial_scale:f", infer_roi_align, nullptr}.from(16).run_by(kRoiAlign).reads_from_zero_at(2, images_of_regions),
};
// clang-format on

std::span<const GraphOp> sampling_ops() { return kSamplingOps; }

}  // namespace pruner
