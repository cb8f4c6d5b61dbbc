// The numbers of a module's plan that depend on its shapes, and the code that works them out.
#pragma once

#include <string>
#include <vector>

#include "lower/program.h"
#include "tensor/symbol.h"

namespace pruner {

/// Formulas of a module's symbols, each once. A number of the plan is 0 or more, or below that the
/// place of what has it when the module runs (plan_number() in runtime/module/plan.h).
class PlanFormulas {
 public:
  explicit PlanFormulas(std::vector<Symbol> symbols) : symbols_(std::move(symbols)) {}

  /// Returns the number of an expression whose variable i is symbol i.
  int64_t number(const Expr& formula);
  /// Adds formulas with consecutive numbers in the plan; returns the place of the first number.
  int64_t block(const std::vector<Expr>& formulas);
  size_t size() const { return all_.size(); }

  /// Returns the program that writes the formulas' values, in order, to its one argument.
  Program program() const;

 private:
  std::vector<Symbol> symbols_;
  std::vector<Expr> all_;
};

}  // namespace pruner
