// Code of two kinds where padding is read in place: for tiles that lie inside, in which all guards
// hold, without them; for the others with them.
#include "lower/guards.h"
#include "lower/passes.h"
#include "lower/rewrite.h"

namespace pruner {
namespace {

// What the innermost statement of a perfect nest adds up in registers, if it does. `loops` are
// those around it.
Expr sum_of(const Program& program, Stmt s, std::vector<const For*>& loops) {
  while (const For* loop = std::get_if<For>(&s->op)) {
    loops.push_back(loop);
    s = loop->body;
  }
  const Store* store = std::get_if<Store>(&s->op);
  const bool sums = store != nullptr && program[store->buffer].scope == Scope::kRegister;
  return sums ? store->value : Expr();
}

Stmt split(const Program& program, const Stmt& s) {
  std::vector<const For*> loops;
  const Expr sum = sum_of(program, s, loops);
  if (!sum || loops.empty()) return nullptr;
  std::vector<int64_t> spans(program.var_names.size(), 0);
  std::vector<Expr> values;
  for (size_t v = 0; v < spans.size(); ++v)
    values.push_back(program.var(VarId{static_cast<int32_t>(v)}));
  for (const For* loop : loops) {
    const auto v = static_cast<size_t>(loop->var.value);
    values[v] = Expr(0);
    spans[v] = program.ranges[v].second;
  }
  const Expr hold = guards_hold(sum, values, spans);
  if (!hold) return nullptr;
  const Expr condition = program.simple(hold);
  const Stmt inside = rewrite(s, {}, without_guards);
  if (as_int(condition) != nullptr && *as_int(condition) != 0) return inside;
  return make_stmt(Block{
      {make_stmt(If{condition, inside}), make_stmt(If{call(Intrinsic::kNot, {condition}), s})}});
}

}  // namespace

Program split_guards(Program program) {
  program.body = rewrite(program.body, [&](const Stmt& s) { return split(program, s); });
  return program;
}

}  // namespace pruner
