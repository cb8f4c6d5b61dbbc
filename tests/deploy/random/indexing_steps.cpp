#include "steps.h"

#include <algorithm>

namespace pruner {

bool gather(GraphMaker& m) {
  const ValueId x = m.pick_any();
  const int64_t axis = m.axis_of(x);
  const ValueId at =
      m.indices(m.one_in(3) ? Ints{m.between(1, 3), m.between(1, 5)} : Ints{m.between(1, 9)},
                m.shape_of(x)[static_cast<size_t>(axis)]);
  return m.one("Gather", {x, at}, Kind::kMoves, {{"axis", m.written(axis, x)}});
}

bool gather_elements(GraphMaker& m) {
  const ValueId x = m.pick_any();
  const int64_t axis = m.axis_of(x);
  Ints shape;
  for (const int64_t n : m.shape_of(x)) shape.push_back(m.between(1, n));
  shape[static_cast<size_t>(axis)] = m.between(1, 9);
  return m.one("GatherElements",
               {x, m.indices(shape, m.shape_of(x)[static_cast<size_t>(axis)])},
               Kind::kMoves,
               {{"axis", m.written(axis, x)}});
}

bool gather_nd(GraphMaker& m) {
  const ValueId x = m.pick_any();
  if (m.rank(x) < 2) return false;
  const int64_t batch = m.rank(x) >= 3 && m.one_in(3) ? 1 : 0;
  // All indices lie within the smaller of the extents that they are of.
  const int64_t depth = m.between(1, 2);
  const int64_t least = depth == 1 ? m.extent_of(x, batch)
                                   : std::min(m.extent_of(x, batch), m.extent_of(x, batch + 1));
  Ints shape = {m.between(1, 9), depth};
  if (batch > 0) shape.insert(shape.begin(), m.extent_of(x, 0));
  const ValueId at = m.indices(shape, least);
  if (m.dtype(at) != DType::kInt64) return false;
  return m.one("GatherND", {x, at}, Kind::kMoves, {{"batch_dims", batch}});
}

bool scatter_nd(GraphMaker& m) {
  const ValueId x = m.pick_number(2);
  if (m.rank(x) < 2) return false;
  const int64_t depth = m.between(1, 2);
  const int64_t least =
      depth == 1 ? m.extent_of(x, 0) : std::min(m.extent_of(x, 0), m.extent_of(x, 1));
  const int64_t rows = m.between(1, 5);
  const ValueId at = m.indices({rows, depth}, least);
  if (m.dtype(at) != DType::kInt64) return false;
  const Ints of = m.shape_of(x);
  Ints updates = {rows};
  updates.insert(updates.end(), of.begin() + depth, of.end());
  const std::string reduction = m.choose<const char*>({"none", "add", "mul", "min", "max"});
  return m.one(
      "ScatterND", {x, at, m.fresh(m.dtype(x), updates)}, Kind::kAdds, {{"reduction", reduction}});
}

// New rows of a cache.
bool tensor_scatter(GraphMaker& m) {
  const Ints shape = {m.between(1, 3), m.between(1, 3), m.between(2, 9), m.between(1, 9)};
  const int64_t rows = m.between(1, shape[2]);
  Tensor starts(DType::kInt64, {shape[0]});
  const bool circular = m.one_in(2);
  for (int64_t i = 0; i < shape[0]; ++i)
    starts.set_int(i, m.between(0, circular ? shape[2] - 1 : shape[2] - rows));
  const ValueId cache = m.fresh(m.usual_dtype(), shape);
  const ValueId update = m.fresh(m.usual_dtype(), {shape[0], shape[1], rows, shape[3]});
  const ValueId at = m.one_in(2) ? m.constant(starts) : m.input(starts);
  return m.one("TensorScatter",
               {cache, update, at},
               Kind::kMoves,
               {{"mode", std::string(circular ? "circular" : "linear")}});
}

bool one_hot(GraphMaker& m) {
  const int64_t depth = m.between(1, 9);
  Ints of = m.shape(m.between(1, 2));
  return m.one("OneHot",
               {m.indices(of, depth), m.integers({depth}), m.fresh(m.usual_dtype(), {2})},
               Kind::kMoves,
               {{"axis", m.between(-1, std::ssize(of))}});
}

bool scatter(GraphMaker& m) {
  const ValueId x = m.pick_number(1);
  const int64_t axis = m.axis_of(x), n = m.shape_of(x)[static_cast<size_t>(axis)];
  Ints shape;
  for (const int64_t extent : m.shape_of(x)) shape.push_back(m.between(1, extent));
  if (m.one_in(2)) shape[static_cast<size_t>(axis)] = 1;
  const std::string reduction = m.choose<const char*>({"none", "add", "mul", "min", "max"});
  return m.one("ScatterElements",
               {x, m.indices(shape, n), m.fresh(m.dtype(x), shape)},
               Kind::kAdds,
               {{"axis", axis}, {"reduction", reduction}});
}

// The pixels of an image at places that a grid names.
bool grid_sample(GraphMaker& m) {
  const ValueId x = m.pick_image();
  if (m.dtype(x) != DType::kFloat32 || m.rank(x) > 4) return false;
  const int64_t dims = m.rank(x) - 2;
  Ints shape = {m.extent_of(x, 0)};
  for (int64_t d = 0; d < dims; ++d) shape.push_back(m.between(1, 9));
  shape.push_back(dims);
  Tensor grid(DType::kFloat32, shape);
  const std::string mode =
      dims == 2 ? m.choose<const char*>({"linear", "nearest", "cubic"}) : "linear";
  // No place is near one where the nearest pixel changes, or the padding begins.
  for (int64_t i = 0; i < grid.num_elements(); ++i)
    grid.set(i, static_cast<double>(m.between(-36, 36)) / 32 + 0.011);
  const std::string padding = m.choose<const char*>({"zeros", "border", "reflection"});
  const ValueId at = m.constant(grid);
  return m.one(
      "GridSample",
      {x, at},
      Kind::kSmooth,
      {{"align_corners", int64_t{m.one_in(2)}}, {"mode", mode}, {"padding_mode", padding}});
}

bool col2im(GraphMaker& m) {
  const int64_t height = m.between(2, 9), width = m.between(2, 9);
  const int64_t rows = m.between(1, std::min<int64_t>(3, height));
  const int64_t columns = m.between(1, std::min<int64_t>(3, width));
  const Ints strides = {m.between(1, 2), m.between(1, 2)};
  Ints pads(4);
  for (int64_t& pad : pads) pad = m.between(0, 1);
  const int64_t down = (height + pads[0] + pads[2] - rows) / strides[0] + 1;
  const int64_t across = (width + pads[1] + pads[3] - columns) / strides[1] + 1;
  const int64_t channels = m.between(1, 4);
  const ValueId x =
      m.fresh(m.usual_dtype(), {m.between(1, 2), channels * rows * columns, down * across});
  const ValueId image = m.integers({height, width}), block = m.integers({rows, columns});
  return m.one("Col2Im", {x, image, block}, Kind::kAdds, {{"strides", strides}, {"pads", pads}});
}

bool bit_shift(GraphMaker& m) {
  const DType dtype = m.choose<DType>({DType::kUInt8, DType::kUInt16, DType::kUInt32});
  const Ints of = m.shape(m.between(1, 3));
  const ValueId x = m.pick([&](ValueId id) { return m.dtype(id) == dtype; }, of);
  if (m.dtype(x) != dtype) return false;
  Ints shape = m.shape_of(x);
  for (int64_t& n : shape)
    if (m.one_in(3)) n = 1;
  Tensor by(dtype, shape);
  for (int64_t i = 0; i < by.num_elements(); ++i) by.set_int(i, m.between(0, 9));
  const std::string direction = m.choose<const char*>({"LEFT", "RIGHT"});
  const ValueId amount = m.one_in(2) ? m.constant(by) : m.input(by);
  return m.one("BitShift", {x, amount}, Kind::kChooses, {{"direction", direction}});
}

// The tensors of what is found are outputs of the network: no operator may read them.
bool found(GraphMaker& m) {
  const ValueId x = m.pick([&](ValueId id) { return m.facts(id).exact; }, m.shape(2));
  if (!m.facts(x).exact) return false;
  const auto before = static_cast<int32_t>(m.graph().values.size());
  Ids made;
  switch (m.rng().below(4)) {
    case 0: made = m.add("NonZero", {x}, Kind::kChooses); break;
    case 1: {
      Attributes attributes = {{"sorted", int64_t{m.one_in(2)}}};
      if (m.one_in(2)) attributes["axis"] = m.written(m.axis_of(x), x);
      made = m.add("Unique", {x}, Kind::kChooses, attributes, static_cast<size_t>(m.between(1, 4)));
      break;
    }
    case 2: {
      const int64_t axis = m.axis_of(x);
      const ValueId condition = m.fresh(DType::kBool, {m.extent_of(x, axis)});
      made = m.add("Compress", {x, condition}, Kind::kChooses, {{"axis", axis}});
      break;
    }
    default: {
      const int64_t batch = m.between(1, 2), boxes = m.between(1, 9), classes = m.between(1, 3);
      Tensor corners(DType::kFloat32, {batch, boxes, 4});
      for (int64_t i = 0; i < corners.num_elements(); ++i)
        corners.set(i, static_cast<double>(m.between(0, 4) + (i % 4 < 2 ? 0 : 5)));
      const ValueId where = m.input(corners);
      const ValueId scores = m.fresh(DType::kFloat32, {batch, classes, boxes});
      const ValueId most = m.integers({m.between(1, 5)});
      const ValueId overlap = m.scalar(0.4, DType::kFloat32);
      const ValueId least = m.scalar(-0.5, DType::kFloat32);
      made = m.add("NonMaxSuppression", {where, scores, most, overlap, least}, Kind::kChooses);
    }
  }
  const auto after = static_cast<int32_t>(m.graph().values.size());
  for (int32_t v = before; v < after; ++v) m.loosen(ValueId{v}, 0);
  return !made.empty();
}

bool roi_align(GraphMaker& m) {
  const ValueId x =
      m.pick([&](ValueId id) { return m.dtype(id) == DType::kFloat32 && m.rank(id) == 4; },
             {m.between(1, 2), m.between(1, 5), m.between(2, 9), m.between(2, 9)});
  if (m.dtype(x) != DType::kFloat32) return false;
  const int64_t count = m.between(1, 4);
  Tensor rois(DType::kFloat32, {count, 4}), images(DType::kInt64, {count});
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t e = 0; e < 4; ++e)
      rois.set(4 * i + e, static_cast<double>(m.between(0, 4)) + (e < 2 ? 0.13 : 3.17));
    images.set_int(i, m.rng().below(m.extent_of(x, 0)));
  }
  const ValueId where = m.input(rois), of = m.one_in(2) ? m.constant(images) : m.input(images);
  Attributes attributes = {{"output_height", m.between(1, 4)}, {"output_width", m.between(1, 4)}};
  attributes["mode"] = std::string(m.choose<const char*>({"avg", "max"}));
  if (m.one_in(2)) attributes["sampling_ratio"] = int64_t{2};
  return m.one("RoiAlign", {x, where, of}, Kind::kSmooth, attributes);
}

