// label: codegen
// Quotients and remainders of an index that runs along the lanes of a vector.
#include <gtest/gtest.h>

#include "codegen/codegen.h"
#include "codegen/kernels.h"
#include "codegen/run.h"
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

int gathers(const Program& program) {
  const auto text = compile_to_text(program, cpu_target("skylake-avx512"), CodeText::kAssembly);
  EXPECT_TRUE(text.ok());
  int count = 0;
  for (size_t at = 0; text.ok() && (at = text->find("gather", at)) != std::string::npos; ++at)
    ++count;
  return count;
}

TEST(Indices, QuotientsAlongLanesAreWhatTheirDivisionGives) {
  for (const int64_t group : {1, 2, 3, 8, 16, 20, 32, 40, 48, 80, 96, 240}) {
    Rng rng(6);
    Tensor x(DType::kFloat32, {kLength / group + 1}), z(DType::kFloat32, {group});
    for (Tensor* t : {&x, &z})
      for (int64_t i = 0; i < t->num_elements(); ++i) t->set(i, rng.uniform());
    expect_same(grouped(group), {x, z, Tensor(DType::kFloat32, {kLength})}, 0);
  }
}

// Lanes of one group read one place, and follow each other within the group: nothing is gathered,
// but by vectors that two groups may share: the third of five with groups of 40, all with 24.
TEST(Indices, LanesOfOneGroupAreNotGathered) {
  for (const int64_t group : {16, 80, 240}) EXPECT_EQ(gathers(grouped(group)), 0) << group;
  EXPECT_GT(gathers(grouped(40)), 0);
  EXPECT_EQ(gathers(grouped(24)), kVectors * gathers(grouped(40)));
}

}  // namespace
}  // namespace pruner
