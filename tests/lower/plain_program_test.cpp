#include "lower/plain_program.h"

#include <gtest/gtest.h>

#include "golden.h"
#include "lower/generalize.h"
#include "lower/meaning.h"
#include "lower/range_tasks.h"

namespace pruner {
namespace {

struct PlainCase {
  const char* op;
  std::vector<Symbol> symbols;
};

class EveryPlainProgram : public testing::TestWithParam<PlainCase> {};

// At every shape of a small box what the DAG of that shape computes.
TEST_P(EveryPlainProgram, ComputesWhatEachShapeDoes) {
  const auto& [op, symbols] = GetParam();
  const TaskRange task = task_range(op, symbols);
  const Result<Program> program = plain_program(task, {}, "k");
  ASSERT_TRUE(program.ok()) << program.error().message();
  Rng rng(11);
  for (const SymbolValues& values : checked_shapes(task.box(), {}).shapes) {
    const Meaning meaning(task.task_at(values).dag, rng);
    meaning.check(at_shape(*program, values), print(symbols, values));
    if (HasFatalFailure()) return;
  }
}

const Symbol kN = {"n", 1, 24, {}}, kB = {"b", 1, 4, {}}, kS = {"s", 2, 9, {}};

INSTANTIATE_TEST_SUITE_P(
    PlainProgram,
    EveryPlainProgram,
    testing::Values(PlainCase{"matmul {n} 24 40", {kN}},
                    PlainCase{"dense {n} 32 24 +bias +relu", {kN}},
                    PlainCase{"layernorm {n} 32", {kN}},
                    PlainCase{"softmax {n} {n}", {kN}},
                    PlainCase{"softmax {b} {s} 24", {kB, kS}},
                    PlainCase{"conv2d {b} 8 6 6 16 3 3 padding=1", {kB}},
                    PlainCase{"conv2d 1 3 {s} {s} 5 3 3 stride=2 padding=1 +relu", {kS}},
                    PlainCase{"attention {b} 2 {s} {s} 16", {kB, kS}}));

// Constants may be stored in the order in which the kernels of a schedule read them.
TEST(PlainProgram, ReadsWeightsAsTheyArePacked) {
  const TaskRange task = task_range("dense {n} 32 24", {kN});
  const PackSpec rows{{1, 0}, {{0, 16}}};
  std::vector<PackSpec> packing(task.dag().form().inputs().size() + 1);
  packing[1] = rows;
  const Result<Program> program = plain_program(task, packing, "k");
  ASSERT_TRUE(program.ok()) << program.error().message();
  EXPECT_EQ((*program)[program->args[1]].pack, rows);
  Rng rng(5);
  const Meaning meaning(task.task_at(SymbolValues{7}).dag, rng);
  meaning.check(at_shape(*program, SymbolValues{7}), "n=7");
  packing[1].transform = Transform::kWinograd2;
  EXPECT_ERROR(plain_program(task, packing, "k"), "stored as another tensor");
}

}  // namespace
}  // namespace pruner