bool max_unpool(GraphMaker& m) {
  const ValueId x = m.pick_image();
  if (m.rank(x) != 4 || !m.facts(x).exact) return false;
  if (m.extent_of(x, 2) < 2 || m.extent_of(x, 3) < 2) return false;
  const Attributes attributes = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  const Ids pooled = m.add("MaxPool", {x}, Kind::kChooses, attributes, 2);
  if (pooled.empty()) return false;
  // Places are counted in an image of even extents.
  if (m.extent_of(x, 2) % 2 != 0 || m.extent_of(x, 3) % 2 != 0) return false;
  return m.one("MaxUnpool", pooled, Kind::kMoves, attributes);
}

bool deform_conv(GraphMaker& m) {
  const int64_t n = m.between(1, 2), c = m.between(1, 5), h = m.between(2, 7), w = m.between(2, 7);
  const int64_t taps = m.between(1, 2), out = m.between(1, 9);
  const ValueId x = m.fresh(DType::kFloat32, {n, c, h, w});
  const ValueId weight = m.fresh(DType::kFloat32, {out, c, taps, taps}, true);
  Tensor offsets(DType::kFloat32, {n, 2 * taps * taps, h - taps + 1, w - taps + 1});
  for (int64_t i = 0; i < offsets.num_elements(); ++i)
    offsets.set(i, static_cast<double>(m.between(-6, 6)) / 4 + 0.03);
  const ValueId moved = m.input(offsets);
  return m.one(
      "DeformConv", {x, weight, moved}, Kind::kSmooth, {{"kernel_shape", Ints{taps, taps}}});
}

}  // namespace pruner
