#include "lower/rewrite.h"

#include <gtest/gtest.h>

#include "lower/program_builder.h"

namespace pruner {
namespace {

// Every kind of statement that has parts.
Program sample_program() {
  ProgramBuilder b("k");
  const TensorId x = b.input("x", {8}), y = b.output("y", {8}), part = b.local("part", {1});
  b.program.body = b.serial(8, [&](Expr i) {
    return b.let(i + Expr(0), [&](Expr at) {
      return b.allocate(part,
                        b.block({make_stmt(Prefetch{x, {at}}),
                                 b.guard(at < Expr(5), b.store(part, {0}, b.read(x, {at}))),
                                 b.store(y, {at}, float_imm(1))}));
    });
  });
  return b.program;
}

TEST(Walk, SeesEveryStatementAndExpression) {
  int statements = 0, expressions = 0;
  walk(
      sample_program().body,
      [&](const StmtNode&) { ++statements; },
      [&](const Expr&) { ++expressions; });
  EXPECT_EQ(statements, 8);
  EXPECT_EQ(expressions, 8);
}

TEST(Rewrite, ReachesThePlacesOfStatementsOfWarps) {
  const TensorId x{0};
  const VarId var{0};
  const Expr i = make_var(var, "i");
  const ElementPlace at = {x, {i, Expr(0)}};
  for (const Stmt& s : {make_stmt(Mma{nullptr, at, at, at}),
                        make_stmt(LoadMatrix{at, at, 1, false}),
                        make_stmt(AsyncCopy{at, at, 4, i})}) {
    EXPECT_EQ(rewrite(s, {}, [](const Expr& e) { return e; }), s);
    int before = 0, after = 0;
    const auto count = [&](int& reading) {
      return [&](const Expr& e) { reading += reads(e, var); };
    };
    walk(
        s, [](const StmtNode&) {}, count(before));
    const Stmt moved = rewrite(s, {}, [&](const Expr& e) { return substitute(e, var, Expr(1)); });
    walk(
        moved, [](const StmtNode&) {}, count(after));
    EXPECT_GE(before, 2);
    EXPECT_EQ(after, 0);
  }
}

TEST(Rewrite, SharesWhatStays) {
  const Stmt body = sample_program().body;
  EXPECT_EQ(rewrite(body, {}), body);
  EXPECT_EQ(rewrite(body, {}, [](const Expr& e) { return e; }), body);
}

TEST(Rewrite, ReplacesStatementsAndExpressions) {
  Program program = sample_program();
  program.body = rewrite(
      program.body,
      [](const Stmt& s) {
        const bool hint = std::holds_alternative<Prefetch>(s->op);
        return hint ? make_stmt(Block{}) : Stmt();
      },
      [](const Expr& e) { return substitute(e, VarId{1}, Expr(3)); });
  EXPECT_EQ(print(program), R"(kernel k(float32 x[8], out float32 y[8]) {
  for (i0 < 8) {
    let x1 = i0;
    local float32 part[1];
    if (true) {
      part[0] = x[3];
    }
    y[3] = 1.0;
  }
}
)");
}

}  // namespace
}  // namespace pruner
