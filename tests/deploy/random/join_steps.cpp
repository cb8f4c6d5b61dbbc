#include "steps.h"

#include <algorithm>

namespace pruner {

static bool same_but(const Ints& a, const Ints& b, size_t axis) {
  if (a.size() != b.size()) return false;
  for (size_t d = 0; d < a.size(); ++d)
    if (d != axis && a[d] != b[d]) return false;
  return true;
}

// Returns a value of that shape. A Concat may take it in place from the operator that makes it.
static ValueId branch(GraphMaker& m, DType type, const Ints& shape) {
  const bool is_real = is_float(type);
  const size_t n = shape.size();
  Ids made;
  switch (m.rng().below(7)) {
    case 0:
    case 1:
      if (n >= 2 && dtype_bytes(type) >= 2 && type != DType::kBool) {
        Ints left = shape;
        left.back() = m.extent();
        if (element_count(left) > kMostElements) break;
        made = m.add("MatMul",
                     {m.fresh(type, left), m.fresh(type, {left.back(), shape.back()}, true)},
                     Kind::kAdds);
      }
      break;
    case 2:
      if (n >= 3 && n <= 5 && is_real) {
        Ints image = shape, weight = {shape[1], m.extent()};
        image[1] = weight[1];
        const bool wide = m.one_in(2);
        for (size_t d = 2; d < n; ++d) weight.push_back(wide ? 3 : 1);
        if (element_count(image) > kMostElements || element_count(weight) > 2 * kMostElements)
          break;
        Attributes attributes;
        if (wide) attributes["pads"] = Ints(2 * (n - 2), 1);
        made = m.add(
            "Conv", {m.fresh(type, image), m.fresh(type, weight, true)}, Kind::kSmooth, attributes);
      }
      break;
    case 3:
      if (n >= 3 && n <= 5 && is_real)
        made = m.add("MaxPool",
                     {m.fresh(type, shape)},
                     Kind::kMoves,
                     {{"kernel_shape", Ints(n - 2, 3)}, {"pads", Ints(2 * (n - 2), 1)}});
      break;
    case 4: {
      const auto axis = static_cast<size_t>(m.rng().below(std::ssize(shape)));
      Ints from = shape;
      const int64_t step = m.between(1, 3), start = m.between(0, 2);
      from[axis] = start + shape[axis] * step;
      if (element_count(from) > kMostElements) break;
      made = m.add("Slice",
                   {m.fresh(type, from),
                    m.integers({start}),
                    m.integers({from[axis]}),
                    m.integers({static_cast<int64_t>(axis)}),
                    m.integers({step})},
                   Kind::kMoves);
      break;
    }
    case 5: {
      const Ints order = m.permutation(std::ssize(shape));
      Ints from(n);
      for (size_t d = 0; d < n; ++d) from[static_cast<size_t>(order[d])] = shape[d];
      made = m.add("Transpose", {m.fresh(type, from)}, Kind::kMoves, {{"perm", order}});
      break;
    }
    default: break;
  }
  if (!made.empty()) return made[0];
  const ValueId x = m.fresh(type, shape);
  if (is_real) made = m.add(m.choose<const char*>({"Relu", "Tanh", "Neg"}), {x}, Kind::kSmooth);
  return made.empty() ? x : made[0];
}

bool concat(GraphMaker& m) {
  const ValueId x = m.pick([&](ValueId) { return true; }, m.shape(m.between(1, 4)));
  const auto axis = static_cast<size_t>(m.axis_of(x));
  Ids parts = {x};
  for (int64_t n = m.between(1, 3); n-- > 0;) {
    const Ids fitting = m.all_that([&](ValueId id) {
      return m.dtype(id) == m.dtype(x) && same_but(m.shape_of(id), m.shape_of(x), axis) &&
             std::ranges::find(parts, id) == parts.end();
    });
    Ints shape = m.shape_of(x);
    shape[axis] = m.extent();
    if (!fitting.empty() && m.one_in(2)) {
      parts.push_back(fitting[m.rng().below(std::ssize(fitting))]);
    } else if (m.one_in(10)) {
      parts.push_back(parts[0]);
    } else if (element_count(shape) < kMostElements) {
      parts.push_back(branch(m, m.dtype(x), shape));
    }
  }
  for (const ValueId id : parts)
    if (m.one_in(8)) m.keep(id);
  std::rotate(parts.begin(), parts.begin() + m.rng().below(std::ssize(parts)), parts.end());
  return m.one("Concat", parts, Kind::kMoves, {{"axis", m.written(static_cast<int64_t>(axis), x)}});
}

// Joins products of one value, or convolutions of one image, of different widths.
bool joined_products(GraphMaker& m) {
  Ids parts;
  int64_t axis = 0;
  if (m.one_in(2)) {
    const ValueId x = m.pick_real(2);
    axis = m.rank(x) - 1;
    for (int64_t n = m.between(2, 3); n-- > 0;) {
      const Ids made = m.add("MatMul",
                             {x, m.fresh(m.dtype(x), {m.shape_of(x).back(), m.extent()}, true)},
                             Kind::kAdds);
      if (made.empty()) return false;
      parts.push_back(epilogue(m, made[0], static_cast<size_t>(axis)));
    }
  } else {
    const ValueId x = m.pick_image();
    if (!m.real(x) || m.rank(x) < 3) return false;
    axis = 1;
    for (int64_t n = m.between(2, 3); n-- > 0;) {
      const bool wide = m.one_in(2);
      Ints weight = {m.extent(), m.shape_of(x)[1]};
      const auto dims = static_cast<size_t>(m.rank(x) - 2);
      for (size_t d = 0; d < dims; ++d) weight.push_back(wide ? 3 : 1);
      if (element_count(weight) > 2 * kMostElements) return false;
      Attributes attributes;
      if (wide) attributes["pads"] = Ints(2 * dims, 1);
      const Ids made =
          m.add("Conv", {x, m.fresh(m.dtype(x), weight, true)}, Kind::kSmooth, attributes);
      if (made.empty()) return false;
      parts.push_back(epilogue(m, made[0], 1));
    }
  }
  return m.one("Concat", parts, Kind::kMoves, {{"axis", axis}});
}

bool split(GraphMaker& m) {
  const ValueId x = m.pick_any();
  const int64_t axis = m.axis_of(x), n = m.shape_of(x)[static_cast<size_t>(axis)];
  const int64_t parts = m.between(2, 4);
  if (n < parts) return false;
  Attributes attributes = {{"axis", m.written(axis, x)}};
  Ids operands = {x};
  if (m.one_in(2)) {
    Ints sizes(static_cast<size_t>(parts), 1);
    for (int64_t left = n - parts; left > 0; --left) ++sizes[m.rng().below(parts)];
    operands.push_back(m.integers(sizes));
  } else {
    attributes["num_outputs"] = parts;
  }
  return !m.add("Split", operands, Kind::kMoves, attributes, static_cast<size_t>(parts)).empty();
}

}  // namespace pruner
