#include "lower/rewrite.h"

#include <algorithm>

namespace pruner {

void walk(const Stmt& s,
          const std::function<void(const StmtNode&)>& on_stmt,
          const std::function<void(const Expr&)>& on_expr) {
  const auto stmt = [&](const Stmt& part) {
    on_stmt(*part);
    return Stmt();
  };
  const auto expr = [&](const Expr& part) {
    on_expr(part);
    return part;
  };
  rewrite(s, stmt, on_expr ? ExprRewrite(expr) : ExprRewrite());
}

namespace {

// Copies of statements are made only where a part of them is another one now.
struct Rewriter {
  const StmtRewrite& on_stmt;
  const ExprRewrite& on_expr;

  Stmt stmt(const Stmt& s) const {
    Stmt replaced = on_stmt ? on_stmt(s) : nullptr;
    return replaced ? replaced : std::visit([&](const auto& n) { return inside(s, n); }, s->op);
  }
  Expr expr(const Expr& e) const { return on_expr ? on_expr(e) : e; }

  Stmt inside(const Stmt& s, const For& n) const { return with(s, n, &For::body, &For::extent); }
  Stmt inside(const Stmt& s, const Let& n) const { return with(s, n, &Let::body, &Let::value); }
  Stmt inside(const Stmt& s, const If& n) const { return with(s, n, &If::then, &If::condition); }
  Stmt inside(const Stmt& s, const Barrier&) const { return s; }
  Stmt inside(const Stmt& s, const Allocate& n) const {
    Stmt body = stmt(n.body);
    return body == n.body ? s : make_stmt(Allocate{n.buffer, std::move(body)});
  }
  Stmt inside(const Stmt& s, const Block& n) const {
    std::vector<Stmt> made;
    for (const Stmt& part : n.statements) made.push_back(stmt(part));
    return made == n.statements ? s : make_stmt(Block{std::move(made)});
  }
  // Store, Prefetch and statements of warps.
  Stmt inside(const Stmt& s, const auto& n) const {
    if (!on_expr) return s;
    auto made = n;
    bool changed = false;
    const auto part = [&](Expr& e) {
      const Expr old = std::exchange(e, expr(e));
      changed |= !e.same_as(old);
    };
    if constexpr (requires { made.indices; }) std::ranges::for_each(made.indices, part);
    each_place(made, [&](ElementPlace& at, bool) { std::ranges::for_each(at.indices, part); });
    if constexpr (requires { made.value; }) part(made.value);
    if constexpr (requires { made.valid; }) part(made.valid);
    return changed ? make_stmt(std::move(made)) : s;
  }

  template <typename Node>
  Stmt with(const Stmt& s, const Node& n, Stmt Node::*body, Expr Node::*value) const {
    Expr new_value = expr(n.*value);
    Stmt new_body = stmt(n.*body);
    if (new_body == n.*body && new_value.same_as(n.*value)) return s;
    Node made = n;
    made.*body = std::move(new_body);
    made.*value = std::move(new_value);
    return make_stmt(std::move(made));
  }
};

}  // namespace

Stmt rewrite(const Stmt& s, const StmtRewrite& stmt, const ExprRewrite& expr) {
  return Rewriter{stmt, expr}.stmt(s);
}

Expr substitute(const Expr& e, VarId var, const Expr& value) {
  return rewrite(e, [&](const Expr& node) {
    const Var* found = as<Var>(node);
    return found && found->id == var ? value : Expr();
  });
}

}  // namespace pruner
