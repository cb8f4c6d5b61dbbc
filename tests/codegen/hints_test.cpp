// label: codegen
// Prefetches and stores past the caches change how code runs, not what it computes.
#include <gtest/gtest.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/run.h"
#include "support/rng.h"

namespace pruner {
namespace {

constexpr int64_t kRows = 6, kColumns = 40;  // a row is no multiple of a vector of 16

// y[i, j] = 2 x[i, j], streamed, in `lanes` at a time; a row ahead is prefetched.
Program streaming_copy(int64_t columns, int lanes) {
  ProgramBuilder b("streaming");
  const TensorId x = b.input("x", {kRows, columns}), y = b.output("y", {kRows, columns});
  b.program.body = b.parallel(kRows, [&](Expr i) {
    return b.serial(columns / lanes, [&](Expr o) {
      const Stmt row = b.vectorize(lanes, lanes, [&](Expr l) {
        const Expr j = o * Expr(lanes) + l;
        return make_stmt(Store{y, {i, j}, b.read(x, {i, j}) * float_imm(2), true});
      });
      return b.block({make_stmt(Prefetch{x, {i + Expr(1), o * Expr(lanes)}}), row});
    });
  });
  return b.program;
}

std::string assembly(const Program& program) {
  const auto text = compile_to_text(program, cpu_target("skylake-avx512"), CodeText::kAssembly);
  EXPECT_TRUE(text.ok());
  return text.ok() ? *text : "";
}

// Guarded tensors begin or end at a page, so at_end leaves rows that are not aligned.
TEST(Hints, ChangeNoValue) {
  for (const auto& [columns, lanes] : {std::pair<int64_t, int>{kColumns, 8}, {48, 16}, {7, 1}}) {
    Rng rng(5);
    Tensor x(DType::kFloat32, {kRows, columns}), y(DType::kFloat32, {kRows, columns});
    for (int64_t i = 0; i < x.num_elements(); ++i) x.set(i, rng.uniform());
    expect_same(streaming_copy(columns, lanes), {x, y}, 0);
  }
}

TEST(Hints, AreInTheCode) {
  const std::string code = assembly(streaming_copy(48, 16));
  EXPECT_NE(code.find("prefetcht0"), std::string::npos) << code;
  EXPECT_NE(code.find("vmovntps"), std::string::npos) << code;
  EXPECT_NE(code.find("sfence"), std::string::npos) << code;
  EXPECT_NE(code.find("vmovups"), std::string::npos) << "for buffers that are not aligned";
}

// Rows of 40 elements start between the places of vectors of 16.
TEST(Hints, StoresThatAreNotAlignedDoNotStream) {
  ProgramBuilder b("odd");
  const TensorId x = b.input("x", {kRows, kColumns}), y = b.output("y", {kRows, kColumns});
  b.program.body = b.serial(kRows, [&](Expr i) {
    return b.vectorize(16, 16, [&](Expr l) {
      return make_stmt(Store{y, {i, l}, b.read(x, {i, l}), true});
    });
  });
  EXPECT_EQ(assembly(b.program).find("vmovntps"), std::string::npos);
}

}  // namespace
}  // namespace pruner
