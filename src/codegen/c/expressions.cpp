// Expressions as C.
#include <fmt/format.h>

#include <cmath>

#include "codegen/c/printer.h"
#include "support/check.h"
#include "tensor/multiply_add.h"
#include "tensor/scalar_ops.h"

namespace pruner {

static bool in_32_bits(Range r) { return r.first >= INT32_MIN && r.second <= INT32_MAX; }

// Whether every part of an index stays within 32 bits.
bool CPrinter::fits(const Expr& e) const {
  bool all = true;
  visit(e, [&](const Expr& part) {
    all = all && (part->dtype != DType::kInt64 || in_32_bits(bounds(part, ranges_)));
  });
  return all;
}

std::string CPrinter::text(const Expr& e, int precedence) {
  const Text t = expr(e);
  return t.precedence < precedence ? "(" + t.text + ")" : t.text;
}

CPrinter::Text CPrinter::infix(const char* op, int precedence, const Text& a, const Text& b) const {
  const auto side = [](const Text& t, int least) {
    return t.precedence < least ? "(" + t.text + ")" : t.text;
  };
  // C's == binds looser than its <: a comparison of comparisons has brackets on both sides.
  const int left = precedence == kCompare ? precedence + 1 : precedence;
  return {side(a, left) + " " + op + " " + side(b, precedence + 1), precedence};
}

// C's ^ binds looser than its comparisons: it has brackets around it.
CPrinter::Text CPrinter::xor_text(const Text& a, const Text& b) const {
  return {"(" + infix("^", kUnary, a, b).text + ")", kAtom};
}

// C has no negative literals: that of INT64_MIN would not fit before its sign is applied.
std::string CPrinter::int_text(int64_t value, bool wide) const {
  if (value == INT64_MIN) return fmt::format("(-{}{} - 1)", INT64_MAX, dialect_.suffix64);
  const std::string digits = std::to_string(value) + (wide ? dialect_.suffix64 : "");
  return value < 0 ? "(" + digits + ")" : digits;
}

// The shortest decimal that is read back as the same float.
std::string CPrinter::float_text(double value) const {
  const auto narrow = static_cast<float>(value);
  if (std::isnan(narrow)) return dialect_.nan;
  if (std::isinf(narrow))
    return narrow < 0 ? std::string("(-") + dialect_.infinity + ")" : dialect_.infinity;
  std::string digits = fmt::format("{}", narrow);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  digits += "f";
  return std::signbit(narrow) ? "(" + digits + ")" : digits;
}

std::string CPrinter::double_text(double value) const {
  if (std::isnan(value) || std::isinf(value)) return "(double)" + float_text(value);
  std::string digits = fmt::format("{}", value);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return std::signbit(value) ? "(" + digits + ")" : digits;
}

std::string CPrinter::immediate(int64_t value, DType dtype) const {
  if (row_of(dtype).kind != DTypeKind::kUInt || row_of(dtype).bits < 32)
    return int_text(value, false);
  const std::string digits = std::to_string(static_cast<uint64_t>(value)) + "u";
  return is_wide_unsigned(dtype) ? digits + dialect_.suffix64 : digits;
}

// The type of an element in memory: bool and narrow floats are unsigned integers there.
std::string CPrinter::storage_type(DType dtype) const {
  switch (dtype_bytes(dtype)) {
    case 8:
      return is_float(dtype) ? "double" : is_signed_int(dtype) ? dialect_.int64 : dialect_.uint64;
    case 4: return is_float(dtype) ? "float" : is_signed_int(dtype) ? "int" : dialect_.uint32;
    case 2: return is_signed_int(dtype) ? "short" : dialect_.bits16;
    default: return is_signed_int(dtype) ? dialect_.int8 : dialect_.byte;
  }
}

CPrinter::Text CPrinter::expr(const Expr& e) {
  if (e->dtype == DType::kInt64) return index(e, !fits(e));
  return match(
      e->op,
      [&](const IntImm& n) {
        return Text{immediate(n.value, e->dtype), kAtom};
      },
      [&](const FloatImm& n) {
        const bool is_double = e->dtype == DType::kFloat64;
        return Text{is_double ? double_text(n.value) : float_text(n.value), kAtom};
      },
      [&](const Var&) { return index(e, false); },
      [&](const Binary& n) { return value_binary(n); },
      [&](const Select& n) {
        return Text{text(n.condition, 1) + " ? " + text(n.a, 1) + " : " + text(n.b, 1), kTernary};
      },
      [&](const Cast& n) -> Text {
        if (const auto fused = as_multiply_add(e)) {
          const std::string args = text(fused->a) + ", " + text(fused->b) + ", " + text(fused->c);
          return {std::string("fma") + dialect_.math_suffix + "(" + args + ")", kAtom};
        }
        return n.of_bits ? bit_cast_text(n.value, e->dtype)
                         : cast_text(n.value, n.value->dtype, e->dtype);
      },
      [&](const Call& n) { return call_text(n); },
      [&](const Load& n) { return load_text(e, n); });
}

CPrinter::Text CPrinter::value_binary(const Binary& n) {
  const BinaryFacts& facts = facts_of(n.op);
  const DType dtype = n.a->dtype;
  if (dtype == DType::kInt64) {  // a comparison
    const bool wide = !fits(n.a) || !fits(n.b);
    return infix(facts.text.data(), facts.precedence, index(n.a, wide), index(n.b, wide));
  }
  if (n.op == BinaryOp::kMin || n.op == BinaryOp::kMax) {
    const bool min = n.op == BinaryOp::kMin;
    const std::string args = text(n.a) + ", " + text(n.b) + ")";
    if (is_float(dtype)) {
      const std::string function =
          std::string(min ? "min_of" : "max_of") + (dtype == DType::kFloat64 ? "64" : "");
      functions_.insert(function);
      return {function + "(" + args, kAtom};
    }
    const std::string type = row_of(dtype).bits < 32 ? "int" : storage_type(dtype);
    const std::string casts = fmt::format("({0})({1}), ({0})({2}))", type, text(n.a), text(n.b));
    return {(min ? "min(" : "max(") + casts, kAtom};
  }
  if (n.op == BinaryOp::kFloorDiv || n.op == BinaryOp::kFloorMod) {
    const bool is_unsigned = !is_signed_int(dtype) && row_of(dtype).bits >= 32;
    std::string function = std::string(is_unsigned ? "unsigned" : "floor") +
                           (n.op == BinaryOp::kFloorDiv ? "_div" : "_mod") +
                           (is_wide_unsigned(dtype) ? "64" : "");
    if (is_float(dtype)) function = dtype == DType::kFloat64 ? "remainder_of64" : "remainder_of";
    functions_.insert(function);
    return {function + "(" + text(n.a) + ", " + text(n.b) + ")", kAtom};
  }
  const Text result = n.op == BinaryOp::kXor
                          ? xor_text(expr(n.a), expr(n.b))
                          : infix(facts.text.data(), facts.precedence, expr(n.a), expr(n.b));
  // C computes in int what is narrower; the cast brings it back to its bits.
  const bool wraps =
      !is_float(dtype) && row_of(dtype).kind != DTypeKind::kBool && dtype_bytes(dtype) < 4;
  if (!wraps || is_compare(n.op)) return result;
  return {"(" + storage_type(dtype) + ")(" + result.text + ")", kUnary};
}

// -- Indices: int64, and printed as int where that fits.

// `wide`: some part needs 64 bits, so all operands are made of them.
CPrinter::Text CPrinter::index(const Expr& e, bool wide) {
  const auto widened = [&](Text t) {
    if (!wide) return t;
    const std::string inner = t.precedence < kUnary ? "(" + t.text + ")" : t.text;
    return Text{"(" + std::string(dialect_.int64) + ")" + inner, kUnary};
  };
  return match(
      e->op,
      [&](const IntImm& n) {
        return Text{int_text(n.value, wide), kAtom};
      },
      [](const FloatImm&) {
        return Text{"0", kAtom};
      },
      [&](const Var& n) {
        const auto at = static_cast<size_t>(n.id.value);
        if (lane_[at]) return index(lane_[at], wide);
        const Text variable = {name(n.id), kAtom};
        return in_32_bits(ranges_[at]) ? widened(variable) : variable;
      },
      [&](const Binary& n) { return index_binary(n, wide); },
      [&](const Select& n) {
        const Text a = index(n.a, wide), b = index(n.b, wide);
        return Text{text(n.condition, 1) + " ? (" + a.text + ") : (" + b.text + ")", kTernary};
      },
      [&](const Cast& n) {
        if (n.value->dtype == DType::kInt64) return index(n.value, wide);
        if (n.of_bits) return bit_cast_text(n.value, DType::kInt64);
        if (is_float(n.value->dtype)) return truncated_text(n.value, e->dtype);
        const std::string inner = text(n.value, kUnary);
        return Text{"(" + index_type(wide) + ")" + inner, kUnary};
      },
      [&](const Call& n) {
        const std::string x = "(" + index(n.args[0], wide).text + ")";
        return Text{x + " < 0 ? -" + x + " : " + x, kTernary};
      },
      [&](const Load& n) { return load_text(e, n); });
}

CPrinter::Text CPrinter::index_binary(const Binary& n, bool wide) {
  const BinaryFacts& facts = facts_of(n.op);
  if (n.op == BinaryOp::kFloorDiv || n.op == BinaryOp::kFloorMod) {
    return division(n.op, n.a, n.b, wide);
  }
  const Text a = index(n.a, wide), b = index(n.b, wide);
  if (n.op == BinaryOp::kMin || n.op == BinaryOp::kMax) {
    return {std::string(facts.text) + "(" + a.text + ", " + b.text + ")", kAtom};
  }
  if (n.op == BinaryOp::kXor) return xor_text(a, b);
  return infix(facts.text.data(), facts.precedence, a, b);
}

// Rounding down: C's operators do so of what is not negative.
CPrinter::Text CPrinter::division(BinaryOp op, const Expr& a, const Expr& b, bool wide) {
  const bool div = op == BinaryOp::kFloorDiv;
  const Range x = bounds(a, ranges_), y = bounds(b, ranges_);
  const Text dividend = index(a, wide), divisor = index(b, wide);
  if (x.first >= 0 && y.first > 0) return infix(div ? "/" : "%", 5, dividend, divisor);
  const std::string function = std::string(div ? "floor_div" : "floor_mod") + (wide ? "64" : "");
  functions_.insert(function);
  return {function + "(" + dividend.text + ", " + divisor.text + ")", kAtom};
}

// -- The rest.

// Returns the name of our function that converts between kinds of float or rounds to `narrow`.
std::string CPrinter::float_function(const char* form, DType narrow) {
  const std::string name =
      fmt::format(fmt::runtime(form), is_upper_float32(narrow) ? "bf16" : "half");
  return *functions_.insert(name).first;
}

// Truncates as truncate_to() does: C leaves the cast of a value that its type does not hold open.
CPrinter::Text CPrinter::truncated_text(const Expr& value, DType to) {
  const char* function = truncates_in_64_bits(to) ? "truncated64" : "truncated";
  functions_.insert(function);
  const Text whole = {std::string(function) + "(" + text(value) + ")", kAtom};
  if (to == DType::kInt64 || to == DType::kInt32) return whole;
  return {"(" + storage_type(to) + ")" + whole.text, kUnary};
}

// A cast to a narrow float rounds, but the value stays a float.
CPrinter::Text CPrinter::cast_text(const Expr& value, DType from, DType to) {
  if (is_narrow_float(to)) {
    if (from == to) return expr(value);
    for (const char* called : {"{}_to_float", "float_to_{}"}) float_function(called, to);
    std::string single = text(value);
    if (from == DType::kFloat64)
      single = *functions_.insert("float_to_odd").first + "(" + single + ")";
    return {float_function("round_{}", to) + "(" + single + ")", kAtom};
  }
  if (to == DType::kBool)
    return infix("!=", kCompare, expr(value), {is_float(from) ? "0.0f" : "0", kAtom});
  const bool is_double = from == DType::kFloat64 || to == DType::kFloat64;
  if (is_float(from) && is_float(to) && !is_double) return expr(value);
  const std::string type = to == DType::kInt64 ? std::string(dialect_.int64) : storage_type(to);
  const bool truncates = is_float(from) && !is_float(to);
  const Text result =
      truncates ? truncated_text(value, to) : Text{"(" + type + ")" + text(value, kUnary), kUnary};
  const int bits = row_of(to).bits;
  if (bits >= 8) return result;
  // An integer narrower than a byte: its bits, and those above are the sign's.
  const std::string low = fmt::format("((int){} & {})", result.text, (1 << bits) - 1);
  if (!is_signed_int(to)) return {"(" + storage_type(to) + ")" + low, kUnary};
  const int sign = 1 << (bits - 1);
  return {fmt::format("({})(({} ^ {}) - {})", storage_type(to), low, sign, sign), kUnary};
}

// The value of type `to` that has the same bits.
CPrinter::Text CPrinter::bit_cast_text(const Expr& value, DType to) {
  const DType from = value->dtype;
  std::string of = is_narrow_float(from) ? bits(value) : text(value);
  if (from == DType::kFloat32) of = std::string(dialect_.as_int) + "(" + of + ")";
  if (from == DType::kFloat64) of = std::string(dialect_.as_long) + "(" + of + ")";
  if (is_narrow_float(to))
    return {float_function("{}_to_float", to) + "((" + dialect_.bits16 + ")(" + of + "))", kAtom};
  if (to == DType::kFloat32) return {std::string(dialect_.as_float) + "((int)(" + of + "))", kAtom};
  if (to == DType::kFloat64)
    return {fmt::format("{}(({})({}))", dialect_.as_double, dialect_.int64, of), kAtom};
  if (to == DType::kBool) return {"(" + of + ") != 0", kCompare};
  return {"(" + storage_type(to) + ")(" + of + ")", kUnary};
}

// Whether C has no such function.
static bool is_ours(Intrinsic function) {
  return function == Intrinsic::kSigmoid || function == Intrinsic::kTf32 ||
         function == Intrinsic::kNormalCdf;
}

// The dialect's function; what C has not, ours, stands before the kernels then.
std::string CPrinter::math_function(Intrinsic function, DType dtype) {
  const bool is_double = dtype == DType::kFloat64;
  const std::string name =
      std::string(facts_of(function).c) + (is_double && is_ours(function) ? "64" : "");
  if (!is_ours(function)) return name + (is_double ? "" : dialect_.math_suffix);
  functions_.insert(name);
  return name;
}

CPrinter::Text CPrinter::call_text(const Call& n) {
  if (n.function == Intrinsic::kNot) return {"!" + text(n.args[0], kUnary), kUnary};
  if (const DType dtype = n.args[0]->dtype; !is_float(dtype)) {
    if (!is_signed_int(dtype)) return expr(n.args[0]);
    return {"abs((int)(" + text(n.args[0]) + "))", kAtom};
  }
  std::string args;
  for (const Expr& arg : n.args) args += (args.empty() ? "" : ", ") + text(arg);
  return {math_function(n.function, n.args[0]->dtype) + "(" + args + ")", kAtom};
}

// Returns the element that a load reads, with its type in memory.
std::string CPrinter::loaded_text(const Expr& e, const Load& n) {
  const auto at_hand = loaded_.find(&*e);
  if (at_hand == loaded_.end()) return element(n.tensor, n.indices);
  const auto& [vector, chunk] = at_hand->second;
  const int64_t lane = *as_int(lane_[lane_var_.value]);
  return fmt::format("{}_{}.s{}", vector, lane / chunk, lane % chunk);
}

CPrinter::Text CPrinter::load_text(const Expr& e, const Load& n) {
  const std::string place = loaded_text(e, n);
  if (is_narrow_float(e->dtype))
    return {float_function("{}_to_float", e->dtype) + "(" + place + ")", kAtom};
  if (e->dtype == DType::kBool) return {place + " != 0", kCompare};
  return {place, kAtom};
}

// Row-major; in an expanded vector loop, of the lane at hand.
Expr CPrinter::flat_place(TensorId buffer, const std::vector<Expr>& indices) const {
  Expr flat(0);
  for (size_t d = 0; d < indices.size(); ++d) {
    flat = flat * Expr(program_[buffer].shape[d]) + indices[d];
  }
  return simplify(substitute(flat, lane_), ranges_);
}

std::string CPrinter::element(TensorId buffer, const std::vector<Expr>& indices) {
  return name(buffer) + "[" + text(flat_place(buffer, indices)) + "]";
}

// A value of a narrow float as its bits: what is only moved is not converted.
std::string CPrinter::bits(const Expr& e) {
  if (const Load* n = as<Load>(e)) return loaded_text(e, *n);
  if (const FloatImm* n = as<FloatImm>(e))
    return fmt::format("0x{:04x}", encode_float(e->dtype, n->value));
  if (const Select* n = as<Select>(e)) {
    return "(" + text(n->condition, 1) + " ? " + bits(n->a) + " : " + bits(n->b) + ")";
  }
  const Cast* n = as<Cast>(e);
  const bool from_float = n && n->value->dtype == DType::kFloat32;
  return float_function("float_to_{}", e->dtype) + "(" + text(from_float ? n->value : e) + ")";
}

std::string CPrinter::stored(const Expr& e, DType dtype) {
  return is_narrow_float(dtype) ? bits(e) : text(e);
}

}  // namespace pruner
