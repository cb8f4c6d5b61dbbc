#include "tensor/constant_part.h"

#include <cmath>

namespace pruner {
namespace {

// The form that is above 0 where the comparison holds, or where it doesn't.
std::optional<Affine> form_where(const Expr& condition, bool holds) {
  const Binary* n = as<Binary>(condition);
  if (n == nullptr || n->a->dtype != DType::kInt64) return std::nullopt;
  const Expr less = n->b - n->a, more = n->a - n->b;  // above 0 where a < b, where a > b
  switch (n->op) {
    case BinaryOp::kLt: return to_affine(holds ? less : more + Expr(1));
    case BinaryOp::kLe: return to_affine(holds ? less + Expr(1) : more);
    case BinaryOp::kGt: return to_affine(holds ? more : less + Expr(1));
    case BinaryOp::kGe: return to_affine(holds ? more + Expr(1) : less);
    default: return std::nullopt;
  }
}

// `parts` are of the elements of stages.
const ConstantPart* part_of(const Load& read, const ConstantParts& parts) {
  const std::optional<ConstantPart>& part = parts[read.tensor];
  return part ? &*part : nullptr;
}

// Returns a form that is above 0 where a load reads the constant part of its stage.
std::optional<Affine> form_of(const Load& read, const ConstantParts& parts) {
  const ConstantPart* part = part_of(read, parts);
  if (part == nullptr) return std::nullopt;
  Expr sum(part->beyond.constant);
  for (const auto& [iterator, coefficient] : part->beyond.terms)
    sum = sum + read.indices[static_cast<size_t>(iterator.value)] * Expr(coefficient);
  return to_affine(sum);
}

// Finds the value that an expression has wherever a form is above 0.
class ValueBeyond {
 public:
  ValueBeyond(const Affine& form, const ConstantParts& parts) : form_(form), parts_(parts) {}

  // Empty: not one value.
  std::optional<double> operator()(const Expr& e) {
    if (const std::optional<double>* known = made_.find(e)) return *known;
    const std::optional<double> value = is_float(e->dtype) ? of(e) : std::nullopt;
    made_.keep(e, value);
    return value;
  }

 private:
  std::optional<double> of(const Expr& e) {
    if (const FloatImm* n = as<FloatImm>(e)) return n->value;
    if (const Cast* n = as<Cast>(e)) return n->of_bits ? std::nullopt : (*this)(n->value);
    if (const Load* n = as<Load>(e))
      return form_of(*n, parts_) == form_ ? std::optional(part_of(*n, parts_)->value)
                                          : std::nullopt;
    if (const Select* n = as<Select>(e)) {
      if (form_where(n->condition, false) == form_) return (*this)(n->b);
      return form_where(n->condition, true) == form_ ? (*this)(n->a) : std::nullopt;
    }
    if (const Call* n = as<Call>(e)) {
      const std::optional<double> x = (*this)(n->args[0]);
      return x && n->function == Intrinsic::kExp ? std::optional(std::exp(*x)) : std::nullopt;
    }
    const Binary* n = as<Binary>(e);
    return n == nullptr ? std::nullopt : of(n->op, (*this)(n->a), (*this)(n->b));
  }

  // a op b beside which an unknown operand makes no difference.
  static std::optional<double> of(BinaryOp op, std::optional<double> a, std::optional<double> b) {
    const bool difference = op == BinaryOp::kSub;
    if (difference && b) b = -*b;
    if (op == BinaryOp::kAdd || difference) {
      if (a && b) return *a + *b;
      return a && std::isinf(*a) ? a : b && std::isinf(*b) ? b : std::nullopt;
    }
    if (op != BinaryOp::kMul) return std::nullopt;
    if (a && b) return *a * *b;
    return a == 0.0 || b == 0.0 ? std::optional(0.0) : std::nullopt;
  }

  const Affine& form_;
  const ConstantParts& parts_;
  NodeMemo<std::optional<double>> made_;
};

std::optional<ConstantPart> part_of(const Expr& body, const ConstantParts& parts) {
  std::optional<ConstantPart> found;
  visit(body, [&](const Expr& e) {
    std::optional<Affine> forms[2];
    if (const Load* n = as<Load>(e)) forms[0] = form_of(*n, parts);
    if (const Select* n = as<Select>(e))
      for (const bool holds : {false, true}) forms[holds] = form_where(n->condition, holds);
    for (const std::optional<Affine>& form : forms) {
      if (found || !form) continue;
      if (const auto value = ValueBeyond(*form, parts)(body)) found = ConstantPart{*form, *value};
    }
  });
  return found;
}

}  // namespace

ConstantParts constant_parts(const ComputeDag& dag) {
  ConstantParts parts(dag.stages.size()), of_elements(dag.stages.size());
  for (int i = 0; i < dag.size(); ++i) {
    const StageId id{i};
    const Stage& stage = dag[id];
    if (stage.is_placeholder() || !is_float(stage.dtype)) continue;
    parts[id] = part_of(stage.body, of_elements);
    if (!stage.is_reduction()) of_elements[id] = parts[id];
    const Expr neutral = combiner_identity(stage.combiner, stage.dtype);
    if (stage.is_reduction() && parts[id] && as<FloatImm>(neutral)->value != parts[id]->value)
      parts[id].reset();
  }
  return parts;
}

}  // namespace pruner
