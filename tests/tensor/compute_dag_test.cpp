#include "tensor/compute_dag.h"

#include "golden.h"
#include "naive.h"
#include "tensor/dag_builder.h"

namespace pruner {
namespace {

TEST(ComputeDag, KnowsInputsOutputsAndReaders) {
  const ComputeDag dag = operator_dag("matmul 4 6 8 +bias +relu");
  const auto ids = [](std::initializer_list<int> values) {
    std::vector<StageId> out;
    for (int v : values) out.push_back(StageId{v});
    return out;
  };
  EXPECT_EQ(dag.inputs(), ids({0, 1, 3}));
  EXPECT_EQ(dag.outputs(), ids({5}));
  EXPECT_EQ(dag.consumers(StageId{2}), ids({4}));
  EXPECT_EQ(dag.producers(StageId{4}), ids({2, 3}));
  EXPECT_TRUE(dag.producers(StageId{0}).empty());
  EXPECT_EQ(dag[StageId{2}].shape(), (std::vector<int64_t>{4, 6}));
  EXPECT_EQ(dag[StageId{2}].num_elements(), 24);
  EXPECT_EQ(dag[StageId{2}].reduce_size(), 8);
}

TEST(ComputeDag, Prints) {
  EXPECT_GOLDEN(
      "tensor/conv2d_dag.txt",
      print(operator_dag("conv2d 1 64 28 28 32 3 3 stride=2 padding=1 +bias +residual +relu")));
}

TEST(FlopCount, IsTwiceTheProductForMatmul) {
  EXPECT_EQ(flop_count(operator_dag("matmul 3 5 7")), 2 * 3 * 5 * 7);
  EXPECT_EQ(flop_count(operator_dag("matmul 3 5 7 +relu")), 2 * 3 * 5 * 7 + 3 * 5);
}

TEST(FlopCount, DoesNotCountPadsIndicesOrFunctions) {
  EXPECT_EQ(flop_count(operator_dag("conv2d 1 8 5 5 4 3 3 padding=1")), 2 * 8 * 25 * 4 * 9);
  EXPECT_EQ(flop_count(operator_dag("softmax 2 10")), 20 + 20 + 20 + 20);
  EXPECT_EQ(flop_count(operator_dag("relu 10 +exp")), 10);
}

TEST(TrafficBytes, CountsInputsAndOutputsOnce) {
  EXPECT_EQ(traffic_bytes(operator_dag("matmul 3 5 7")), 4 * (3 * 7 + 7 * 5 + 3 * 5));
  EXPECT_EQ(traffic_bytes(operator_dag("relu 10 +exp")), 4 * (10 + 10));
}

TEST(TrafficBytes, CountsOfATableTheRowsThatAreLoaded) {
  DagBuilder b;
  const StageId table = b.placeholder("table", {1000, 8}),
                rows = b.placeholder("rows", {3}, DType::kInt64);
  const StageId y = b.compute(
      "y",
      {3, 8},
      [&](auto i) {
        return b.at(table, {b.at(rows, {i[0]}), i[1]});
      },
      "gather");
  // The row numbers may be loaded again for each element, but there are only three.
  EXPECT_EQ(traffic_bytes(b.finish({y})), 4 * 3 * 8 + 8 * 3 + 4 * 3 * 8);
}

TEST(WorkloadKey, CarriesTheShapesOfInputsAndOutputs) {
  const std::string key = workload_key(operator_dag("matmul 3 5 7"));
  EXPECT_EQ(key.substr(key.find(',')), ", 3, 7, 7, 5, 3, 5]");
  EXPECT_EQ(key.find(','), 35u);
}

TEST(WorkloadKey, TellsApartWhatDiffers) {
  const auto pool = [](int64_t kernel, DType dtype, bool constant) {
    DagBuilder b;  // the same shapes in and out: only the window differs
    const StageId x = b.placeholder("x", {8}, dtype, constant);
    const StageId y = b.reduce(
        "y",
        {4},
        {kernel},
        Combiner::kMax,
        [&](auto i, auto r) { return b.at(x, {i[0] * 2 + r[0]}); },
        "pool");
    return workload_key(b.finish({y}));
  };
  EXPECT_EQ(pool(2, DType::kFloat32, false), pool(2, DType::kFloat32, false));
  EXPECT_NE(pool(2, DType::kFloat32, false), pool(1, DType::kFloat32, false));
  EXPECT_NE(pool(2, DType::kFloat32, false), pool(2, DType::kFloat16, false));
  EXPECT_NE(pool(2, DType::kFloat32, false), pool(2, DType::kFloat32, true));
}

TEST(CombinerIdentity, IsNeutral) {
  for (const DTypeRow& row : kDTypes) {
    if (row.kind == DTypeKind::kBool || is_only_moved(row.dtype)) continue;
    for (Combiner c : {Combiner::kSum, Combiner::kProd, Combiner::kMax, Combiner::kMin}) {
      const Expr seven = cast(row.dtype, 7);
      EXPECT_TRUE(structural_equal(combine(c, combiner_identity(c, row.dtype), seven), seven));
    }
  }
}

}  // namespace
}  // namespace pruner
