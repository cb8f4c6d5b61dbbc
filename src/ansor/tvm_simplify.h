// Index expressions simplified as TVM does (its arithmetic analyzer of 2021), so that a replayed
// program prints equal to TVM's: first rules over neighbouring nodes, then a canonical sum of
// scaled, divided and remaindered terms. Elsewhere use simplify() of tensor/affine.h.
#pragma once

#include <unordered_map>
#include <utility>
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
  // Memo keeps the result of each expression node while the same is known; a copy starts empty.
  struct Memo {
    Memo() = default;
    Memo(const Memo&) {}
    Memo& operator=(const Memo&) {
      clear();
      return *this;
    }
    void clear() {
      for (auto& results : made) results.clear();
    }
    std::unordered_map<const ExprNode*, std::pair<Expr, Expr>> made[2];  // canonical ones in [1]
  };

  std::vector<Range> ranges_;  // one per variable
  std::vector<std::vector<std::pair<Expr, Range>>> known_;
  mutable Memo memo_;
};

}  // namespace pruner::ansor
