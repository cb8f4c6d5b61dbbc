// Swin-T (Liu et al. 2021) as torchvision has it: attention inside of windows of 7x7 pixels, which
// every second block shifts by half of one, around the border. Data are [batch, height, width,
// channels].
#include "graph/networks/swin.h"

#include "graph/networks/networks.h"
#include "graph/networks/transformer.h"

namespace pruner {

using Ints = std::vector<int64_t>;

static constexpr int64_t kWindow = 7, kPixels = kWindow * kWindow, kShift = kWindow / 2;
static constexpr double kEpsilon = 1e-5;

static ValueId reshape(NetworkBuilder& b, const std::string& name, ValueId x, const Ints& shape) {
  return b.node("Reshape", {x, b.integers(name + ".shape", shape)});
}

static ValueId transpose(NetworkBuilder& b, ValueId x, const Ints& order) {
  return b.node("Transpose", {x}, {{"perm", order}});
}

static ValueId slice(NetworkBuilder& b,
                     const std::string& name,
                     ValueId x,
                     int64_t axis,
                     int64_t start,
                     int64_t end) {
  return b.node("Slice",
                {x,
                 b.integers(name + ".start", {start}),
                 b.integers(name + ".end", {end}),
                 b.integers(name + ".axis", {axis})});
}

// Pads with zeros below and to the right, up to multiples of `step`.
static ValueId padded(NetworkBuilder& b, const std::string& name, ValueId x, int64_t step) {
  const auto missing = [&](int64_t extent) { return (step - extent % step) % step; };
  const int64_t below = missing(b.shape(x)[1]), right = missing(b.shape(x)[2]);
  if (below == 0 && right == 0) return x;
  return b.node("Pad", {x, b.integers(name + ".pads", {0, 0, 0, 0, 0, below, right, 0})});
}

// Rotates each row and column: pixel `by`, counted from the end if negative, becomes the first, and
// the pixels before it become the last.
static ValueId rolled(NetworkBuilder& b, const std::string& name, ValueId x, int64_t by) {
  for (const int64_t axis : {1, 2}) {
    const int64_t extent = b.shape(x)[axis];
    const int64_t first = by < 0 ? extent + by : by;
    x = b.concat({slice(b, name, x, axis, first, extent), slice(b, name, x, axis, 0, first)}, axis);
  }
  return x;
}

// Returns windows of x: [batch * windows, pixels, channels].
static ValueId windows_of(NetworkBuilder& b, const std::string& name, ValueId x) {
  const Ints in = b.shape(x);
  const int64_t rows = in[1] / kWindow, columns = in[2] / kWindow;
  x = reshape(b, name, x, {in[0], rows, kWindow, columns, kWindow, in[3]});
  return reshape(
      b, name, transpose(b, x, {0, 1, 3, 2, 4, 5}), {in[0] * rows * columns, kPixels, in[3]});
}

static ValueId joined(NetworkBuilder& b, const std::string& name, ValueId x, const Ints& image) {
  const int64_t rows = image[1] / kWindow, columns = image[2] / kWindow;
  x = reshape(b, name, x, {image[0], rows, columns, kWindow, kWindow, image[3]});
  return reshape(b, name, transpose(b, x, {0, 1, 3, 2, 4, 5}), image);
}

// Returns what each pixel adds to the scores of each other pixel, from a table by their distance:
// [heads, pixels, pixels].
static ValueId position_bias(NetworkBuilder& b, const std::string& name, int64_t heads) {
  static constexpr int64_t kDistances = 2 * kWindow - 1;
  const ValueId table = b.random(name + ".table", {kDistances * kDistances, heads}, 0, 0.5);
  Ints places;
  for (int64_t i = 0; i < kPixels * kPixels; ++i) {
    const int64_t to = i / kPixels, from = i % kPixels;
    const int64_t rows = to / kWindow - from / kWindow, columns = to % kWindow - from % kWindow;
    places.push_back((rows + kWindow - 1) * kDistances + columns + kWindow - 1);
  }
  const ValueId found =
      b.node("Gather", {table, b.integers(name + ".index", places)}, {{"axis", int64_t{0}}});
  return transpose(b, reshape(b, name, found, {kPixels, kPixels, heads}), {2, 0, 1});
}

// Returns which pixels of a shifted window see each other: the neighbours before the shift.
// torchvision takes 100 from the scores of all other pixels, whose exponentials are 0 in float32,
// too.
static ValueId shift_mask(NetworkBuilder& b, const Ints& image) {
  const int64_t rows = image[1] / kWindow, columns = image[2] / kWindow;
  const auto region = [](int64_t at, int64_t extent) {
    return at < extent - kWindow ? 0 : at < extent - kShift ? 1 : 2;
  };
  const auto region_of = [&](int64_t window, int64_t pixel) {
    const int64_t y = window / columns * kWindow + pixel / kWindow;
    const int64_t x = window % columns * kWindow + pixel % kWindow;
    return 3 * region(y, image[1]) + region(x, image[2]);
  };
  Tensor mask(DType::kBool, {image[0] * rows * columns, 1, kPixels, kPixels});
  for (int64_t i = 0; i < mask.num_elements(); ++i) {
    const int64_t window = i / (kPixels * kPixels) % (rows * columns);
    const bool sees = region_of(window, i / kPixels % kPixels) == region_of(window, i % kPixels);
    mask.set_int(i, sees ? 1 : 0);
  }
  return b.constant("shift_mask", mask);
}

ValueId window_attention(
    NetworkBuilder& b, const std::string& name, ValueId x, int64_t heads, bool shifted) {
  const int64_t height = b.shape(x)[1], width = b.shape(x)[2], channels = b.shape(x)[3];
  ValueId y = padded(b, name, x, kWindow);
  const Ints image = b.shape(y);
  // A single window has nothing to shift to.
  const bool shifts = shifted && image[1] > kWindow && image[2] > kWindow;
  if (shifts) y = rolled(b, name, y, kShift);
  y = windows_of(b, name, y);
  Attention self{y, y, y, channels, heads, {}};
  if (shifts) self.mask = shift_mask(b, image);
  self.bias = position_bias(b, name + ".relative_position_bias", heads);
  y = joined(b, name, attention(b, name, self), image);
  if (shifts) y = rolled(b, name, y, -kShift);
  if (image[1] != height) y = slice(b, name, y, 1, 0, height);
  return image[2] != width ? slice(b, name, y, 2, 0, width) : y;
}

static ValueId block(
    NetworkBuilder& b, const std::string& name, ValueId x, int64_t heads, bool shifted) {
  const int64_t channels = b.shape(x)[3];
  ValueId y = layer_norm(b, name + ".norm1", x, kEpsilon);
  x = b.node("Add", {x, window_attention(b, name + ".attn", y, heads, shifted)});
  y = layer_norm(b, name + ".norm2", x, kEpsilon);
  y = gelu(b, linear(b, name + ".mlp.0", y, 4 * channels));
  return b.node("Add", {x, linear(b, name + ".mlp.3", y, channels)});
}

// Joins the channels of 2x2 pixels, column by column, into one pixel of twice as many channels.
static ValueId merged(NetworkBuilder& b, const std::string& name, ValueId x) {
  x = padded(b, name, x, 2);
  const Ints in = b.shape(x);
  const int64_t rows = in[1] / 2, columns = in[2] / 2;
  x = reshape(b, name, x, {in[0], rows, 2, columns, 2, in[3]});
  x = reshape(b, name, transpose(b, x, {0, 1, 3, 4, 2, 5}), {in[0], rows, columns, 4 * in[3]});
  return project(b, name + ".reduction", layer_norm(b, name + ".norm", x, kEpsilon), 2 * in[3]);
}

Result<Graph> build_swin_t(const NetworkOptions& options) {
  static constexpr int64_t kPatch = 4, kChannels = 96;
  static constexpr int64_t kDepths[] = {2, 2, 6, 2}, kHeads[] = {3, 6, 12, 24};
  NetworkBuilder b("swin_t", options);
  ValueId x = b.conv(
      "features.0.0",
      b.image(options),
      {.channels = kChannels, .kernel = kPatch, .stride = kPatch, .padding = 0, .bias = true});
  x = layer_norm(b, "features.0.2", transpose(b, x, {0, 2, 3, 1}), kEpsilon);
  for (int stage = 0; stage < 4; ++stage) {
    if (stage > 0) x = merged(b, "features." + std::to_string(2 * stage), x);
    const std::string blocks = "features." + std::to_string(2 * stage + 1) + ".";
    for (int64_t i = 0; i < kDepths[stage]; ++i)
      x = block(b, blocks + std::to_string(i), x, kHeads[stage], i % 2 == 1);
  }
  x = transpose(b, layer_norm(b, "norm", x, kEpsilon), {0, 3, 1, 2});
  return b.finish({{b.classifier("head", x, 1000), "output"}});
}

}  // namespace pruner
