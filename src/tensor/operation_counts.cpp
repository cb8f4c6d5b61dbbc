#include "tensor/operation_counts.h"

#include "tensor/scalar_ops.h"

namespace pruner {

namespace {

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
        const BinaryFacts& facts = facts_of(n.op);
        ++counts[is_float(n.a->dtype) ? facts.of_floats : facts.of_ints];
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
  visit_uses(e, [&](const Expr& part) {
    const Var* var = as<Var>(part);
    if (var != nullptr && static_cast<size_t>(var->id.value) < variables) ++uses[var->id.value];
  });
  return uses;
}

}  // namespace pruner
