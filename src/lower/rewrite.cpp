#include "lower/rewrite.h"

namespace pruner {

void walk(const Stmt& s,
          const std::function<void(const StmtNode&)>& on_stmt,
          const std::function<void(const Expr&)>& on_expr) {
  on_stmt(*s);
  const auto expr = [&](const Expr& e) {
    if (on_expr) on_expr(e);
  };
  const auto inside = [&](const Stmt& body) { walk(body, on_stmt, on_expr); };
  match(
      s->op,
      [&](const For& n) { expr(n.extent), inside(n.body); },
      [&](const Let& n) { expr(n.value), inside(n.body); },
      [&](const Store& n) {
        for (const Expr& index : n.indices) expr(index);
        expr(n.value);
      },
      [&](const Prefetch& n) {
        for (const Expr& index : n.indices) expr(index);
      },
      [&](const If& n) { expr(n.condition), inside(n.then); },
      [&](const Allocate& n) { inside(n.body); },
      [](const Barrier&) {},
      [&](const Block& n) {
        for (const Stmt& part : n.statements) inside(part);
      });
}

namespace {

// Each part of a statement, rewritten in place; `changed` says whether any is another one now.
struct Parts {
  const StmtRewrite& on_stmt;
  const ExprRewrite& on_expr;
  bool changed = false;

  void operator()(Stmt& s) {
    Stmt made = rewrite(s, on_stmt, on_expr);
    changed |= made != s;
    s = std::move(made);
  }
  void operator()(Expr& e) {
    const Expr made = on_expr ? on_expr(e) : e;
    if (made.same_as(e)) return;
    changed = true;
    e = made;
  }
  void operator()(auto& list) {
    for (auto& part : list) (*this)(part);
  }
};

}  // namespace

Stmt rewrite(const Stmt& s, const StmtRewrite& stmt, const ExprRewrite& expr) {
  if (Stmt replaced = stmt ? stmt(s) : nullptr) return replaced;
  const bool leaf = std::holds_alternative<Store>(s->op) || std::holds_alternative<Prefetch>(s->op);
  if (leaf && !expr) return s;
  Parts parts{stmt, expr};
  StmtNode node = *s;
  match(
      node.op,
      [&](For& n) { parts(n.extent), parts(n.body); },
      [&](Let& n) { parts(n.value), parts(n.body); },
      [&](Store& n) { parts(n.indices), parts(n.value); },
      [&](Prefetch& n) { parts(n.indices); },
      [&](If& n) { parts(n.condition), parts(n.then); },
      [&](Allocate& n) { parts(n.body); },
      [](Barrier&) {},
      [&](Block& n) { parts(n.statements); });
  return parts.changed ? std::make_shared<const StmtNode>(std::move(node)) : s;
}

Expr substitute(const Expr& e, VarId var, const Expr& value) {
  return rewrite(e, [&](const Expr& node) {
    const Var* found = as<Var>(node);
    return found && found->id == var ? value : Expr();
  });
}

}  // namespace pruner
