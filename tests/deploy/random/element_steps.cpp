#include "steps.h"

namespace pruner {

bool unary(GraphMaker& m) {
  const ValueId x = m.pick_any();
  if (m.dtype(x) == DType::kBool) return m.one("Not", {x}, Kind::kChooses);
  if (!m.real(x)) {
    const std::string op =
        m.choose<const char*>({"Abs", "Neg", "Relu", "Sign", "BitwiseNot", "Clip"});
    if (op != "Clip") return m.one(op, {x}, Kind::kMoves);
    return m.one(op, {x, m.scalar(-2, m.dtype(x)), m.scalar(2, m.dtype(x))}, Kind::kMoves);
  }
  switch (m.rng().below(6)) {
    case 0: return m.one(m.choose<const char*>({"Abs", "Neg"}), {x}, Kind::kMoves);
    case 1: return m.one("Relu", {x}, Kind::kMoves);
    case 2:
      return m.one("Clip",
                   {x,
                    m.one_in(4) ? ValueId{} : m.scalar(m.whole() ? -2 : -0.5, m.dtype(x)),
                    m.one_in(4) ? ValueId{} : m.scalar(m.whole() ? 2 : 0.5, m.dtype(x))},
                   Kind::kMoves);
    case 3:
      if (m.facts(x).exact)
        return m.one(
            m.choose<const char*>({"Floor", "Ceil", "Round", "Sign"}), {x}, Kind::kChooses);
      [[fallthrough]];
    default: {
      const char* const op = m.choose<const char*>({"Sigmoid",
                                                    "Tanh",
                                                    "Exp",
                                                    "Gelu",
                                                    "Erf",
                                                    "Sin",
                                                    "Cos",
                                                    "LeakyRelu",
                                                    "HardSwish",
                                                    "Softplus",
                                                    "Mish",
                                                    "Softsign",
                                                    "HardSigmoid",
                                                    "Elu",
                                                    "Selu",
                                                    "Atan",
                                                    "Asinh"});
      // A sum of exact numbers that is about zero has the error of its terms.
      const bool adds = std::string_view(op).starts_with("Hard");
      return m.one(op, {x}, adds ? Kind::kSmooth : Kind::kValues);
    }
  }
}

bool binary(GraphMaker& m) {
  const ValueId x = m.pick_number(1), y = m.partner(x);
  Ids both = m.one_in(2) ? Ids{x, y} : Ids{y, x};
  switch (m.rng().below(8)) {
    case 0: return m.one(m.choose<const char*>({"Max", "Min"}), both, Kind::kMoves);
    case 1: both.push_back(m.partner(x)); return m.one("Sum", both, Kind::kAdds);
    case 2: return m.one("Pow", {x, m.scalar(m.choose({2, 3}), m.dtype(x))}, Kind::kAdds);
    case 3:
      if (m.real(x)) return m.one("PRelu", {x, m.partner(x)}, Kind::kAdds);
      [[fallthrough]];
    default: return m.one(m.choose<const char*>({"Add", "Sub", "Mul"}), both, Kind::kAdds);
  }
}

bool divide(GraphMaker& m) {
  const ValueId x = m.pick_number(1);
  Ints shape = m.shape_of(x);
  for (int64_t& n : shape)
    if (m.one_in(3)) n = 1;
  if (m.real(x)) {
    switch (m.rng().below(4)) {
      case 0: return m.one("Reciprocal", {m.positive(m.dtype(x), shape)}, Kind::kSmooth);
      case 1: {
        const Ids sizes = m.add("Abs", {x}, Kind::kMoves);
        if (sizes.empty()) return false;
        const Ids more = m.add("Add", {sizes[0], m.scalar(1, m.dtype(x))}, Kind::kAdds);
        if (more.empty()) return false;
        return m.one(m.choose<const char*>({"Sqrt", "Log", "Reciprocal"}), more, Kind::kSmooth);
      }
      default: return m.one("Div", {x, m.positive(m.dtype(x), shape)}, Kind::kSmooth);
    }
  }
  const bool remains = m.one_in(2);
  return m.one(remains ? "Mod" : "Div",
               {x, m.positive(m.dtype(x), shape)},
               Kind::kChooses,
               remains && m.one_in(2) ? Attributes{{"fmod", int64_t{1}}} : Attributes{});
}

bool integer_binary(GraphMaker& m) {
  const ValueId x = m.pick([&](ValueId id) { return !m.real(id); }, m.shape(m.between(1, 4)));
  if (m.dtype(x) == DType::kBool)
    return m.one(m.choose<const char*>({"And", "Or", "Xor"}), {x, m.partner(x)}, Kind::kChooses);
  if (!m.integer(x)) return false;
  return m.one(m.choose<const char*>({"BitwiseAnd", "BitwiseOr", "BitwiseXor"}),
               {x, m.partner(x)},
               Kind::kChooses);
}

bool compare(GraphMaker& m) {
  const ValueId x =
      m.pick([&](ValueId id) { return m.number(id) && m.facts(id).exact; }, m.shape(2));
  return m.one(m.choose<const char*>({"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"}),
               {x, m.partner(x)},
               Kind::kChooses);
}

bool where(GraphMaker& m) {
  const ValueId x = m.pick_any();
  const ValueId y = m.partner(x);
  Ints shape = m.shape_of(x);
  for (int64_t& n : shape)
    if (m.one_in(4)) n = 1;
  const ValueId condition = m.pick(
      [&](ValueId id) { return m.dtype(id) == DType::kBool && m.shape_of(id) == m.shape_of(x); },
      {1});
  const ValueId used =
      m.dtype(condition) == DType::kBool ? condition : m.fresh(DType::kBool, shape, m.one_in(3));
  return m.one("Where", {used, x, y}, Kind::kMoves);
}

bool cast(GraphMaker& m) {
  const ValueId x = m.pick_any();
  const Facts known = m.facts(x);
  std::vector<DType> to = {DType::kFloat32};
  if (known.exact && known.whole)
    to = {DType::kFloat32, DType::kInt32, DType::kInt64, DType::kBool};
  if (m.real(x) && known.scale < 1000) to.push_back(DType::kFloat16);
  const DType made = to[m.rng().below(std::ssize(to))];
  if (made == m.dtype(x)) return false;
  const Kind kind = made == DType::kFloat16 && !known.whole ? Kind::kSmooth : Kind::kMoves;
  return m.one("Cast", {x}, kind, {{"to", std::string(dtype_name(made))}});
}

}  // namespace pruner
