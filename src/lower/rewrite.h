// Functions with which passes look at programs and change them. Statements are immutable: parts
// that do not change stay shared.
#pragma once

#include <functional>

#include "lower/program.h"

namespace pruner {

using StmtRewrite = std::function<Stmt(const Stmt&)>;  // empty: the given statement stays
using ExprRewrite = std::function<Expr(const Expr&)>;

/// Calls the functions with every statement, parents first, and with every expression of it.
void walk(const Stmt& s,
          const std::function<void(const StmtNode&)>& on_stmt,
          const std::function<void(const Expr&)>& on_expr = {});

/// Rebuilds `s` from the top down. Each statement is given to `stmt`; a replaced statement is not
/// looked into. Each expression of the other statements is given to `expr` as a whole.
Stmt rewrite(const Stmt& s, const StmtRewrite& stmt, const ExprRewrite& expr = {});

/// Returns `e` with `value` for a variable.
Expr substitute(const Expr& e, VarId var, const Expr& value);

}  // namespace pruner
