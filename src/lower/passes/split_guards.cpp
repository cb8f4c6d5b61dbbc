// Code of two kinds where padding is read in place: for tiles that lie inside, in which all guards
// hold, without them; for the others with them.
#include "lower/guards.h"
#include "lower/passes.h"
#include "lower/rewrite.h"

namespace pruner {
namespace {

// A perfect nest around a sum in registers.
Stmt split(const Program& program, const Stmt& nest) {
  VarBox box;
  Stmt inner = nest;
  while (const For* loop = std::get_if<For>(&inner->op)) {
    box.emplace_back(loop->var, program.ranges[static_cast<size_t>(loop->var.value)]);
    inner = loop->body;
  }
  const Store* sum = std::get_if<Store>(&inner->op);
  if (sum == nullptr || box.empty() || program[sum->buffer].scope != Scope::kRegister)
    return nullptr;
  const Expr hold = guards_hold(sum->value, box);
  if (!hold) return nullptr;
  const Expr condition = program.simple(hold);
  const Stmt inside = rewrite(nest, {}, without_guards);
  if (as_int(condition) != nullptr && *as_int(condition) != 0) return inside;
  return make_stmt(Block{
      {make_stmt(If{condition, inside}), make_stmt(If{call(Intrinsic::kNot, {condition}), nest})}});
}

}  // namespace

Program split_guards(Program program) {
  program.body = rewrite(program.body, [&](const Stmt& s) { return split(program, s); });
  return program;
}

}  // namespace pruner
