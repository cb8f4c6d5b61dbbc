#include "tensor/operation_counts.h"

namespace pruner {

namespace {

Operation kind_of(BinaryOp op, bool of_floats) {
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: return of_floats ? Operation::kFloatAddSub : Operation::kIntAddSub;
    case BinaryOp::kMul: return of_floats ? Operation::kFloatMul : Operation::kIntMul;
    case BinaryOp::kDiv:
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod: return of_floats ? Operation::kFloatDivMod : Operation::kIntDivMod;
    case BinaryOp::kMin:
    case BinaryOp::kMax:
    case BinaryOp::kLt:
    case BinaryOp::kLe:
    case BinaryOp::kGt:
    case BinaryOp::kGe:
    case BinaryOp::kEq:
    case BinaryOp::kNe: return of_floats ? Operation::kFloatCompare : Operation::kIntCompare;
    case BinaryOp::kAnd:
    case BinaryOp::kOr: return Operation::kLogic;
  }
  return Operation::kLogic;
}

void count(const Expr& e, OperationCounts& counts) {
  const auto call_of = [&] {
    return is_float(e->dtype) ? Operation::kFloatMath : Operation::kIntMath;
  };
  match(
      e->op,
      [](const IntImm&) {},
      [](const FloatImm&) {},
      [](const Var&) {},
      [&](const Binary& n) {
        ++counts[kind_of(n.op, is_float(n.a->dtype))];
        count(n.a, counts);
        count(n.b, counts);
      },
      [&](const Select& n) {
        ++counts[call_of()];
        count(n.condition, counts);
        count(n.a, counts);
        count(n.b, counts);
      },
      [&](const Cast& n) { count(n.value, counts); },
      [&](const Call& n) {
        ++counts[n.function == Intrinsic::kNot ? Operation::kLogic : call_of()];
        for (const Expr& arg : n.args) count(arg, counts);
      },
      [&](const Load& n) {
        for (const Expr& index : n.indices) count(index, counts);
      });
}

}  // namespace

OperationCounts count_operations(const Expr& e) {
  OperationCounts counts;
  if (e) count(e, counts);
  return counts;
}

std::vector<int> count_variables(const Expr& e, size_t variables) {
  std::vector<int> uses(variables, 0);
  if (!e) return uses;
  visit(e, [&](const Expr& part) {
    const Var* var = as<Var>(part);
    if (var != nullptr && static_cast<size_t>(var->id.value) < variables)
      ++uses[static_cast<size_t>(var->id.value)];
  });
  return uses;
}

}  // namespace pruner
