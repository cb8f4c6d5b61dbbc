#include "steps.h"

namespace pruner {

Attributes window(GraphMaker& m, ValueId x, const Ints& kernel, bool pooled) {
  const size_t dims = kernel.size();
  Attributes attributes;
  Ints strides, dilations, pads(2 * dims);
  const bool strided = m.one_in(2), dilated = m.one_in(5), padded = !m.one_in(3);
  for (size_t d = 0; d < dims; ++d) {
    strides.push_back(strided ? m.between(1, 3) : 1);
    const bool room = (kernel[d] - 1) * 2 + 1 <= m.shape_of(x)[d + 2];
    dilations.push_back(dilated && room ? 2 : 1);
    const int64_t reach = (kernel[d] - 1) * dilations[d] + 1;
    const int64_t most = padded ? (pooled ? std::min<int64_t>(reach - 1, 2) : 2) : 0;
    pads[d] = m.between(0, most);
    pads[dims + d] = m.between(0, most);
  }
  if (strided) attributes["strides"] = strides;
  if (dilated) attributes["dilations"] = dilations;
  if (m.one_in(6)) {
    attributes["auto_pad"] = std::string(m.choose<const char*>({"SAME_UPPER", "SAME_LOWER"}));
  } else if (padded) {
    attributes["pads"] = pads;
  }
  return attributes;
}

bool max_pool(GraphMaker& m) {
  const ValueId x = m.pick_image();
  if (m.rank(x) < 3) return false;
  Ints kernel;
  for (size_t d = 2; d < m.shape_of(x).size(); ++d)
    kernel.push_back(m.between(1, std::min<int64_t>(4, m.shape_of(x)[d])));
  Attributes attributes = window(m, x, kernel, true);
  attributes["kernel_shape"] = kernel;
  if (m.one_in(3)) attributes["ceil_mode"] = int64_t{1};
  if (!m.facts(x).exact) return m.one("MaxPool", {x}, Kind::kMoves, attributes);
  if (m.one_in(3)) attributes["storage_order"] = int64_t{1};
  return !m.add("MaxPool", {x}, Kind::kChooses, attributes, m.one_in(3) ? 1 : 2).empty();
}

bool average_pool(GraphMaker& m) {
  const ValueId x = m.pick_image();
  if (!m.real(x) || m.rank(x) < 3) return false;
  Ints kernel;
  for (size_t d = 2; d < m.shape_of(x).size(); ++d)
    kernel.push_back(m.between(1, std::min<int64_t>(4, m.shape_of(x)[d])));
  const bool power = m.one_in(5);
  Attributes attributes = window(m, x, kernel, true);
  attributes["kernel_shape"] = kernel;
  if (m.one_in(3)) attributes["ceil_mode"] = int64_t{1};
  if (power) {
    attributes["p"] = m.between(1, 3);
  } else if (m.one_in(2)) {
    attributes["count_include_pad"] = int64_t{1};
  }
  return m.one(power ? "LpPool" : "AveragePool", {x}, Kind::kSmooth, attributes);
}

bool other_pool(GraphMaker& m) {
  const ValueId x = m.pick_image();
  if (!m.real(x) || m.rank(x) < 3) return false;
  switch (m.rng().below(3)) {
    case 0: return m.one("GlobalAveragePool", {x}, Kind::kSmooth);
    case 1: return m.one("GlobalMaxPool", {x}, Kind::kMoves);
    default: return m.one("LRN", {x}, Kind::kSmooth, {{"size", m.between(1, 5)}, {"alpha", 0.1}});
  }
}

bool resize(GraphMaker& m) {
  const ValueId x = m.pick_image();
  if (!m.real(x)) return false;
  Ints sizes = m.shape_of(x);
  for (size_t d = 2; d < sizes.size(); ++d)
    if (!m.one_in(3)) sizes[d] = m.extent();
  const std::string mode =
      m.choose<const char*>({"nearest", "nearest", "linear", "linear", "cubic"});
  Attributes attributes = {
      {"mode", mode},
      {"coordinate_transformation_mode",
       std::string(m.choose<const char*>(
           {"align_corners", "asymmetric", "half_pixel", "pytorch_half_pixel"}))}};
  if (mode == "nearest") {
    attributes["nearest_mode"] = std::string(
        m.choose<const char*>({"ceil", "floor", "round_prefer_ceil", "round_prefer_floor"}));
  } else if (m.one_in(3)) {
    attributes["antialias"] = int64_t{1};
  }
  return m.one("Resize",
               {x, {}, {}, m.integers(sizes)},
               mode == "nearest" ? Kind::kMoves : Kind::kSmooth,
               attributes);
}

}  // namespace pruner
