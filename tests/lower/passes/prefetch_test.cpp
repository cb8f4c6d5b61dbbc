#include "lower/passes/pass_programs.h"
#include "lower/program_builder.h"
#include "lower/rewrite.h"

namespace pruner {
namespace {

// A product x * w, w in panels of 32 columns, by vectors of 16, two of them a step. A panel is read
// once for every row, unless its rows come first.
struct Product {
  int64_t rows = 1, panels = 1, terms = 8;
  bool packed = true;
  int64_t vectors = 2;
};

Program product(const Product& of, int64_t prefetch_bytes) {
  ProgramBuilder b("k");
  const auto [rows, panels, terms, packed, vectors] = of;
  const TensorId x = b.input("x", {rows, terms});
  const TensorId w = packed ? b.input("w", {panels, terms, 32}) : b.input("w", {terms, 32});
  const TensorId y = b.output("y", {rows, panels * 32});
  const TensorId sum = b.registers("sum", {32}, 16);
  if (packed) b.program.buffers[1].pack = {{1, 0}, {{1, 32}}};
  const auto tile = [&](const std::function<Stmt(Expr)>& at) {
    return b.unroll(vectors, [&](Expr u) {
      return b.vectorize(16, 16, [&](Expr lane) { return at(u * Expr(16) + lane); });
    });
  };
  b.program.body = b.serial(panels, [&](Expr panel) {
    return b.serial(rows, [&](Expr i) {
      For loop =
          std::get<For>(b.serial(terms, [&](Expr k) {
                           return tile([&](Expr j) {
                             const std::vector<Expr> place =
                                 packed ? std::vector<Expr>{panel, k, j} : std::vector<Expr>{k, j};
                             return b.add(sum, {j}, b.read(x, {i, k}) * b.read(w, place));
                           });
                         })->op);
      loop.prefetch_bytes = prefetch_bytes;
      return b.allocate(sum,
                        b.block({tile([&](Expr j) { return b.store(sum, {j}, float_imm(0)); }),
                                 make_stmt(std::move(loop)),
                                 tile([&](Expr j) {
                                   return b.store(y, {i, panel * Expr(32) + j}, b.read(sum, {j}));
                                 })}));
    });
  });
  walk(b.program.body, [&](const StmtNode& s) {
    if (const For* loop = std::get_if<For>(&s.op))
      b.program.ranges[static_cast<size_t>(loop->var.value)] = {0, *as_int(loop->extent) - 1};
  });
  return b.program;
}

std::string prefetches(const Program& before) {
  const Program after = prefetch(before);
  expect_same_results(before, after);
  std::string text = print(after), found;
  for (size_t at = 0; (at = text.find("prefetch", at)) != std::string::npos; ++at) {
    const size_t name = text.find(' ', at) + 1;
    found += text.substr(name, text.find(';', at) - name + 1);
  }
  return found;
}

TEST(Prefetch, AsksForRowsSomeStepsAhead) {
  const Product rows{.packed = false};
  EXPECT_EQ(prefetches(product(rows, 256)), "w[(i2 + 2), 0];w[(i2 + 2), 16];");
  EXPECT_EQ(prefetches(product(rows, 64)), "w[(i2 + 1), 0];w[(i2 + 1), 16];");
  EXPECT_EQ(prefetches(product(rows, 0)), "");
}

TEST(Prefetch, AsksForNothingWhereNothingIsRead) {
  for (const int64_t ahead : {int64_t{256}, int64_t{kPrefetchRound}}) {
    const Program none = product({.rows = 2, .panels = 3, .vectors = 0}, ahead);
    EXPECT_EQ(print(prefetch(none)).find("prefetch"), std::string::npos);
  }
}

// Twice the time for each loop would be years here.
TEST(Prefetch, GoesOnceIntoEachLoop) {
  ProgramBuilder b("k");
  const TensorId y = b.output("y", {1});
  Stmt body = b.store(y, {Expr(0)}, float_imm(0));
  for (int i = 0; i < 50; ++i) body = b.serial(1, [&](const Expr&) { return body; });
  b.program.body = body;
  walk(b.program.body, [&](const StmtNode& s) {
    if (const For* loop = std::get_if<For>(&s.op))
      b.program.ranges[static_cast<size_t>(loop->var.value)] = {0, 0};
  });
  EXPECT_EQ(prefetch(b.program).body, b.program.body);
}

TEST(Prefetch, AsksForPackedOperandsByBytes) {
  EXPECT_EQ(prefetches(product({}, 256)), "w[i0, i2, 64];w[i0, i2, 80];");
}

// A panel of 8 steps of two lines each: either of two rows asks for one of them in each step. Rows
// after these ask for lines of their own panel, without a branch.
TEST(Prefetch, AsksForTheNextRoundInParts) {
  const std::string part = "w[i0, 0, (((i1 * 128) + (i2 * 16)) + 256)];";
  EXPECT_EQ(prefetches(product({.rows = 2, .panels = 3}, kPrefetchRound)), part);
  const Product five{.rows = 5, .panels = 3};
  EXPECT_EQ(prefetches(product(five, kPrefetchRound)),
            "w[i0, 0, ((i2 * 16) + select((i1 < 2), ((i1 * 128) + 256), 0))];");
}

// The number of rounds is unknown, as it is for rows that are counted at run time.
TEST(Prefetch, CountsNoRoundsOfALoopWithoutABound) {
  Program program = product({.rows = 2, .panels = 3}, kPrefetchRound);
  walk(program.body, [&](const StmtNode& s) {
    const For* loop = std::get_if<For>(&s.op);
    if (loop == nullptr || loop->kind != LoopKind::kSerial || *as_int(loop->extent) != 2) return;
    program.ranges[static_cast<size_t>(loop->var.value)].second = int64_t{1} << 62;
  });
  EXPECT_EQ(prefetches(program), "w[i0, i2, 1024];w[i0, i2, 1040];");
}

TEST(Prefetch, AsksForBytesWhereNothingIsReadAgain) {
  const std::string later = "w[i0, i2, 1024];w[i0, i2, 1040];";
  EXPECT_EQ(prefetches(product({.rows = 1, .panels = 3}, kPrefetchRound)), later);
  const Product long_panels{.rows = 2, .panels = 2, .terms = 8192};
  EXPECT_EQ(prefetches(product(long_panels, kPrefetchRound)), later);
}

TEST(Prefetch, LeavesOutWhatAllStepsRead) {
  Program program = product({}, 256);
  program.body = rewrite(program.body, {}, [](const Expr& e) {
    return rewrite(e, [](const Expr& part) {
      const Load* read = as<Load>(part);
      const bool packed = read != nullptr && read->indices.size() == 3;
      return packed ? load(read->tensor, {Expr(0), Expr(1), read->indices[2]}, part->dtype)
                    : Expr();
    });
  });
  EXPECT_EQ(prefetches(program), "");
}

TEST(Prefetch, KeepsWhatCandidatesCompute) {
  EXPECT_GT(changed_by("prefetch", operator_task("dense 1 24 2048 +bias +relu"), 20).size(), 4);
}

}  // namespace
}  // namespace pruner
