#include "ansor/own_operator.h"

#include "ansor/dag_text.h"
#include "ansor/workloads.h"
#include "golden.h"
#include "space/operator_task.h"

namespace pruner::ansor {
namespace {

std::string text_of(const ComputeDag& dag) {
  const std::optional<OwnOperator> found = own_operator(dag);
  return found ? found->text : "";
}
std::string text_of_key(const std::string& key) {
  return text_of((*registered_workload(*parse_json(key)))[0]);
}

TEST(OwnOperator, OfRegisteredWorkloads) {
  EXPECT_EQ(text_of_key(R"(["matmul_layer", 32, 48, 64])"), "matmul 32 64 48");
  EXPECT_EQ(text_of_key(R"(["batch_matmul_layer", 128, 16, 512, 512, 64])"),
            "batch_matmul 2048 512 64 512");
  EXPECT_EQ(text_of_key(R"(["conv2d_layer", 128, 128, 28, 28, 96, 3, 3, 1, "SAME"])"),
            "conv2d 128 96 28 28 128 3 3 stride=1,1 padding=1,1,1,1");
  EXPECT_EQ(text_of_key(R"(["depthwise_conv2d_layer", 128, 84, 83, 83, 5, 5, 2, "SAME"])"),
            "depthwise_conv2d 128 84 42 42 5 5 stride=2,2 padding=2,2,2,2");
  EXPECT_EQ(text_of_key(R"(["relu_layer", 8, 8])"), "");
}

// Blocks of channels are channels.
TEST(OwnOperator, OfChannelsInBlocks) {
  const std::vector<std::string> lines = {
      "p0 = PLACEHOLDER [1, 2, 10, 10, 8]",
      "data_pad(i0, i1, i2, i3, i4) = tir.if_then_else(((((i2 >= 1) && (i2 < 11)) && (i3 >= 1)) "
      "&& (i3 < 11)), p0[i0, i1, (i2 - 1), (i3 - 1), i4], 0f)",
      "p1 = PLACEHOLDER [4, 2, 3, 3, 8, 8]",
      "conv2d_NCHWc(n, oc_chunk, oh, ow, oc_block) += (data_pad[n, floordiv(ic, 8), ((oh*2) + "
      "kh), ((ow*2) + kw), floormod(ic, 8)]*p1[oc_chunk, floordiv(ic, 8), kh, kw, floormod(ic, "
      "8), oc_block])",
      "p2 = PLACEHOLDER [1, 4, 1, 1, 8]",
      "T_add(ax0, ax1, ax2, ax3, ax4) = (conv2d_NCHWc[ax0, ax1, ax2, ax3, ax4] + p2[ax0, ax1, 0, "
      "0, ax4])",
      "T_relu(ax0, ax1, ax2, ax3, ax4) = max(T_add[ax0, ax1, ax2, ax3, ax4], 0f)"};
  const std::vector<int64_t> output = {1, 4, 5, 5, 8};
  const Result<ComputeDag> dag = dag_from_text(lines, output);
  ASSERT_TRUE(dag.ok()) << dag.error().message();
  const std::optional<OwnOperator> found = own_operator(*dag);
  ASSERT_TRUE(found);
  // The last row and column of the padding are never read at a stride of 2.
  EXPECT_EQ(found->text, "conv2d 1 32 5 5 16 3 3 stride=2,2 padding=0,0,1,1 +bias +relu");
  EXPECT_EQ(found->root, "T_relu");
  const auto axes = [&](AxisRole role) { return found->axes[static_cast<size_t>(role)]; };
  EXPECT_EQ(axes(AxisRole::kRows), std::vector<int>{0});
  EXPECT_EQ(axes(AxisRole::kColumns), (std::vector<int>{1, 4}));
  EXPECT_EQ(axes(AxisRole::kHeight), std::vector<int>{2});
  EXPECT_EQ(axes(AxisRole::kInner).size(), 1u);
}

class OwnOperatorOf : public testing::TestWithParam<const char*> {};

// Ours are found to be what they are: the same work, and each axis of the anchor has its role.
TEST_P(OwnOperatorOf, OursIsItself) {
  const Task task = operator_task(GetParam());
  const std::optional<OwnOperator> found = own_operator(task.dag);
  ASSERT_TRUE(found);
  const Task again = operator_task(found->text);
  EXPECT_EQ(again.key, task.key) << found->text;
}

INSTANTIATE_TEST_SUITE_P(Operators,
                         OwnOperatorOf,
                         testing::Values("matmul 7 13 11",
                                         "matmul 33 49 100 +bias +relu",
                                         "dense 5 19 24",
                                         "batch_matmul 3 9 20 17",
                                         "conv2d 1 16 7 7 8 3 3 padding=1 +bias +relu",
                                         "conv2d 1 64 14 14 64 1 1 +bias +residual +relu",
                                         "depthwise_conv2d 1 24 9 9 3 3 padding=1 +bias +relu",
                                         "depthwise_conv2d 1 16 7 7 5 5 stride=2 padding=2"));

TEST(OwnOperator, IsNoneOfOtherDags) {
  for (const char* text :
       {"softmax 16 16", "layernorm 8 32", "relu 4 4", "conv2d 1 8 5 5 8 3 3 padding=1 groups=2"})
    EXPECT_FALSE(own_operator(operator_task(text).dag)) << text;
}

}  // namespace
}  // namespace pruner::ansor
