#include "steps.h"

#include <algorithm>
#include <cmath>

#include "graph/functions/body.h"

namespace pruner {

// Whether no product of elements, in whatever order, leaves what float32 holds. The error of a
// product of elements that are not exact has no useful bound.
static bool products_fit(const GraphMaker& m, ValueId x) {
  if (!m.facts(x).exact) return false;
  const auto elements = static_cast<double>(element_count(m.shape_of(x)));
  return elements * std::log10(std::max(m.facts(x).scale, 1.0)) < 30;
}

bool reduce(GraphMaker& m) {
  const ValueId x = m.pick_number(1);
  Ints axes;
  for (int64_t d = 0; d < m.rank(x); ++d)
    if (m.one_in(2)) axes.push_back(m.written(d, x));
  Ids operands = {x};
  if (!axes.empty()) operands.push_back(m.integers(axes));
  const Attributes attributes = {{"keepdims", int64_t{m.one_in(2)}}};
  switch (m.rng().below(4)) {
    case 0:
      return m.one(
          m.choose<const char*>({"ReduceMax", "ReduceMin"}), operands, Kind::kMoves, attributes);
    case 1:
      if (!m.real(x)) return false;
      return m.one(m.choose<const char*>({"ReduceMean", "ReduceL2", "ReduceLogSumExp"}),
                   operands,
                   Kind::kSmooth,
                   attributes);
    case 2:
      if (m.one_in(3) && products_fit(m, x))
        return m.one("ReduceProd", operands, Kind::kAdds, attributes);
      return m.one(m.choose<const char*>({"ReduceL1", "ReduceSumSquare"}),
                   operands,
                   Kind::kAdds,
                   attributes);
    default: return m.one("ReduceSum", operands, Kind::kAdds, attributes);
  }
}

bool arg_reduce(GraphMaker& m) {
  const ValueId x =
      m.pick([&](ValueId id) { return m.number(id) && m.facts(id).exact; }, m.shape(3));
  return m.one(m.choose<const char*>({"ArgMax", "ArgMin"}),
               {x},
               Kind::kChooses,
               {{"axis", m.written(m.axis_of(x), x)},
                {"keepdims", int64_t{m.one_in(2)}},
                {"select_last_index", int64_t{m.one_in(2)}}});
}

bool softmax(GraphMaker& m) {
  const ValueId x = m.pick_real(1);
  return m.one(m.choose<const char*>({"Softmax", "Softmax", "LogSoftmax"}),
               {x},
               Kind::kSmooth,
               {{"axis", m.written(m.axis_of(x), x)}});
}

bool layer_norm(GraphMaker& m) {
  const ValueId x = m.pick_real(1);
  const int64_t axis = m.one_in(2) ? m.rank(x) - 1 : m.axis_of(x);
  const Ints scale(m.shape_of(x).begin() + axis, m.shape_of(x).end());
  Attributes attributes = {{"axis", m.written(axis, x)}, {"epsilon", 0.1}};
  switch (m.rng().below(4)) {
    case 0:
      return m.one(
          "RMSNormalization", {x, m.fresh(m.dtype(x), scale, true)}, Kind::kSmooth, attributes);
    case 1:
      return !m.add(kStatisticalLayerNormalization,
                    {x, m.fresh(m.dtype(x), scale, true), m.fresh(m.dtype(x), scale, true)},
                    Kind::kSmooth,
                    attributes,
                    3)
                  .empty();
    default: {
      Ids operands = {x, m.fresh(m.dtype(x), scale, true)};
      if (m.one_in(2)) operands.push_back(m.fresh(m.dtype(x), scale, true));
      return m.one("LayerNormalization", operands, Kind::kSmooth, attributes);
    }
  }
}

// Normalizations that ONNX defines by other operators.
bool other_norm(GraphMaker& m) {
  const ValueId x = m.pick_image();
  if (!m.real(x) || m.rank(x) < 3) return false;
  switch (m.rng().below(4)) {
    case 0:
      // If all elements are about zero, their rounding errors are the whole result.
      return m.one("LpNormalization",
                   {x},
                   m.facts(x).exact ? Kind::kSmooth : Kind::kChooses,
                   {{"axis", m.written(m.axis_of(x), x)}, {"p", m.between(1, 2)}});
    case 1:
      return m.one("Hardmax",
                   {x},
                   m.facts(x).exact ? Kind::kMoves : Kind::kChooses,
                   {{"axis", m.written(m.axis_of(x), x)}});
    case 2: {
      const Ints channels = {m.extent_of(x, 1)};
      const ValueId scale = m.fresh(m.dtype(x), channels, true);
      const ValueId bias = m.fresh(m.dtype(x), channels, true);
      const ValueId mean = m.fresh(m.dtype(x), channels);
      const ValueId variance = m.positive(m.dtype(x), channels);
      return !m.add(kTrainingBatchNormalization,
                    {x, scale, bias, mean, variance},
                    Kind::kSmooth,
                    {{"epsilon", 0.1}},
                    3)
                  .empty();
    }
    default: return m.one("GlobalLpPool", {x}, Kind::kSmooth, {{"p", m.between(1, 2)}});
  }
}

bool channel_norm(GraphMaker& m) {
  const ValueId x = m.pick_image();
  if (!m.real(x) || m.rank(x) < 3) return false;
  const Ints channels = {m.shape_of(x)[1]};
  const auto weight = [&] { return m.fresh(m.dtype(x), channels, true); };
  if (m.one_in(3))
    return m.one(
        "InstanceNormalization", {x, weight(), weight()}, Kind::kSmooth, {{"epsilon", 0.1}});
  if (m.one_in(3)) {
    int64_t groups = 1;
    for (int64_t g = 2; g <= channels[0]; ++g)
      if (channels[0] % g == 0 && m.one_in(2)) groups = g;
    return m.one("GroupNormalization",
                 {x, weight(), weight()},
                 Kind::kSmooth,
                 {{"epsilon", 0.1}, {"num_groups", groups}});
  }
  return m.one("BatchNormalization",
               {x, weight(), weight(), weight(), m.positive(m.dtype(x), channels)},
               Kind::kSmooth);
}

bool scan(GraphMaker& m) {
  const ValueId x = m.pick_number(1);
  Tensor axis(DType::kInt64, {});
  axis.set_int(0, m.written(m.axis_of(x), x));
  ValueId along = m.constant(axis);
  if (m.one_in(8)) {
    along = m.input(axis);
  }
  return m.one(m.one_in(4) && products_fit(m, x) ? "CumProd" : "CumSum",
               {x, along},
               Kind::kAdds,
               {{"exclusive", int64_t{m.one_in(2)}}, {"reverse", int64_t{m.one_in(2)}}});
}

bool top_k(GraphMaker& m) {
  const ValueId x = m.pick_number(1);
  const int64_t axis = m.axis_of(x);
  const int64_t k = m.between(1, m.shape_of(x)[static_cast<size_t>(axis)]);
  const Attributes attributes = {{"axis", m.written(axis, x)}, {"largest", int64_t{m.one_in(2)}}};
  if (!m.facts(x).exact) return m.one("TopK", {x, m.integers({k})}, Kind::kMoves, attributes);
  return !m.add("TopK", {x, m.integers({k})}, Kind::kChooses, attributes, 2).empty();
}

}  // namespace pruner
