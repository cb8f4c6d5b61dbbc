// TVM's spelling of expressions. parse_body (tensor/parse_expr.h) reads it back.
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "support/check.h"
#include "tensor/expr.h"
#include "tensor/scalar_ops.h"

namespace pruner {

// Prints a double as Python's repr does: the fewest digits that read back as this double, "0.5",
// "1e-07", "1e+16".
static std::string print_double(double value) {
  char text[64];
  const double magnitude = std::abs(value);
  const bool plain = value == 0 || !std::isfinite(value) || (magnitude >= 1e-4 && magnitude < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  std::string out(text, std::to_chars(text, text + sizeof text, value, format).ptr);
  if (plain && std::isfinite(value) && out.find('.') == std::string::npos) out += ".0";
  return out;
}

static bool has_load(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& node) { found |= as<Load>(node) != nullptr; });
  return found;
}

std::string print(const Expr& e, const std::function<std::string(TensorId)>& tensor_name) {
  const auto sub = [&](const Expr& part) { return print(part, tensor_name); };
  const auto list = [&](const std::vector<Expr>& parts) {
    std::string out;
    for (const Expr& part : parts) out += (out.empty() ? "" : ", ") + sub(part);
    return out;
  };
  return match(
      e->op,
      [&](const IntImm& n) -> std::string {
        if (e->dtype == DType::kBool) return n.value ? "true" : "false";
        return std::to_string(n.value);
      },
      [&](const FloatImm& n) { return print_double(n.value); },
      [&](const Var& n) { return n.name; },
      [&](const Binary& n) {
        const std::string text(facts_of(n.op).text);
        if (facts_of(n.op).is_function()) return text + "(" + sub(n.a) + ", " + sub(n.b) + ")";
        return "(" + sub(n.a) + " " + text + " " + sub(n.b) + ")";
      },
      [&](const Select& n) {
        // TVM's if_then_else keeps loads lazy, its select computes both; ours is always lazy.
        const char* name = has_load(n.a) || has_load(n.b) ? "tir.if_then_else" : "select";
        return name + ("(" + sub(n.condition) + ", " + sub(n.a) + ", " + sub(n.b) + ")");
      },
      [&](const Cast& n) {
        return (n.of_bits ? "bitcast<" : "cast<") + std::string(dtype_name(e->dtype)) + ">(" +
               sub(n.value) + ")";
      },
      [&](const Call& n) {
        if (n.function == Intrinsic::kNot) return "!" + sub(n.args[0]);
        return "tir." + std::string(facts_of(n.function).text) + "(" + list(n.args) + ")";
      },
      [&](const Load& n) { return tensor_name(n.tensor) + "[" + list(n.indices) + "]"; });
}

}  // namespace pruner
