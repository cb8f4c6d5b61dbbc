#include "steps.h"

#include <algorithm>

namespace pruner {

namespace {

// Appends one node after the other. After a node that is refused nothing is added.
class Chain {
 public:
  explicit Chain(GraphMaker& m) : m_(m) {}

  bool ok() const { return ok_; }
  ValueId then(const std::string& op, Ids inputs, Kind kind, Attributes attributes = {}) {
    if (!ok_ || std::ranges::any_of(inputs, [](ValueId id) { return !id.valid(); })) return fail();
    const Ids made = m_.add(op, std::move(inputs), kind, std::move(attributes));
    return made.empty() ? fail() : made[0];
  }
  /// A convolution to `channels` with square filters that keeps the image's extents.
  ValueId conv(ValueId x, int64_t channels, int64_t taps, int64_t groups = 1) {
    if (!ok_) return {};
    const int64_t each = m_.extent_of(x, 1) / groups;
    Ints weight = {channels, each};
    const auto dims = static_cast<size_t>(m_.rank(x) - 2);
    weight.insert(weight.end(), dims, taps);
    if (element_count(weight) > 3 * kMostElements) return fail();
    Ids operands = {x, m_.fresh(m_.dtype(x), weight, true)};
    if (m_.one_in(2)) operands.push_back(m_.fresh(m_.dtype(x), {channels}, true));
    Attributes attributes = {{"group", groups}};
    if (taps > 1) attributes["pads"] = Ints(2 * dims, taps / 2);
    return then("Conv", operands, Kind::kSmooth, attributes);
  }
  ValueId batch_norm(ValueId x) {
    if (!ok_) return {};
    const Ints channels = {m_.extent_of(x, 1)};
    const DType dtype = m_.dtype(x);
    const ValueId scale = m_.fresh(dtype, channels, true), bias = m_.fresh(dtype, channels, true);
    const ValueId mean = m_.fresh(dtype, channels, true), deviation = m_.positive(dtype, channels);
    return then("BatchNormalization", {x, scale, bias, mean, deviation}, Kind::kSmooth);
  }
  ValueId activation(ValueId x) {
    switch (m_.rng().below(4)) {
      case 0: return then("Mul", {x, then("Sigmoid", {x}, Kind::kSmooth)}, Kind::kSmooth);
      case 1: return then("HardSwish", {x}, Kind::kSmooth);
      case 2:
        return then(
            "Clip", {x, m_.scalar(0, m_.dtype(x)), m_.scalar(6, m_.dtype(x))}, Kind::kMoves);
      default: return then("Relu", {x}, Kind::kMoves);
    }
  }

 private:
  ValueId fail() {
    ok_ = false;
    return {};
  }

