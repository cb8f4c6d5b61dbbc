#include "tensor/generalize.h"

#include <gtest/gtest.h>

#include "golden.h"
#include "tensor/dag_builder.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

ComputeDag dag_of(const std::string& op) {
  Result<ComputeDag> dag = parse_operator(op);
  EXPECT_TRUE(dag.ok()) << op;
  return *std::move(dag);
}

/// A row times a number.
ComputeDag scaled(double factor) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {8}, DType::kFloat32);
  return b.finish({b.compute(
      "scaled", {8}, [&](auto i) { return b.at(x, {i[0]}) * float_imm(factor); }, "elemwise")});
}

const std::vector<Symbol> kRows = {{"n", 1, 100, {}}};

TEST(DagRange, IsTheDagAtEachShape) {
  FormulaFinder finder(kRows, generic_points(box_of(kRows), 8));
  std::vector<ComputeDag> dags;
  std::vector<const ComputeDag*> list;
  for (const SymbolValues& point : finder.points())
    dags.push_back(dag_of("attention 1 2 " + std::to_string(point[0]) + " " +
                          std::to_string(point[0]) + " 8"));
  for (const ComputeDag& dag : dags) list.push_back(&dag);
  const Result<DagRange> range = DagRange::of(list, finder);
  ASSERT_TRUE(range.ok()) << range.error().message();
  for (const int64_t n : {4, 16, 99}) {
    const std::string text = std::to_string(n);
    const ComputeDag at = range->at(SymbolValues{n});
    EXPECT_EQ(workload_key(at), workload_key(dag_of("attention 1 2 " + text + " " + text + " 8")));
    EXPECT_TRUE(at.stages.back().axes[2].open);
    EXPECT_FALSE(at.stages.back().axes[1].open);
  }
}

// 1 / n as a float32 has it, and as a float64.
TEST(DagRange, HasCountsAndTheirInversesAsReals) {
  for (const bool rounded : {false, true}) {
    const auto factor = [&](int64_t n) {
      const double inverse = 1 / static_cast<double>(n);
      return rounded ? static_cast<double>(static_cast<float>(inverse)) : inverse;
    };
    FormulaFinder finder(kRows, generic_points(box_of(kRows), 8));
    std::vector<ComputeDag> dags;
    std::vector<const ComputeDag*> list;
    for (const SymbolValues& point : finder.points()) dags.push_back(scaled(factor(3 * point[0])));
    for (const ComputeDag& dag : dags) list.push_back(&dag);
    const Result<DagRange> range = DagRange::of(list, finder);
    ASSERT_TRUE(range.ok()) << range.error().message();
    for (const int64_t n : {1, 2, 64, 77, 100})
      EXPECT_EQ(workload_key(range->at(SymbolValues{n})), workload_key(scaled(factor(3 * n))));
  }
}

TEST(DagRange, SaysWhatDiffersInMoreThanNumbers) {
  EXPECT_TRUE(DagRange::check_alike(dag_of("matmul 4 8 6"), dag_of("matmul 5 7 9")).ok());
  EXPECT_ERROR(DagRange::check_alike(dag_of("matmul 4 8 6"), dag_of("matmul 4 8 6 +relu")),
               "stages");
  EXPECT_TRUE(
      DagRange::check_alike(dag_of("avg_pool2d 1 8 4 4 2 2"), dag_of("avg_pool2d 1 8 4 4 3 3"))
          .ok())
      << "a mean divides by a count";
  EXPECT_ERROR(DagRange::check_alike(scaled(0.3), scaled(0.7)),
               "a real number is another one at each shape");
}

}  // namespace
}  // namespace pruner
