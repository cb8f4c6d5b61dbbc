// label: codegen
// Copies whose reads are contiguous along the loop outside of the vector.
#include <gtest/gtest.h>

#include "codegen/codegen.h"
#include "codegen/run.h"
#include "lower/program_builder.h"
#include "space/operator_task.h"
#include "support/rng.h"

namespace pruner {
namespace {

using Loop = Stmt (ProgramBuilder::*)(Expr, const ProgramBuilder::Body&);

// y[k, j] = x[j, k] for blocks of `lanes` of 64 places j.
Program transposed(int lanes, int64_t columns, Loop loop, int64_t read = 0) {
  ProgramBuilder b("transposed");
  const TensorId x = b.input("x", {64, columns + read}), y = b.output("y", {columns, 64});
  b.program.body = b.serial(64 / lanes, [&](Expr block) {
    return (b.*loop)(columns, [&](Expr k) {
      return b.vectorize(lanes, lanes, [&](Expr l) {
        const Expr j = block * Expr(lanes) + l;
        return b.store(y, {k, j}, b.read(x, {j, k + Expr(read)}));
      });
    });
  });
  return b.program;
}

// Returns a program whose input lies in parts of `part` elements: x[k / part, j, k % part].
Program in_parts(int lanes, int64_t columns, int64_t part) {
  ProgramBuilder b("parts");
  const TensorId x = b.input("x", {columns / part, lanes, part}),
                 y = b.output("y", {columns, lanes});
  b.program.body = b.serial(columns, [&](Expr k) {
    return b.vectorize(lanes, lanes, [&](Expr l) {
      return b.store(y, {k, l}, b.read(x, {floor_div(k, part), l, floor_mod(k, part)}));
    });
  });
  return b.program;
}

std::vector<Tensor> arguments(const Program& program) {
  Rng rng(8);
  std::vector<Tensor> tensors;
  for (const TensorId id : program.args) tensors.emplace_back(program[id].dtype, program[id].shape);
  for (int64_t i = 0; i < tensors[0].num_elements(); ++i) tensors[0].set(i, rng.uniform());
  return tensors;
}

int count(const Program& program, std::string_view word) {
  const auto text = compile_to_text(program, cpu_target("skylake-avx512"), CodeText::kEmitted);
  EXPECT_TRUE(text.ok());
  int found = 0;
  for (size_t at = 0; text.ok() && (at = text->find(word, at)) != std::string::npos; ++at) ++found;
  return found;
}

TEST(CopyTransposed, GivesWhatTheCopyDoes) {
  for (const int lanes : {4, 8, 16}) {
    for (const int64_t columns : {1, 15, 16, 20, 48, 64, 1040}) {
      for (const Loop loop : {&ProgramBuilder::serial, &ProgramBuilder::unroll}) {
        if (loop == &ProgramBuilder::unroll && columns > 64) continue;
        SCOPED_TRACE(std::to_string(lanes) + " lanes, " + std::to_string(columns) + " columns");
        for (const int64_t read : {0, 3}) {
          const Program program = transposed(lanes, columns, loop, read);
          expect_same(program, arguments(program), 0);
        }
      }
    }
  }
  for (const int lanes : {4, 8, 16}) {
    for (const int64_t part : {2, 8, 16, 32}) {
      const Program program = in_parts(lanes, 32, part);
      expect_same(program, arguments(program), 0);
    }
  }
}

// A transpose of 16 x 16 elements reads as many vectors as it writes, in 4 steps of 16 shuffles.
TEST(CopyTransposed, ReadsRows) {
  const Program program = transposed(16, 48, &ProgramBuilder::serial);
  EXPECT_EQ(count(program, "shufflevector"), 64);
  EXPECT_EQ(count(program, "load <16 x float>"), 16);
  EXPECT_EQ(count(program, "insertelement"), 0);
  EXPECT_EQ(count(in_parts(16, 32, 8), "shufflevector"), 0);
}

}  // namespace
}  // namespace pruner
