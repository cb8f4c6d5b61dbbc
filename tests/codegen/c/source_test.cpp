#include "codegen/c/source.h"

#include <gtest/gtest.h>

#include "golden.h"
#include "lower/gpu_programs.h"
#include "lower/warp_programs.h"

namespace pruner {
namespace {

TEST(PrintSource, PrintsBothDialects) {
  for (const NamedProgram& p : gpu_programs()) {
    EXPECT_GOLDEN("codegen/c/" + p.name + ".cu", print_source(p.program, kCudaC, "kernel"));
    EXPECT_GOLDEN("codegen/c/" + p.name + ".cl", print_source(p.program, kOpenClC, "kernel"));
  }
}

// One statement in one thread, as C.
std::string in_one_thread(ProgramBuilder& b, const ProgramBuilder::Body& body) {
  b.program.body = b.blocks(4, [&](Expr) { return b.threads(64, body); });
  return print_source(b.program, kCudaC, "k");
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(PrintSource, CountsIn64BitsWhatDoesNotFit32) {
  ProgramBuilder b("wide");
  const int64_t big = int64_t{1} << 32;
  const TensorId x = b.input("x", {big}), y = b.output("y", {64});
  const std::string text = in_one_thread(b, [&](Expr t) {
    return b.block({b.store(y, {t}, b.read(x, {t * (int64_t{1} << 26)})),
                    b.store(y, {t}, b.read(x, {t * 2}))});
  });
  EXPECT_TRUE(holds(text, "x[(long long)i1 * 67108864LL]")) << text;
  EXPECT_TRUE(holds(text, "x[i1 * 2]")) << text;
}

TEST(PrintSource, DividesRoundingDown) {
  ProgramBuilder b("division");
  const TensorId y = b.output("y", {64}, DType::kInt64);
  const std::string text = in_one_thread(b, [&](Expr t) {
    return b.block({b.store(y, {floor_div(t, Expr(4))}, floor_div(t - 9, Expr(4))),
                    b.store(y, {t}, floor_mod(t - 9, Expr(5)))});
  });
  EXPECT_TRUE(holds(text, "y[i1 / 4] = floor_div(i1 - 9, 4)")) << text;
  EXPECT_TRUE(holds(text, "floor_mod(i1 - 9, 5)")) << text;
}

TEST(PrintSource, PrintsFloatsExactly) {
  ProgramBuilder b("floats");
  const TensorId y = b.output("y", {64});
  const std::string text = in_one_thread(b, [&](Expr t) {
    std::vector<Stmt> stores;
    for (const double v : {0.1, 2.0, -1e-30, 16777216.0, HUGE_VAL, -HUGE_VAL, std::nan("")}) {
      stores.push_back(b.store(y, {t}, float_imm(v)));
    }
    return b.block(stores);
  });
  for (const char* part : {"= 0.1f;",
                           "= 2.0f;",
                           "= (-1e-30f);",
                           "= 16777216.0f;",
                           "= __int_as_float(0x7f800000);",
                           "= (-__int_as_float(0x7f800000));",
                           "= __int_as_float(0x7fffffff);"}) {
    EXPECT_TRUE(holds(text, part)) << part << "\n" << text;
  }
}

TEST(PrintSource, MakesIdentifiersOfNames) {
  ProgramBuilder b("names");
  const TensorId x = b.input("float", {64}), other = b.input("a.b", {64});
  const TensorId same = b.input("a b", {64}), y = b.output("1st", {64});
  const std::string text = in_one_thread(b, [&](Expr t) {
    return b.store(y, {t}, b.read(x, {t}) + b.read(other, {t}) * b.read(same, {t}));
  });
  EXPECT_TRUE(holds(text, "x1st[i1] = float_[i1] + a_b[i1] * a_b_1[i1];")) << text;
}

TEST(PrintSource, LoadsVectorsOnlyWhereTheyAreAligned) {
  ProgramBuilder b("aligned");
  const TensorId x = b.input("x", {400}), y = b.output("y", {400});
  const auto copy = [&](Expr from) {
    return b.vectorize(4, 4, [&](Expr l) { return b.store(y, {l}, b.read(x, {from + l})); });
  };
  std::string text = in_one_thread(b, [&](Expr t) { return copy(t * 4); });
  EXPECT_TRUE(holds(text, "*(f32x4*)&y[0] = *(const f32x4*)&x[i1 * 4];")) << text;
  text = in_one_thread(b, [&](Expr t) { return b.let(t * 8, copy); });
  EXPECT_TRUE(holds(text, "*(const f32x4*)&x[x")) << text;
  text = in_one_thread(b, [&](Expr t) { return copy(t * 4 + 1); });
  EXPECT_FALSE(holds(text, "const f32x4*")) << text;
  text = in_one_thread(b, [&](Expr t) { return copy(t * 2); });
  EXPECT_FALSE(holds(text, "const f32x4*")) << text;
}

TEST(PrintSource, RunsTheActiveLanesOneByOneOfAVectorThatIsNotFull) {
  ProgramBuilder b("part");
  const TensorId y = b.output("y", {64, 4});
  const std::string text = in_one_thread(b, [&](Expr t) {
    return b.vectorize(4, 3, [&](Expr l) { return b.store(y, {t, l}, float_imm(1)); });
  });
  EXPECT_TRUE(holds(text, "< 3; ++")) << text;
}

TEST(PrintSource, PrintsStatementsOfWarpsAsCallsOfInstructions) {
  const WarpMatmul g = warp_matmuls().front().matmul;
  EXPECT_GOLDEN("codegen/c/warp_matmul.cu", print_source(warp_matmul(g), kCudaC, "kernel"));
}

}  // namespace
}  // namespace pruner
