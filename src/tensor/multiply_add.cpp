#include "tensor/multiply_add.h"

namespace pruner {

Expr multiply_add(const Expr& a, const Expr& b, const Expr& c) {
  const auto wide = [](const Expr& e) { return cast(DType::kFloat64, e); };
  return cast(DType::kFloat32, wide(a) * wide(b) + wide(c));
}

// A number that was float32. A constant was cast when the expression was made.
static Expr narrow_of(const Expr& e) {
  const Cast* wide = as<Cast>(e);
  if (wide != nullptr && !wide->of_bits && wide->value->dtype == DType::kFloat32)
    return wide->value;
  const FloatImm* number = as<FloatImm>(e);
  if (number == nullptr || static_cast<double>(static_cast<float>(number->value)) != number->value)
    return {};
  return float_imm(number->value);
}

std::optional<MultiplyAdd> as_multiply_add(const Expr& e) {
  const Cast* narrow = as<Cast>(e);
  if (narrow == nullptr || narrow->of_bits || e->dtype != DType::kFloat32) return std::nullopt;
  const Binary* sum = as<Binary>(narrow->value);
  if (sum == nullptr || sum->op != BinaryOp::kAdd || narrow->value->dtype != DType::kFloat64)
    return std::nullopt;
  const Binary* product = as<Binary>(sum->a);
  if (product == nullptr || product->op != BinaryOp::kMul) return std::nullopt;
  MultiplyAdd found{narrow_of(product->a), narrow_of(product->b), narrow_of(sum->b)};
  if (!found.a || !found.b || !found.c) return std::nullopt;
  return found;
}

}  // namespace pruner