  GraphMaker& m_;
  bool ok_ = true;
};

}  // namespace

static ValueId part(GraphMaker& m, Chain& c, ValueId x, int64_t axis, int64_t start, int64_t end) {
  if (!c.ok()) return {};
  const ValueId first = m.integers({start}), last = m.integers({end}), along = m.integers({axis});
  return c.then("Slice", {x, first, last, along}, Kind::kMoves);
}

// [n, c, h, w] of float32.
static ValueId image(GraphMaker& m) {
  const ValueId x = m.pick_image();
  return m.dtype(x) == DType::kFloat32 && m.rank(x) == 4 ? x : ValueId{};
}

// Layers that join what all earlier ones made (DenseNet), and sums with parts of what is joined.
bool dense_block(GraphMaker& m) {
  Chain c(m);
  Ids parts = {image(m)};
  if (!parts[0].valid()) return false;
  const int64_t growth = m.between(1, 9);
  ValueId joined = parts[0];
  for (int64_t layers = m.between(2, 4); layers-- > 0 && c.ok();) {
    ValueId x = joined;
    if (m.one_in(2)) x = c.batch_norm(x);
    if (m.one_in(2)) x = c.activation(x);
    parts.push_back(c.conv(x, growth, m.choose<int64_t>({1, 3})));
    if (!c.ok()) return false;
    if (m.one_in(6)) m.keep(parts.back());
    // Most layers append; some put what is new before the rest, or one of the parts in twice.
    Ids order = parts;
    if (m.one_in(6)) std::rotate(order.begin(), order.end() - 1, order.end());
    if (m.one_in(10)) order.push_back(order[0]);
    joined = c.then("Concat", order, Kind::kMoves, {{"axis", int64_t{1}}});
  }
  if (!c.ok() || m.one_in(2)) return c.ok();
  const int64_t channels = m.extent_of(joined, 1);
  const int64_t start = m.rng().below(channels - growth + 1);
  const ValueId some = part(m, c, joined, 1, start, start + growth);
  const ValueId sum = c.then("Add", {some, parts.back()}, Kind::kSmooth);
  if (m.one_in(2)) c.then("Concat", {joined, sum}, Kind::kMoves, {{"axis", int64_t{1}}});
  return c.ok();
}

bool residual_block(GraphMaker& m) {
  Chain c(m);
  const ValueId x = image(m);
  if (!x.valid()) return false;
  const int64_t channels = m.extent_of(x, 1);
  const bool same = m.one_in(2);
  const int64_t out = same ? channels : m.extent();
  ValueId y = c.conv(x, m.extent(), m.choose<int64_t>({1, 3}));
  if (m.one_in(2)) y = c.batch_norm(y);
  y = c.activation(y);
  if (c.ok() && m.one_in(3)) y = c.activation(c.conv(y, m.extent_of(y, 1), 3, m.extent_of(y, 1)));
  y = c.conv(y, out, m.choose<int64_t>({1, 3}));
  if (m.one_in(2)) y = c.batch_norm(y);
  const ValueId shortcut = same ? x : c.conv(x, out, 1);
  const ValueId sum =
      c.then("Add", m.one_in(2) ? Ids{shortcut, y} : Ids{y, shortcut}, Kind::kSmooth);
  if (m.one_in(2)) c.activation(sum);
  return c.ok();
}

// Factors for the channels that follow from means over the image.
bool squeeze_excite(GraphMaker& m) {
  Chain c(m);
  const ValueId x = image(m);
  if (!x.valid()) return false;
  const ValueId y = m.one_in(2) ? c.conv(x, m.extent(), 3) : x;
  ValueId s = m.one_in(2) ? c.then("GlobalAveragePool", {y}, Kind::kSmooth)
                          : c.then("ReduceMean", {y, m.integers({2, 3})}, Kind::kSmooth);
  if (!c.ok()) return false;
  const int64_t channels = m.extent_of(y, 1);
  s = c.activation(c.conv(s, m.between(1, 5), 1));
  s = c.conv(s, channels, 1);
  s = c.then(m.choose<const char*>({"Sigmoid", "HardSigmoid"}), {s}, Kind::kSmooth);
  c.then("Mul", m.one_in(2) ? Ids{y, s} : Ids{s, y}, Kind::kSmooth);
  return c.ok();
}

// An image made smaller, then larger, and joined with what it was (U-Net).
bool down_and_up(GraphMaker& m) {
  Chain c(m);
  const ValueId x = image(m);
  if (!x.valid() || m.extent_of(x, 2) < 2 || m.extent_of(x, 3) < 2) return false;
  const ValueId skip = c.activation(c.conv(x, m.extent(), 3));
  const ValueId small = c.then(
      "MaxPool", {skip}, Kind::kMoves, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  const ValueId y = c.conv(small, m.extent(), 3);
  if (!c.ok()) return false;
  Ints sizes = m.shape_of(skip);
  sizes[1] = m.extent_of(y, 1);
  const std::string mode = m.choose<const char*>({"nearest", "linear"});
  const Ids large =
      m.add("Resize", {y, {}, {}, m.integers(sizes)}, Kind::kSmooth, {{"mode", mode}});
  if (large.empty()) return false;
  const ValueId joined = c.then("Concat",
                                m.one_in(2) ? Ids{large[0], skip} : Ids{skip, large[0]},
                                Kind::kMoves,
                                {{"axis", int64_t{1}}});
  if (m.one_in(2)) c.conv(joined, m.extent(), m.choose<int64_t>({1, 3}));
  return c.ok();
}

// A normalization over the last dimension, written as its parts.
bool spelled_norm(GraphMaker& m) {
  Chain c(m);
  const ValueId x = m.pick(
      [&](ValueId id) { return m.dtype(id) == DType::kFloat32 && m.rank(id) >= 2; }, m.shape(3));
  if (m.dtype(x) != DType::kFloat32 || m.facts(x).scale > 30) return false;
  const ValueId axes = m.integers({-1});
  const bool centred = m.one_in(2);
  ValueId y = x;
  if (centred)
    y = c.then("Sub", {x, c.then("ReduceMean", {x, axes}, Kind::kSmooth)}, Kind::kSmooth);
  const ValueId square = m.one_in(2)
                             ? c.then("Mul", {y, y}, Kind::kSmooth)
                             : c.then("Pow", {y, m.scalar(2, DType::kFloat32)}, Kind::kSmooth);
  const ValueId mean = c.then("ReduceMean", {square, axes}, Kind::kSmooth);
  const ValueId sum = c.then("Add", {mean, m.scalar(0.1, DType::kFloat32)}, Kind::kSmooth);
  const ValueId root = c.then("Sqrt", {sum}, Kind::kSmooth);
  y = m.one_in(2) ? c.then("Div", {y, root}, Kind::kSmooth)
                  : c.then("Mul", {y, c.then("Reciprocal", {root}, Kind::kSmooth)}, Kind::kSmooth);
  if (!c.ok()) return false;
  const Ints width = {m.shape_of(x).back()};
  y = c.then("Mul", {y, m.fresh(DType::kFloat32, width, true)}, Kind::kSmooth);
  if (m.one_in(2)) y = c.then("Add", {y, m.fresh(DType::kFloat32, width, true)}, Kind::kSmooth);
  if (m.one_in(3)) c.then("Add", {x, y}, Kind::kSmooth);
  return c.ok();
}

// A normalization of groups or images, then an activation and a convolution.
bool normalized_conv(GraphMaker& m) {
  Chain c(m);
  const ValueId x = image(m);
  if (!x.valid()) return false;
  const int64_t channels = m.extent_of(x, 1);
  const ValueId scale = m.fresh(DType::kFloat32, {channels}, true);
  const ValueId bias = m.fresh(DType::kFloat32, {channels}, true);
  int64_t groups = 1;
  for (int64_t g = 2; g <= channels; ++g)
    if (channels % g == 0 && m.one_in(2)) groups = g;
  ValueId y =
      m.one_in(2)
          ? c.then("GroupNormalization",
                   {x, scale, bias},
                   Kind::kSmooth,
                   {{"epsilon", 0.1}, {"num_groups", groups}})
          : c.then("InstanceNormalization", {x, scale, bias}, Kind::kSmooth, {{"epsilon", 0.1}});
  y = c.activation(y);
  y = c.conv(y, m.extent(), m.choose<int64_t>({1, 3}));
  if (c.ok() && m.extent_of(y, 1) == channels) c.then("Add", {x, y}, Kind::kSmooth);
  return c.ok();
}

// Operators on images whose channels come last, between two transposes.
bool channels_last_block(GraphMaker& m) {
  Chain c(m);
  const ValueId x = image(m);
  if (!x.valid()) return false;
  const ValueId before = m.one_in(2) ? c.conv(x, m.extent(), 3) : x;
  ValueId y = c.then("Transpose", {before}, Kind::kMoves, {{"perm", Ints{0, 2, 3, 1}}});
  if (!c.ok()) return false;
  const int64_t width = m.extent_of(y, 3);
  switch (m.rng().below(3)) {
    case 0:
      y = c.then("LayerNormalization",
                 {y, m.fresh(DType::kFloat32, {width}, true)},
                 Kind::kSmooth,
                 {{"epsilon", 0.1}});
      break;
    case 1: y = c.then("Softmax", {y}, Kind::kSmooth, {{"axis", int64_t{-1}}}); break;
    default: y = c.activation(y);
  }
  const ValueId w = m.fresh(DType::kFloat32, {width, m.one_in(2) ? width : m.extent()}, true);
  y = c.then("MatMul", {y, w}, Kind::kSmooth);
  y = c.activation(y);
  y = c.then("Transpose", {y}, Kind::kMoves, {{"perm", Ints{0, 3, 1, 2}}});
  if (!c.ok()) return false;
  if (m.shape_of(y) == m.shape_of(before) && m.one_in(2))
    y = c.then("Add", {before, y}, Kind::kSmooth);
  if (m.one_in(2)) c.conv(y, m.extent(), m.choose<int64_t>({1, 3}));
  return c.ok();
}

// Channels of groups exchanged; half of them convolved (ShuffleNet).
bool channel_shuffle(GraphMaker& m) {
  Chain c(m);
  const ValueId x = image(m);
  if (!x.valid() || m.extent_of(x, 1) % 2 != 0) return false;
  const Ints shape = m.shape_of(x);
  const Ids halves = m.add("Split", {x}, Kind::kMoves, {{"axis", 1L}, {"num_outputs", 2L}}, 2);
  if (halves.empty()) return false;
  const ValueId y = c.activation(c.conv(halves[0], shape[1] / 2, m.choose<int64_t>({1, 3})));
  const ValueId joined = c.then("Concat",
                                m.one_in(2) ? Ids{halves[1], y} : Ids{y, halves[1]},
                                Kind::kMoves,
                                {{"axis", int64_t{1}}});
  const ValueId to = m.integers({shape[0], 2, shape[1] / 2, shape[2], shape[3]});
  const ValueId groups = c.then("Reshape", {joined, to}, Kind::kMoves);
  const ValueId turned =
      c.then("Transpose", {groups}, Kind::kMoves, {{"perm", Ints{0, 2, 1, 3, 4}}});
  c.then("Reshape", {turned, m.integers(shape)}, Kind::kMoves);
  return c.ok();
}

// The parts of a Split, some of them changed, joined in another order.
bool split_and_join(GraphMaker& m) {
  Chain c(m);
  const ValueId x = m.pick_any();
  const int64_t axis = m.axis_of(x), n = m.extent_of(x, axis), count = m.between(2, 3);
  if (n < count) return false;
  Ints sizes(static_cast<size_t>(count), 1);
  for (int64_t left = n - count; left > 0; --left) ++sizes[m.rng().below(count)];
  Ids parts = m.add("Split",
                    {x, m.integers(sizes)},
                    Kind::kMoves,
                    {{"axis", m.written(axis, x)}},
                    static_cast<size_t>(count));
  if (parts.empty()) return false;
  for (ValueId& each : parts) {
    if (m.one_in(2) && m.number(each)) each = c.then("Abs", {each}, Kind::kMoves);
    if (c.ok() && m.one_in(6)) m.keep(each);
  }
  std::rotate(parts.begin(), parts.begin() + m.rng().below(count), parts.end());
  if (m.one_in(3)) std::swap(parts[0], parts[1]);
  if (m.one_in(5)) parts.push_back(parts[0]);
  if (m.one_in(5)) parts.push_back(x);
  c.then("Concat", parts, Kind::kMoves, {{"axis", m.written(axis, x)}});
  return c.ok();
}

// A cyclic shift along one or two dimensions, of slices that are joined.
bool roll(GraphMaker& m) {
  Chain c(m);
  ValueId x = m.pick_any();
  for (int64_t times = m.between(1, 2); times-- > 0;) {
    const int64_t axis = m.axis_of(x), n = m.extent_of(x, axis);
    if (n < 2) return false;
    const int64_t at = m.between(1, n - 1);
    const ValueId low = part(m, c, x, axis, 0, at), high = part(m, c, x, axis, at, n);
    x = c.then("Concat", {high, low}, Kind::kMoves, {{"axis", axis}});
    if (!c.ok()) return false;
  }
  return true;
}

// A product whose result is cut into parts that are used apart (SwiGLU, gated units).
bool gated_product(GraphMaker& m) {
  Chain c(m);
  const ValueId x = m.pick(
      [&](ValueId id) {
        return m.dtype(id) == DType::kFloat32 && m.rank(id) >= 2 && m.facts(id).scale < 30;
      },
      m.shape(2));
  if (m.dtype(x) != DType::kFloat32 || m.rank(x) < 2) return false;
  const int64_t width = m.extent(), k = m.shape_of(x).back();
  ValueId gate, up;
  if (m.one_in(2)) {
    const ValueId both =
        c.then("MatMul", {x, m.fresh(DType::kFloat32, {k, 2 * width}, true)}, Kind::kSmooth);
    gate = part(m, c, both, -1, 0, width);
    up = part(m, c, both, -1, width, 2 * width);
  } else {
    gate = c.then("MatMul", {x, m.fresh(DType::kFloat32, {k, width}, true)}, Kind::kSmooth);
    up = c.then("MatMul", {x, m.fresh(DType::kFloat32, {k, width}, true)}, Kind::kSmooth);
  }
  ValueId y = c.then("Mul", {c.activation(gate), up}, Kind::kSmooth);
  y = c.then("MatMul", {y, m.fresh(DType::kFloat32, {width, k}, true)}, Kind::kSmooth);
  if (m.one_in(2)) c.then("Add", {x, y}, Kind::kSmooth);
  return c.ok();
}

}  // namespace pruner
