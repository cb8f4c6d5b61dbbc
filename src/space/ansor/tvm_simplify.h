// Index expressions simplified as TVM does (its arithmetic analyzer of 2021), so that a replayed
// program prints equal to TVM's: first rules over neighbouring nodes, then a canonical sum of
// scaled, divided and remaindered terms. Elsewhere use simplify() of tensor/affine.h.
#pragma once

#include <vector>

#include "tensor/affine.h"

namespace pruner::ansor {

class TvmSimplifier {
 public:
  /// The values that a variable takes; one value replaces the variable.
  void bind(VarId var, Range range);
  /// Both forms, one after the other.
  Expr simplify(const Expr& e);

  /// Conditions known to hold while a scope of the program is open.
  void push_condition(const Expr& condition);
  void pop_condition();

 private:
  friend class RuleRewriter;
  std::vector<Range> ranges_;  // by variable
  std::vector<std::vector<std::pair<Expr, Range>>> known_;
};

}  // namespace pruner::ansor
