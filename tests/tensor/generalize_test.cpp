#include "tensor/generalize.h"

#include <gtest/gtest.h>

#include "golden.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

ComputeDag dag_of(const std::string& op) {
  Result<ComputeDag> dag = parse_operator(op);
  EXPECT_TRUE(dag.ok()) << op;
  return *std::move(dag);
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

TEST(DagRange, SaysWhatDiffersInMoreThanNumbers) {
  EXPECT_TRUE(DagRange::check_alike(dag_of("matmul 4 8 6"), dag_of("matmul 5 7 9")).ok());
  EXPECT_ERROR(DagRange::check_alike(dag_of("matmul 4 8 6"), dag_of("matmul 4 8 6 +relu")),
               "stages");
  EXPECT_ERROR(
      DagRange::check_alike(dag_of("avg_pool2d 1 8 4 4 2 2"), dag_of("avg_pool2d 1 8 4 4 3 3")),
      "a real number differs");
}

}  // namespace
}  // namespace pruner
