// Operators of ONNX Runtime on images.
#include "graph/functions/body.h"

namespace pruner {

static void grid_sample(Body& b) {
  b.output(0, b.add("GridSample", {b.input(0), b.input(1)}, b.call().node.attributes));
}

static void nhwc_max_pool(Body& b) {
  const Term x = b.input(0);
  if (x.rank() < 3)
    return b.fail(Error("data of shape ", print_shape(x.shape()), " need 3 dimensions or more"));
  const Term first = b.transpose(x, channels_first_order(x.rank()));
  const Term largest = b.add("MaxPool", {first}, b.call().node.attributes);
  b.output(0, b.transpose(largest, channels_last_order(x.rank())));
}

namespace {

/// The places that a CropAndResize reads along one axis: [crops, points].
struct Line {
  Term place;   // a real number of pixels
  Term inside;  // whether it lies in the image
  int64_t extent;
};

}  // namespace

// Points from the first edge of each box to the last, which both are read; one point lies in the
// middle. Boxes are in parts of the distance from the first pixel to the last.
static Line line_of(Body& b, int64_t axis, int64_t points, int64_t extent) {
  const Term boxes = b.input(1);
  const auto reach = static_cast<double>(extent - 1);
  const Term first = b.slice(boxes, 1, axis, axis + 1),
             last = b.slice(boxes, 1, axis + 2, axis + 3);
  Line line{{}, {}, extent};
  if (points == 1) {
    line.place = (first + last) * 0.5 * reach;
  } else {
    const Term step = (last - first) * reach / static_cast<double>(points - 1);
    Tensor numbers(boxes.dtype(), {1, points - 1});
    for (int64_t i = 0; i + 1 < points; ++i) numbers.set(i, static_cast<double>(i));
    line.place = b.concat({first * reach + b.constant(numbers) * step, last * reach}, 1);
  }
  const Term low = b.scalar(0, boxes.dtype()), high = b.scalar(reach, boxes.dtype());
  line.inside =
      b.add("And",
            {b.add("GreaterOrEqual", {line.place, low}), b.add("LessOrEqual", {line.place, high})});
  line.place = b.add("Where", {line.inside, line.place, low});
  return line;
}

// [crops, height, width, channels]: the pixels of each crop's image in `rows` and `columns`.
static Term pixels_at(Body& b, Term images, Term numbers, Term rows, Term columns) {
  const std::vector<int64_t> shape = {rows.extent(0), rows.extent(1), columns.extent(1), 1};
  const auto part = [&](Term values, std::vector<int64_t> as) {
    const Term whole = b.reshape(b.cast(values, DType::kInt64), std::move(as));
    return b.add("Expand", {whole, b.integers(shape)});
  };
  const Term at = b.concat({part(numbers, {shape[0], 1, 1, 1}),
                            part(rows, {shape[0], shape[1], 1, 1}),
                            part(columns, {shape[0], 1, shape[2], 1})},
                           3);
  return b.add("GatherND", {images, at});
}

static Result<Unit> check_crops(const OpCall& call, const std::string& mode) {
  if (mode != "bilinear" && mode != "nearest")
    return Error("mode is \"", mode, "\", expected bilinear or nearest");
  const std::vector<int64_t>&boxes = call.shape(1), &images = call.shape(2);
  const bool fits = call.rank(0) == 4 && boxes.size() == 2 && boxes[1] == 4 &&
                    images == std::vector<int64_t>{boxes[0]};
  if (!fits)
    return Error("boxes of ",
                 print_shape(boxes),
                 " in images ",
                 print_shape(images),
                 " of ",
                 print_shape(call.shape(0)));
  if (call.input(1).dtype == call.input(0).dtype) return Unit{};
  return Error("data and boxes differ in type");
}

static void crop_and_resize(Body& b) {
  const OpCall& call = b.call();
  const std::string mode = call.text("mode", "bilinear");
  if (const Result<Unit> fits = check_crops(call, mode); !fits.ok()) return b.fail(fits.error());
  const Result<std::vector<int64_t>> size = call.constant_integers(3, "crop_size");
  if (!size.ok()) return b.fail(size.error());
  if (size->size() != 2 || (*size)[0] < 1 || (*size)[1] < 1)
    return b.fail(Error("crop_size has to be a height and a width"));
  const Term x = b.input(0), images = b.transpose(x, {0, 2, 3, 1}), numbers = b.input(2);
  const Line y_line = line_of(b, 0, (*size)[0], x.extent(2));
  const Line x_line = line_of(b, 1, (*size)[1], x.extent(3));
  const auto whole = [&](const char* op, Term place) { return b.add(op, {place}); };
  Term found;
  if (mode == "nearest") {
    // Halves are rounded up: no place is below 0.
    const auto nearest = [&](Term place) {
      const Term below = whole("Floor", place), half = b.scalar(0.5, place.dtype());
      const Term up = b.add("GreaterOrEqual", {place - below, half});
      return b.add("Where", {up, below + 1, below});
    };
    found = pixels_at(b, images, numbers, nearest(y_line.place), nearest(x_line.place));
  } else {
    const Term top = whole("Floor", y_line.place), bottom = whole("Ceil", y_line.place);
    const Term left = whole("Floor", x_line.place), right = whole("Ceil", x_line.place);
    const std::vector<int64_t> along_y = {top.extent(0), top.extent(1), 1, 1},
                               along_x = {left.extent(0), 1, left.extent(1), 1};
    const Term down = b.reshape(y_line.place - top, along_y);
    const Term to_right = b.reshape(x_line.place - left, along_x);
    const auto mixed = [&](Term rows) {
      const Term a = pixels_at(b, images, numbers, rows, left);
      return a + (pixels_at(b, images, numbers, rows, right) - a) * to_right;
    };
    const Term above = mixed(top);
    found = above + (mixed(bottom) - above) * down;
  }
  const Term inside =
      b.unsqueeze(b.add("And", {b.unsqueeze(y_line.inside, 2), b.unsqueeze(x_line.inside, 1)}), 3);
  const Term outside = b.scalar(call.number("extrapolation_value", 0), x.dtype());
  b.output(0, b.transpose(b.add("Where", {inside, found, outside}), {0, 3, 1, 2}));
}

// clang-format off
static constexpr Function kOrtImageFunctions[] = {
    {"com.microsoft::CropAndResize", 4, 4, "extrapolation_value:f mode:s", crop_and_resize},
    {"com.microsoft::GridSample", 2, 2, "align_corners:i mode:s padding_mode:s", grid_sample},
    {"com.microsoft::NhwcMaxPool", 1, 1, "auto_pad:s ceil_mode:i dilations:I kernel_shape:I pads:I strides:I", nhwc_max_pool},
};
// clang-format on

std::span<const Function> ort_image_functions() { return kOrtImageFunctions; }

}  // namespace pruner
