#include "lower/task_range.h"

#include <gtest/gtest.h>

#include "lower/meaning.h"
#include "lower/range_tasks.h"
#include "space/carry_over.h"

namespace pruner {
namespace {

struct RangeCase {
  const char* op;
  std::vector<Symbol> symbols;
};

class EveryRange : public testing::TestWithParam<RangeCase> {};

// The program of a range computes at each shape of the range what the DAG of that shape does.
TEST_P(EveryRange, HasOneProgramThatComputesWhatEachShapeDoes) {
  const auto& [op, symbols] = GetParam();
  TaskRange task = task_range(op, symbols);
  const SymbolValues most = task.box().max;
  Rng rng(11);
  int made = 0;
  for (int i = 0; i < candidates_each(12); ++i) {
    const Candidate drawn = sample(task.space_at(most), rng);
    // Half of them with tiles as small as the least shape, which are programs of all of the range.
    const Candidate candidate =
        i % 2 == 0 ? drawn
                   : with_tiles_within(task.space_at(most), drawn, task.space_at(task.box().min));
    const std::string text = print(task.space_at(most), candidate);
    const Result<RangeProgram> range = lower_over_range(task, most, candidate, "k", task.box());
    if (!range.ok()) continue;
    ++made;
    for (int shape = 0; shape < 12; ++shape) {
      SymbolValues values;
      for (size_t s = 0; s < symbols.size(); ++s) {
        const int64_t least = range->box.min[s], span = range->box.max[s] - least;
        values.push_back(shape == 0   ? least
                         : shape == 1 ? least + span
                                      : least + rng.below(span + 1));
      }
      const Meaning meaning(task.task_at(values).dag, rng);
      meaning.check(at_shape(range->program, values), print(symbols, values) + ": " + text);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GE(made, 2) << "of the drawn schedules";
}

const Symbol kN = {"n", 1, 40, {}}, kBatch = {"b", 1, 6, {}}, kLength = {"s", 2, 37, {}};

INSTANTIATE_TEST_SUITE_P(
    TaskRange,
    EveryRange,
    testing::Values(RangeCase{"matmul {n} 24 40", {kN}},
                    RangeCase{"dense {n} 32 24 +bias +relu", {kN}},
                    RangeCase{"layernorm {n} 32", {kN}},
                    RangeCase{"softmax {n} {n}", {kN}},
                    RangeCase{"softmax {b} {s} 24", {kBatch, kLength}},
                    RangeCase{"conv2d {b} 8 6 6 16 3 3 padding=1", {kBatch}},
                    RangeCase{"batch_matmul {b} {s} 24 16", {kBatch, kLength}},
                    RangeCase{"attention {b} 2 {s} {s} 16", {{"b", 1, 6, {}}, {"s", 2, 20, {}}}},
                    RangeCase{"attention 1 2 {n} {n} 16", {{"n", 1, 50, {}}}}));

class EverySketch : public testing::TestWithParam<RangeCase> {};

// Else tiles would be chosen for the divisors of one extent, and the program would be another one
// where a tile divides it: one of Winograd's was no program at multiples of 3.
TEST_P(EverySketch, HasOpenAxesWhereExtentsVary) {
  const auto& [op, symbols] = GetParam();
  TaskRange task = task_range(op, symbols);
  SymbolValues less = task.box().max;
  for (int64_t& extent : less) --extent;
  const Space &large = task.space_at(task.box().max), &small = task.space_at(less);
  int compared = 0;
  for (const Sketch& sketch : large.sketches) {
    const auto other = std::ranges::find(small.sketches, sketch.name, &Sketch::name);
    if (other == small.sketches.end() || other->dag.size() != sketch.dag.size()) continue;
    for (int32_t s = 0; s < sketch.dag.size(); ++s) {
      const Stage &a = sketch.dag[StageId{s}], &b = other->dag[StageId{s}];
      if (a.is_placeholder()) continue;
      const size_t axes = a.axes.size() + a.reduce_axes.size();
      ASSERT_EQ(axes, b.axes.size() + b.reduce_axes.size()) << sketch.name << ": " << a.name;
      for (int i = 0; i < static_cast<int>(axes); ++i) {
        const Iterator &x = iterator_of(a, i), &y = iterator_of(b, i);
        if (x.extent == y.extent) continue;
        EXPECT_TRUE(x.open && y.open) << sketch.name << ": " << x.name << " of " << a.name;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(
    TaskRange,
    EverySketch,
    testing::Values(RangeCase{"conv2d {b} 16 14 14 16 3 3 padding=1", {kBatch}},
                    RangeCase{"conv2d 1 16 {n} {n} 16 3 3 padding=1", {{"n", 8, 40, {}}}},
                    RangeCase{"conv2d 1 16 {n} {n} 16 5 5 padding=2", {{"n", 8, 40, {}}}},
                    RangeCase{"batch_matmul 2 {n} 64 48", {kN}},
                    RangeCase{"attention 1 2 {n} {n} 16", {{"n", 1, 64, {}}}},
                    RangeCase{"layernorm {n} {n}", {kN}}));

}  // namespace
}  // namespace pruner
