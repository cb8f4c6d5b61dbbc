// What passes look at programs and change them with. Statements are immutable: what does not change
// stays shared.
#pragma once

#include <functional>

#include "lower/program.h"

namespace pruner {

using StmtRewrite = std::function<Stmt(const Stmt&)>;  // empty: what was given stays
using ExprRewrite = std::function<Expr(const Expr&)>;

/// Calls the functions with every statement, parents first, and with every expression of it.
void walk(const Stmt& s,
          const std::function<void(const StmtNode&)>& on_stmt,
          const std::function<void(const Expr&)>& on_expr = {});

/// Rebuilds `s` from the top down: each statement is given to `stmt`, and what it replaces is not
/// looked into; each expression of the others is given to `expr` as a whole.
Stmt rewrite(const Stmt& s, const StmtRewrite& stmt, const ExprRewrite& expr = {});

/// `e` with `value` for a variable.
Expr substitute(const Expr& e, VarId var, const Expr& value);

}  // namespace pruner
