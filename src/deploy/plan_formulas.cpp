#include "deploy/plan_formulas.h"

#include <algorithm>

namespace pruner {

int64_t PlanFormulas::number(const Expr& formula) {
  if (const int64_t* constant = as_int(formula)) return *constant;
  if (const Var* symbol = as<Var>(formula)) return -1 - symbol->id.value;
  const auto is_it = [&](const Expr& other) { return structural_equal(other, formula); };
  const auto known = std::ranges::find_if(all_, is_it) - all_.begin();
  if (known == std::ssize(all_)) all_.push_back(formula);
  return -1 - std::ssize(symbols_) - known;
}

int64_t PlanFormulas::block(const std::vector<Expr>& formulas) {
  const int64_t first = std::ssize(symbols_) + std::ssize(all_);
  all_.insert(all_.end(), formulas.begin(), formulas.end());
  return first;
}

Program PlanFormulas::program() const {
  Program program;
  program.name = "formulas";
  std::vector<Expr> of_symbol;
  for (const Symbol& symbol : symbols_) {
    program.symbols.push_back(program.add_var(symbol.name, {symbol.min, symbol.max}));
    of_symbol.push_back(program.var(program.symbols.back()));
  }
  Buffer numbers{"numbers", DType::kInt64, {std::ssize(all_)}, Scope::kArgument, 1, true, {}, 0};
  program.args = {program.add_buffer(std::move(numbers))};
  Block stores;
  for (size_t i = 0; i < all_.size(); ++i)
    stores.statements.push_back(make_stmt(
        Store{program.args[0], {Expr(static_cast<int64_t>(i))}, substitute(all_[i], of_symbol)}));
  program.body = make_stmt(std::move(stores));
  return program;
}

}  // namespace pruner
