#include "steps.h"

#include <numeric>

namespace pruner {

ValueId epilogue(GraphMaker& m, ValueId x, size_t channel_axis) {
  ValueId made = x;
  const auto then = [&](const Ids& next) {
    if (!next.empty()) made = next[0];
  };
  if (m.one_in(4)) {
    Ints shape(m.shape_of(x).size(), 1);
    shape[channel_axis] = m.shape_of(x)[channel_axis];
    then(m.add("Add", {made, m.fresh(m.dtype(x), shape, true)}, Kind::kAdds));
  }
  if (m.one_in(4)) then(m.add("Relu", {made}, Kind::kMoves));
  return made;
}

bool matmul(GraphMaker& m) {
  const ValueId x = m.pick_number(1);
  if (!m.real(x) && dtype_bytes(m.dtype(x)) < 4) return false;
  const Ints of = m.shape_of(x);
  Ids operands;
  if (of.size() >= 2 && m.one_in(3)) {  // multiplies by the left side
    Ints shape(of.begin(), of.end());
    shape[shape.size() - 1] = of[of.size() - 2];
    shape[shape.size() - 2] = m.extent();
    if (m.one_in(3)) shape.erase(shape.begin(), shape.end() - 2);
    operands = {m.fresh(m.dtype(x), shape, true), x};
  } else {
    Ints shape = {of.back(), m.extent()};
    if (of.size() >= 3 && m.one_in(3)) {
      shape = of;
      shape[shape.size() - 2] = of.back();
      shape.back() = m.extent();
      if (m.one_in(3)) shape[0] = 1;
    }
    if (m.one_in(12)) shape = {of.back()};
    operands = {x, m.fresh(m.dtype(x), shape, !m.one_in(3))};
  }
  const Ids made = m.add("MatMul", operands, Kind::kAdds);
  if (made.empty()) return false;
  if (m.rank(made[0]) > 0) epilogue(m, made[0], m.shape_of(made[0]).size() - 1);
  return true;
}

bool gemm(GraphMaker& m) {
  const ValueId x = m.pick([&](ValueId id) { return m.real(id) && m.rank(id) == 2; }, m.shape(2));
  if (!m.real(x)) return false;
  const int64_t ta = m.rng().below(2), tb = m.rng().below(2);
  const int64_t rows = m.shape_of(x)[static_cast<size_t>(ta)];
  const int64_t k = m.shape_of(x)[static_cast<size_t>(1 - ta)], n = m.extent();
  Ids operands = {x, m.fresh(m.dtype(x), tb ? Ints{n, k} : Ints{k, n}, true)};
  Attributes attributes = {{"transA", ta}, {"transB", tb}};
  if (m.one_in(3)) attributes["alpha"] = m.whole() ? 2.0 : 0.5;
  if (m.one_in(2)) {
    operands.push_back(m.fresh(
        m.dtype(x), m.choose<Ints>({{n}, {1, n}, {rows, 1}, {rows, n}, {1}}), !m.one_in(3)));
    if (m.one_in(3)) attributes["beta"] = 2.0;
  }
  const Ids made = m.add("Gemm", operands, Kind::kAdds, attributes);
  if (made.empty()) return false;
  epilogue(m, made[0], 1);
  return true;
}

bool attention(GraphMaker& m) {
  const ValueId q = m.pick(
      [&](ValueId id) {
        return m.dtype(id) == DType::kFloat32 && m.rank(id) >= 2 && m.facts(id).scale < 10;
      },
      m.shape(3));
  if (m.dtype(q) != DType::kFloat32 || m.rank(q) < 2) return false;
  Ints keys = m.shape_of(q);
  keys[keys.size() - 2] = m.extent();
  Ints values = keys;
  values.back() = m.extent();
  const ValueId k = m.one_in(4) ? q : m.fresh(DType::kFloat32, keys);
  values[values.size() - 2] = m.shape_of(k)[keys.size() - 2];
  Ints order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  const Ids turned = m.add("Transpose", {k}, Kind::kMoves, {{"perm", order}});
  if (turned.empty()) return false;
  Ids scores = m.add("MatMul", {q, turned[0]}, Kind::kAdds);
  if (scores.empty()) return false;
  const Ids scaled = m.add("Mul", {scores[0], m.scalar(0.25, DType::kFloat32)}, Kind::kSmooth);
  if (scaled.empty()) return false;
  const Ids shares = m.add("Softmax", scaled, Kind::kSmooth, {{"axis", int64_t{-1}}});
  if (shares.empty()) return false;
  return m.one("MatMul", {shares[0], m.fresh(DType::kFloat32, values)}, Kind::kSmooth);
}

bool conv(GraphMaker& m) {
  const ValueId x = m.pick_image();
  if (!m.real(x) || m.rank(x) < 3) return false;
  const int64_t channels = m.shape_of(x)[1];
  Ints kernel;
  const bool pointwise = m.one_in(4);
  for (size_t d = 2; d < m.shape_of(x).size(); ++d)
    kernel.push_back(pointwise ? 1 : m.between(1, std::min<int64_t>(5, m.shape_of(x)[d])));
  if (m.one_in(3)) {
    for (size_t d = 0; d < kernel.size(); ++d)
      kernel[d] = std::min<int64_t>(3, m.shape_of(x)[d + 2]);
  }
  int64_t groups = 1;
  if (m.one_in(4)) {
    groups = channels;
  } else if (m.one_in(5)) {
    for (int64_t g = channels; g > 1; --g)
      if (channels % g == 0 && m.one_in(2)) groups = g;
  }
  const int64_t each = groups == 1 ? m.extent() : m.between(1, groups == channels ? 2 : 4);
  Ints weight = {groups * each, channels / groups};
  weight.insert(weight.end(), kernel.begin(), kernel.end());
  if (element_count(weight) > 3 * kMostElements) return false;
  Attributes attributes = window(m, x, kernel, false);
  attributes["group"] = groups;
  Ids operands = {x, m.fresh(m.dtype(x), weight, true)};
  if (m.one_in(2)) operands.push_back(m.fresh(m.dtype(x), {groups * each}, true));
  // Winograd's transforms round even whole numbers.
  const Ids made = m.add("Conv", operands, Kind::kSmooth, attributes);
  if (made.empty()) return false;
  epilogue(m, made[0], 1);
  return true;
}

bool conv_transpose(GraphMaker& m) {
  const ValueId x = m.pick_image();
  if (!m.real(x) || m.rank(x) < 3) return false;
  const int64_t channels = m.shape_of(x)[1];
  const int64_t groups = m.one_in(5) ? channels : 1;
  Ints weight = {channels, groups == 1 ? m.extent() : m.between(1, 2)}, strides, pads;
  const size_t dims = m.shape_of(x).size() - 2;
  for (size_t d = 0; d < dims; ++d) {
    weight.push_back(m.between(1, 4));
    strides.push_back(m.between(1, 3));
  }
  for (size_t d = 0; d < 2 * dims; ++d) pads.push_back(m.between(0, 1));
  Attributes attributes = {{"group", groups}, {"strides", strides}};
  if (m.one_in(2)) attributes["pads"] = pads;
  Ids operands = {x, m.fresh(m.dtype(x), weight, true)};
  if (m.one_in(2)) operands.push_back(m.fresh(m.dtype(x), {weight[1] * groups}, true));
  return m.one("ConvTranspose", operands, Kind::kSmooth, attributes);
}

bool einsum(GraphMaker& m) {
  const ValueId x = m.pick([&](ValueId id) { return m.real(id) && m.rank(id) == 2; }, m.shape(2));
  if (!m.real(x) || m.rank(x) != 2) return false;
  const int64_t i = m.shape_of(x)[0], j = m.shape_of(x)[1], k = m.extent();
  switch (m.rng().below(4)) {
    case 0:
      return m.one("Einsum",
                   {x, m.fresh(m.dtype(x), {k, j}, true)},
                   Kind::kAdds,
                   {{"equation", std::string("ij,kj->ik")}});
    case 1:
      return m.one("Einsum",
                   {x, m.fresh(m.dtype(x), {i, k}, true)},
                   Kind::kAdds,
                   {{"equation", std::string("ij,ik->kj")}});
    case 2: return m.one("Einsum", {x}, Kind::kAdds, {{"equation", std::string("ij->j")}});
    default:
      return m.one("Einsum",
                   {x, m.fresh(m.dtype(x), {i, j}, true)},
                   Kind::kAdds,
                   {{"equation", std::string("ij,ij->i")}});
  }
}

}  // namespace pruner
