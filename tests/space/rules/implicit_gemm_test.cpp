#include <gtest/gtest.h>

#include "space/operator_task.h"
#include "space/rules/form_check.h"
#include "space/sketch_rule.h"
#include "tensor/transform.h"

namespace pruner {
namespace {

Task a100_task(const std::string& op) {
  return operator_task(op, *parse_target("cuda --arch=sm_80", 0));
}

bool has_form(const std::string& op) {
  const Task task = a100_task(op);
  ComputeDag dag = task.dag;
  return kImplicitGemm.apply(dag, task.target);
}

TEST(ImplicitGemm, IsForProductsOfNarrowNumbersThatAreNoMatrices) {
  EXPECT_TRUE(has_form("conv2d 1 16 7 7 8 3 3 padding=1 bits=16"));
  EXPECT_TRUE(has_form("conv2d 1 16 7 7 8 1 1 bits=8"));
  EXPECT_FALSE(has_form("matmul 20 28 24 bits=16")) << "it is one";
  EXPECT_FALSE(has_form("conv2d 1 16 7 7 8 3 3 padding=1")) << "float32";
  EXPECT_FALSE(has_form("conv2d 1 16 7 7 8 3 3 padding=1 groups=2 bits=16"))
      << "both operands move by the channels";
  EXPECT_FALSE(has_form("conv2d_nchw 2 16 7 7 8 3 3 bits=16")) << "images around the channels";
  EXPECT_FALSE(has_form("depthwise_conv2d 1 24 9 9 3 3 padding=1")) << "no product of matrices";
  EXPECT_FALSE(has_form("conv2d 1 8 8 12 40 3 3 padding=1 bits=16 +max_pool2d=2"))
      << "windows read the products";
  const Task cpu = operator_task("conv2d 1 16 7 7 8 3 3 padding=1 bits=16");
  ComputeDag dag = cpu.dag;
  EXPECT_FALSE(kImplicitGemm.apply(dag, cpu.target));
}

TEST(ImplicitGemm, FusesRowsColumnsAndTerms) {
  const Task task = a100_task("conv2d 2 20 9 5 12 3 3 stride=2 padding=1 bits=16 +bias");
  ComputeDag dag = task.dag;
  ASSERT_TRUE(kImplicitGemm.apply(dag, task.target));
  for (const Stage& stage : dag.stages) {
    if (!stage.is_reduction()) continue;
    EXPECT_EQ(stage.shape(), (std::vector<int64_t>{2 * 9 * 5, 20}));
    EXPECT_EQ(stage.reduce_size(), 3 * 3 * 12);
  }
}

// ldmatrix transposes elements of 16 bits alone.
TEST(ImplicitGemm, LaysOutWeightsOfBytesByTheirTerms) {
  const auto weight_of = [](const char* op) {
    const Task task = a100_task(op);
    ComputeDag dag = task.dag;
    EXPECT_TRUE(kImplicitGemm.apply(dag, task.target));
    for (const Stage& stage : dag.stages)
      if (stage.constant && stage.name == "weight")
        return std::pair(stage.transform, stage.shape());
    return std::pair(Transform::kNone, std::vector<int64_t>{});
  };
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(weight_of("conv2d 1 16 7 7 8 3 3 bits=8"),
            std::pair(Transform::kLastFirst, Shape{16, 3, 3, 8}));
  EXPECT_EQ(weight_of("conv2d 1 16 7 7 8 3 3 bits=16"),
            std::pair(Transform::kNone, Shape{3, 3, 8, 16}));
}

class ImplicitGemmDag : public testing::TestWithParam<const char*> {};

TEST_P(ImplicitGemmDag, ComputesWhatTheTaskDoes) {
  expect_form_computes(kImplicitGemm, a100_task(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(
    Forms,
    ImplicitGemmDag,
    testing::Values("conv2d 1 16 7 7 8 3 3 padding=1 bits=16 +bias +relu",
                    "conv2d 2 20 9 5 3 3 3 stride=2 padding=1 bits=16 +bias +residual",
                    "conv2d_nchw 1 13 9 7 10 3 3 stride=2 padding=1 bits=16 +bias",
                    "conv3d 1 20 3 5 6 7 3 3 3 padding=1 bits=16",
                    "conv2d 1 3 12 12 8 7 7 stride=2 padding=3 bits=8"));

}  // namespace
}  // namespace pruner
