#include "lower/passes/pass_programs.h"
#include "lower/program_builder.h"

namespace pruner {
namespace {

// y[j] is the sum of x[k] * w[k, j] by vectors of 16, two of them a step.
Program steps(int64_t prefetch_bytes, bool packed = false) {
  ProgramBuilder b("k");
  const std::vector<int64_t> shape =
      packed ? std::vector<int64_t>{1, 8, 32} : std::vector<int64_t>{8, 32};
  const TensorId x = b.input("x", {8}), w = b.input("w", shape), y = b.output("y", {32});
  const TensorId sum = b.registers("sum", {32}, 16);
  if (packed) b.program.buffers[1].pack = {{1, 0}, {{1, 32}}, 0};
  const auto tile = [&](const std::function<Stmt(Expr)>& at) {
    return b.unroll(2, [&](Expr u) {
      return b.vectorize(16, 16, [&](Expr lane) { return at(u * Expr(16) + lane); });
    });
  };
  const auto add = [&](Expr k) {
    return tile([&](Expr j) {
      const std::vector<Expr> place = packed ? std::vector<Expr>{0, k, j} : std::vector<Expr>{k, j};
      return b.add(sum, {j}, b.read(x, {k}) * b.read(w, place));
    });
  };
  For loop = std::get<For>(b.serial(8, add)->op);
  for (const auto& [var, extent] : {std::pair{0, 8}, {1, 2}, {2, 16}})
    b.program.ranges[static_cast<size_t>(var)] = {0, extent - 1};
  loop.prefetch_bytes = prefetch_bytes;
  b.program.body =
      b.allocate(sum,
                 b.block({tile([&](Expr j) { return b.store(sum, {j}, float_imm(0)); }),
                          make_stmt(std::move(loop)),
                          tile([&](Expr j) { return b.store(y, {j}, b.read(sum, {j})); })}));
  return b.program;
}

std::string prefetches(const Program& before) {
  const Program after = prefetch(before);
  expect_same_results(before, after);
  std::string text = print(after), found;
  for (size_t at = 0; (at = text.find("prefetch ", at)) != std::string::npos; ++at)
    found += text.substr(at + 9, text.find(';', at) - at - 8);
  return found;
}

TEST(Prefetch, AsksForRowsSomeStepsAhead) {
  EXPECT_EQ(prefetches(steps(256)), "w[(i0 + 2), 0];w[(i0 + 2), 16];");
  EXPECT_EQ(prefetches(steps(64)), "w[(i0 + 1), 0];w[(i0 + 1), 16];");
  EXPECT_EQ(prefetches(steps(0)), "");
}

TEST(Prefetch, AsksForPackedOperandsByBytes) {
  EXPECT_EQ(prefetches(steps(256, true)), "w[0, i0, 64];w[0, i0, 80];");
}

TEST(Prefetch, KeepsWhatCandidatesCompute) {
  EXPECT_GT(changed_by("prefetch", operator_task("dense 1 24 2048 +bias +relu"), 20).size(), 4);
}

}  // namespace
}  // namespace pruner
