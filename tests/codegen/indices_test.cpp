// label: codegen
// Quotients and remainders of an index that runs along the lanes of a vector.
#include <gtest/gtest.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/run.h"
#include "lower/lower.h"
#include "space/operator_task.h"
#include "support/rng.h"

namespace pruner {
namespace {

constexpr int kLanes = 16, kVectors = 5;
constexpr int64_t kTiles = 3, kLength = kTiles * kVectors * kLanes;

// y[i] = x[i / group] + z[i % group], as a grouped convolution reads its channels.
Program grouped(int64_t group) {
  ProgramBuilder b("grouped");
  const TensorId x = b.input("x", {kLength / group + 1}), z = b.input("z", {group});
  const TensorId y = b.output("y", {kLength});
  b.program.body = b.serial(kTiles, [&](Expr o) {
    return b.unroll(kVectors, [&](Expr v) {
      return b.vectorize(kLanes, kLanes, [&](Expr l) {
        const Expr i = o * Expr(kVectors * kLanes) + v * Expr(kLanes) + l;
        return b.store(y, {i}, b.read(x, {floor_div(i, group)}) + b.read(z, {floor_mod(i, group)}));
      });
    });
  });
  return b.program;
}

// How often a word stands in a program's assembly.
int count(const Program& program, std::string_view word) {
  const auto text = compile_to_text(program, cpu_target("skylake-avx512"), CodeText::kAssembly);
  EXPECT_TRUE(text.ok());
  int found = 0;
  for (size_t at = 0; text.ok() && (at = text->find(word, at)) != std::string::npos; ++at) ++found;
  return found;
}

int gathers(const Program& program) { return count(program, "gather"); }

// A convolution of 8 groups of 24 channels in tiles of 14 rows of 2 vectors of 8 lanes, which may
// lie in two groups.
Program grouped_convolution() {
  const Task task = operator_task("conv2d 1 192 28 28 192 3 3 padding=1 groups=8", test_target(64));
  const Space space = make_space(task);
  const auto candidate = parse_candidate(
      space,
      "register-tile: PaddedInput.at=1 Conv2dOutput.local.unroll=128 "
      "Conv2dOutput.local.prefetch=0 Conv2dOutput.yy.middle=1 Conv2dOutput.yy.inner=2 "
      "Conv2dOutput.yy.rows=14 Conv2dOutput.xx.middle=2 Conv2dOutput.xx.inner=7 "
      "Conv2dOutput.xx.rows=1 Conv2dOutput.ff.middle=2 Conv2dOutput.ff.inner=6 "
      "Conv2dOutput.ff.vectors_of_8=2 Conv2dOutput.parallel_order=1 Conv2dOutput.order=1");
  EXPECT_TRUE(candidate.ok());
  return *lower(space, *candidate, "k");
}

TEST(Indices, QuotientsAlongLanesAreWhatTheirDivisionGives) {
  for (const int64_t group : {1, 2, 3, 4, 8, 16, 20, 32, 40, 48, 80, 96, 240}) {
    Rng rng(6);
    Tensor x(DType::kFloat32, {kLength / group + 1}), z(DType::kFloat32, {group});
    for (Tensor* t : {&x, &z})
      for (int64_t i = 0; i < t->num_elements(); ++i) t->set(i, rng.uniform());
    expect_same(grouped(group), {x, z, Tensor(DType::kFloat32, {kLength})}, 0);
  }
}

// Lanes of one group read one place, and follow each other within the group; those of whole groups
// read a run: nothing is gathered, but by vectors that two groups may share a part of: the third of
// five with groups of 40, all with 24.
TEST(Indices, LanesOfWholeGroupsAreNotGathered) {
  for (const int64_t group : {2, 4, 8, 16, 80, 240}) EXPECT_EQ(gathers(grouped(group)), 0) << group;
  EXPECT_GT(gathers(grouped(40)), 0);
  EXPECT_EQ(gathers(grouped(24)), kVectors * gathers(grouped(40)));
}

// Vectors of two groups of 8 channels, of which the last has one: a run is loaded and spread by two
// instructions, the first of which four channels share.
TEST(Indices, VectorsOfTwoGroupsAreSpread) {
  const Task task =
      operator_task("conv2d 1 104 28 28 104 3 3 padding=1 groups=13", test_target(64));
  const Space space = make_space(task);
  const auto candidate = parse_candidate(
      space,
      "register-tile: PaddedInput.at=1 Conv2dOutput.local.unroll=128 "
      "Conv2dOutput.local.prefetch=0 Conv2dOutput.yy.middle=1 Conv2dOutput.yy.inner=14 "
      "Conv2dOutput.yy.rows=2 Conv2dOutput.xx.middle=2 Conv2dOutput.xx.inner=2 "
      "Conv2dOutput.xx.rows=7 Conv2dOutput.ff.middle=7 Conv2dOutput.ff.inner=1 "
      "Conv2dOutput.ff.vectors=1 Conv2dOutput.parallel_order=0 Conv2dOutput.order=0");
  ASSERT_TRUE(candidate.ok()) << candidate.error().message();
  const Program program = *lower(space, *candidate, "k");
  EXPECT_EQ(gathers(program), 0);
  EXPECT_EQ(count(program, "vfmadd"), 8 * 14);
  EXPECT_EQ(count(program, "vpermpd"), 2 * 14);
}

// y[i] = x[step * i + first] where that is in x, else 0: a window of this stride at its border.
Program strided(int64_t step, int64_t first) {
  ProgramBuilder b("strided");
  const TensorId x = b.input("x", {kLength}), y = b.output("y", {kLength});
  b.program.body = b.serial(kTiles * kVectors, [&](Expr v) {
    return b.vectorize(kLanes, kLanes, [&](Expr l) {
      const Expr i = v * Expr(kLanes) + l, at = i * Expr(step) + Expr(first);
      const Expr inside = at >= Expr(0) && at < Expr(kLength);
      return b.store(y, {i}, select(inside, b.read(x, {at}), float_imm(0)));
    });
  });
  return b.program;
}

// y[p, c] = x[c, p], whose rows are shorter than a vector.
Program short_rows(int64_t channels) {
  ProgramBuilder b("short_rows");
  const TensorId x = b.input("x", {channels, kLength}), y = b.output("y", {kLength, channels});
  b.program.body = b.serial(kLength, [&](Expr p) {
    return b.vectorize(4, channels, [&](Expr c) { return b.store(y, {p, c}, b.read(x, {c, p})); });
  });
  return b.program;
}

TEST(Indices, StridedLanesUnderAMaskAreNotGathered) {
  Rng rng(7);
  for (const auto& [step, first] : {std::pair<int64_t, int64_t>{2, -3},
                                    {2, 1 - kLength},
                                    {-1, kLength - 5},
                                    {-1, kLength + 7}}) {
    const Program program = strided(step, first);
    Tensor x(DType::kFloat32, {kLength});
    for (int64_t i = 0; i < kLength; ++i) x.set(i, rng.uniform());
    expect_same(program, {x, Tensor(DType::kFloat32, {kLength})}, 0);
    EXPECT_EQ(gathers(program), 0) << step;
  }
  EXPECT_GT(gathers(strided(3, -1)), 0);
}

TEST(Indices, RowsShorterThanAVectorAreReadByLane) {
  for (const int64_t channels : {2, 3}) {
    Rng rng(8);
    Tensor x(DType::kFloat32, {channels, kLength});
    for (int64_t i = 0; i < x.num_elements(); ++i) x.set(i, rng.uniform());
    expect_same(short_rows(channels), {x, Tensor(DType::kFloat32, {kLength, channels})}, 0);
    EXPECT_EQ(gathers(short_rows(channels)), 0) << channels;
  }
}

// The rows of a tile lie at constant distances from one pointer a vector: were there one for each
// row, they would be kept in memory and loaded for each multiply-add.
TEST(Indices, RowsBehindAQuotientShareAPointer) {
  EXPECT_LT(count(grouped_convolution(), "(%rsp), %r"), 100);
}

}  // namespace
}  // namespace pruner
