#include "lower/lower.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ansor/cpu_steps.h"
#include "ansor/own_points.h"
#include "ansor/workloads.h"
#include "golden.h"
#include "lower/meaning.h"
#include "space/gpu/gpu_task.h"
#include "space/operator_task.h"
#include "tensor/operator_dags.h"

namespace pruner {
namespace {

class EveryOperator : public testing::TestWithParam<const char*> {};

// The meaning of loop IR is that of the DAG, candidate by candidate: no backend is involved.
TEST_P(EveryOperator, LowersToProgramsThatComputeWhatTheDagDoes) {
  const Task task = operator_task(GetParam());
  const Space space = make_space(task);
  Rng rng(7);
  const Meaning meaning(task.dag, rng);
  for (int i = 0; i < 6; ++i) meaning.check(space, sample(space, rng));
}

INSTANTIATE_TEST_SUITE_P(Lower, EveryOperator, testing::ValuesIn(kSmallOperators));

// A stage without axes, computed inside another one and read by a third, is a buffer of one
// element.
TEST(Lower, ReducesToAScalarAmidOthers) {
  Target target;
  target.threads = 2;
  for (const bool mean : {false, true}) {
    DagBuilder b;
    const StageId x = b.placeholder("A", {3, 6, 6}, DType::kFloat32);
    const StageId squares = add_elementwise(
        b, "T_multiply", {{x}}, [](std::span<const Expr> v) { return v[0] * v[0]; });
    const StageId sum = add_reduce(b,
                                   squares,
                                   std::vector<int64_t>{0, 1, 2},
                                   false,
                                   mean ? ReduceKind::kMean : ReduceKind::kSum);
    const StageId root = add_elementwise(b, "T_sqrt", {{sum}}, [](std::span<const Expr> v) {
      return call(Intrinsic::kSqrt, {v[0]});
    });
    const Task task = make_task(b.finish({{root}}), target, "");
    const Space space = make_space(task);
    Rng rng(9);
    const Meaning meaning(task.dag, rng);
    for (int i = 0; i < 20; ++i) meaning.check(space, sample(space, rng));
  }
}

// Sums of sums in the middle of a joined tensor. A tile of the joined tensor may begin before the
// sums and end after them; the inner sums of the tile then begin with their first row.
TEST(Lower, KeepsSumsOfMovedReadersInsideTheirInputs) {
  DagBuilder b;
  const StageId before = b.placeholder("A", {2, 4}), x = b.placeholder("B", {3, 5, 4});
  const StageId after = b.placeholder("C", {15, 4});
  const StageId inner = b.reduce(
      "inner",
      {3, 4, 4},
      {2},
      Combiner::kSum,
      [&](auto i, auto r) {
        return b.at(x, {i[0], i[1] + r[0], i[2]});
      },
      "sum");
  const StageId outer = b.reduce(
      "outer",
      {3, 4},
      {4},
      Combiner::kSum,
      [&](auto i, auto r) {
        return b.at(inner, {i[0], r[0], i[1]});
      },
      "sum");
  const StageId joined = b.compute("joined", {20, 4}, [&](auto i) {
    return select(i[0] < Expr(2),
                  b.at(before, {i[0], i[1]}),
                  select(i[0] < Expr(5),
                         b.at(outer, {i[0] - Expr(2), i[1]}),
                         b.at(after, {i[0] - Expr(5), i[1]})));
  });
  Target target;
  target.threads = 2;
  const Task task = make_task(b.finish({joined}), target, "");
  const Space space = make_space(task);
  Rng rng(11);
  const Meaning meaning(task.dag, rng);
  for (int i = 0; i < 60; ++i) meaning.check(space, sample(space, rng));
}

// Elements that no row of a tile sees are neither computed nor read. The last value is NaN here: a
// product of NaN would be NaN, even a product by zero.
TEST(Lower, EndsLoopsWhereCausalAttentionHidesTheRest) {
  const Task task = operator_task("attention 1 2 120 128 16 causal=1");
  const Space space = make_space(task);
  Rng rng(7);
  const Meaning meaning(task.dag, rng);
  int ended = 0, split = 0;
  for (int i = 0; i < 12; ++i) {
    const Candidate candidate = sample(space, rng);
    meaning.check(space, candidate);
    const Result<Program> program = lower(space, candidate, "k");
    ASSERT_TRUE(program.ok());
    split += print(*program).find("_end") != std::string::npos;
    std::vector<Tensor> args = meaning.inputs();
    ASSERT_EQ(args[2].shape(), (std::vector<int64_t>{1, 2, 128, 16}));
    args[2] = Tensor(DType::kFloat32, args[2].shape());
    for (int64_t e = 0; e < args[2].num_elements(); ++e)
      args[2].set(e, e / 16 == 127 ? std::nan("") : 1);
    args.push_back(Tensor(DType::kFloat32, meaning.expected()[0].shape()));
    ASSERT_TRUE(interpret(*program, args).ok());
    EXPECT_TRUE(std::isnan(args[3].get(119 * 16)));  // the last row, of the first head
    ended += !std::isnan(args[3].get(0));
  }
  EXPECT_EQ(ended, 12);
  EXPECT_GE(split, 6);
}

// Sums of a contraction's rows, whose last step runs over the rows in masked vectors: these reach
// beyond the last row, and the tiles of rows computed inside must not.
TEST(Lower, EndsTilesOfRowsWhereMaskedVectorsOfTheirReaderEnd) {
  int ended = 0;
  for (const int64_t rows : {13, 29, 26}) {
    DagBuilder b;
    const StageId x = b.placeholder("A", {rows, 9}, DType::kFloat32);
    const StageId y = b.placeholder("B", {20, 9}, DType::kFloat32, true);
    const StageId dense = add_activation(b, add_dense(b, x, y), *find_activation("relu"));
    const StageId sum = add_reduce(b, dense, std::vector<int64_t>{1}, false, ReduceKind::kSum);
    const StageId root = add_cast(b, sum, DType::kFloat16);
    Target target;
    target.threads = 2;
    target.vector_bytes = 64;
    const Task task = make_task(b.finish({{root}}), target, "");
    const Space space = make_space(task);
    Rng rng(10);
    const Meaning meaning(task.dag, rng);
    for (int i = 0; i < 400; ++i) {
      const Candidate candidate = draw(space, rng);
      std::string why;
      if (is_legal(space, candidate, &why)) meaning.check(space, candidate);
      ended += why.starts_with("a visit ends inside a tile");
    }
  }
  EXPECT_GT(ended, 0);
}

// The nearest candidate in our space to a record of Ansor computes what the record's workload does.
TEST(Lower, NearestCandidatesOfRecordsComputeWhatTheDagDoes) {
  const auto dags = ansor::registered_workload(*parse_json(R"(["matmul_layer", 64, 64, 64])"));
  ASSERT_TRUE(dags.ok());
  ansor::Structures structures((*dags)[0]);
  Target target;
  target.threads = 2;
  const Space space = make_space(make_task((*dags)[0], target, ""));
  Rng rng(8);
  const Meaning meaning((*dags)[0], rng);
  const auto tiles = [&](size_t levels) {
    std::vector<int64_t> drawn(levels, 1);
    for (int power = 0; power < 5; ++power)
      drawn[static_cast<size_t>(rng.below(static_cast<int64_t>(levels)))] *= 2;
    return drawn;
  };
  ansor::OwnPoints points;
  for (int i = 0; i < 8; ++i) {
    const ansor::CpuTiles drawn{tiles(3), tiles(3), tiles(1), 64};
    const auto steps = ansor::steps_from_json(*parse_json(ansor::cpu_matmul_steps(drawn)));
    ASSERT_TRUE(steps.ok());
    const auto nest = ansor::replay(structures, *steps);
    ASSERT_TRUE(nest.ok()) << nest.error().message();
    const auto found = points.find(*nest, std::vector<int64_t>{2, 32, 64, 0, 0, 0, 0, 0});
    ASSERT_TRUE(found.ok()) << found.error().message();
    meaning.check(space, found->candidate);
  }
}

TEST(PrintAfter, ShowsEachPassAndNamesThem) {
  const Task task = gpu_task("matmul 20 28 24");
  const Space space = make_space(task);
  Rng rng(1);
  const Candidate candidate = sample(space, rng);
  const Result<std::string> last = print_after("unroll", space, candidate);
  ASSERT_TRUE(last.ok()) << last.error().message();
  EXPECT_EQ(*last, print(*lower(space, candidate, "kernel")));
  EXPECT_ERROR(print_after("lops", space, candidate), "no pass \"lops\" ran; use one of loops, ");
}

}  // namespace
}  // namespace pruner
