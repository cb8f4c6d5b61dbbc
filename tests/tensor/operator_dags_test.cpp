#include "tensor/operator_dags.h"

#include <gtest/gtest.h>

#include "naive.h"

namespace pruner {
namespace {

TEST(MatmulDag, TransposesAndBroadcasts) {
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      constexpr int64_t m = 3, n = 4, k = 5;
      DagBuilder b;
      const StageId x = b.placeholder(
          "x", ta ? std::vector<int64_t>{2, 1, k, m} : std::vector<int64_t>{2, 1, m, k});
      const StageId w =
          b.placeholder("w", tb ? std::vector<int64_t>{6, n, k} : std::vector<int64_t>{6, k, n});
      const ComputeDag dag = b.finish({add_matmul(b, x, w, ta, tb)});
      Rng rng(4);
      const std::vector<Tensor> in = random_inputs(dag, rng);
      const Tensor out = interpret(dag, in)[0];
      ASSERT_EQ(out.shape(), (std::vector<int64_t>{2, 6, m, n}));
      int64_t position = 0;
      for (int64_t p = 0; p < 2; ++p)
        for (int64_t q = 0; q < 6; ++q)
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j, ++position) {
              double sum = 0;
              for (int64_t r = 0; r < k; ++r) {
                sum += in[0].get(p * m * k + (ta ? r * m + i : i * k + r)) *
                       in[1].get(q * n * k + (tb ? j * k + r : r * n + j));
              }
              ASSERT_NEAR(out.get(position), sum, 1e-6);
            }
    }
}

TEST(MatmulDag, FreesTheLayoutOfAConstantOnly) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {3, 5});
  const StageId w = b.placeholder("w", {5, 4}, DType::kFloat32, true);
  EXPECT_EQ(b.stage(add_matmul(b, x, w)).layout_free, std::vector<StageId>{w});
  EXPECT_TRUE(b.stage(add_matmul(b, w, x, true, true)).layout_free.empty());
}

TEST(DenseDag, KeepsLeadingDims) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {2, 3, 5}), w = b.placeholder("w", {4, 5});
  EXPECT_EQ(b.shape(add_dense(b, x, w)), (std::vector<int64_t>{2, 3, 4}));
}

TEST(ElementwiseDag, BroadcastsAsNumpy) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {2, 1, 3}), y = b.placeholder("y", {4, 1});
  const StageId sum = add_add(b, x, y);
  EXPECT_EQ(b.shape(sum), (std::vector<int64_t>{2, 4, 3}));
  EXPECT_EQ(b.stage(sum).tag, "broadcast");
  EXPECT_EQ(print(b.stage(sum).body, [&](StageId id) { return b.stage(id).name; }),
            "(x[ax0, 0, ax2] + y[ax1, 0])");
}

TEST(ElementwiseDagDeathTest, ChecksThatShapesMeet) {
  DagBuilder b;
  const StageId x = b.placeholder("x", {2}), y = b.placeholder("y", {3});
  EXPECT_DEATH(add_add(b, x, y), "2 against 3");
}

}  // namespace
}  // namespace pruner
