#include "space/gpu/kernels.h"

#include "space/gpu/gpu_task.h"

namespace pruner {
namespace {

// "stage structure root" of each compute stage.
std::vector<std::string> divided(const ComputeDag& dag, const std::vector<std::string>& crossing) {
  const Kernels kernels = make_kernels(dag, crossing, gpu_target().gpu);
  EXPECT_TRUE(kernels.agree);
  std::vector<std::string> lines;
  for (int s = 0; s < kernels.dag.size(); ++s) {
    const Stage& stage = kernels.dag[StageId{s}];
    if (stage.is_placeholder()) continue;
    const KernelStage& kernel = kernels.stages[StageId{s}];
    lines.push_back(stage.name + " " + kernel.structure->name + " " +
                    kernels.dag[kernel.root].name);
  }
  return lines;
}

std::vector<std::string> divided(const std::string& op, const std::vector<std::string>& crossing) {
  return divided(gpu_task(op).dag, crossing);
}

using Lines = std::vector<std::string>;

TEST(MakeKernels, FetchesOperandsOfAProductAndWritesItsResult) {
  EXPECT_EQ(divided("matmul 64 64 64", {}),
            (Lines{"A.shared fetch T_matmul_NN",
                   "B.shared fetch T_matmul_NN",
                   "T_matmul_NN.local block-tile T_matmul_NN",
                   "T_matmul_NN block-tile T_matmul_NN"}));
}

TEST(MakeKernels, InlinesPaddingAndLetsTheEpilogueWriteTheResult) {
  const Lines lines = divided("conv2d 1 16 7 7 16 3 3 padding=1 +bias +relu", {});
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(lines[0].ends_with(".shared fetch T_relu")) << lines[0];
  EXPECT_TRUE(lines[1].ends_with(".shared fetch T_relu")) << lines[1];
  EXPECT_TRUE(lines[2].ends_with(" block-tile T_relu")) << lines[2];
  EXPECT_EQ(lines[3], "T_relu block-tile T_relu");
}

TEST(MakeKernels, HoldsWhatATileOfATransformReads) {
  ComputeDag dag = gpu_task("conv2d 1 16 7 7 16 3 3 padding=1 +bias +relu").dag;
  ASSERT_TRUE(kWinograd4.apply(dag, gpu_target()));
  EXPECT_EQ(divided(dag, {}),
            (Lines{"winograd_data_tile thread-transform winograd_data",
                   "winograd_rows thread-transform winograd_data",
                   "winograd_data thread-transform winograd_data",
                   "weight.shared fetch winograd_product",
                   "winograd_data.shared fetch winograd_product",
                   "winograd_product.local block-tile winograd_product",
                   "winograd_product block-tile winograd_product",
                   "winograd_product_tile thread-transform T_relu",
                   "winograd_sums thread-transform T_relu",
                   "T_relu thread-transform T_relu"}));
}

TEST(MakeKernels, PutsReductionsOfARowWithTheStageThatReadsThem) {
  EXPECT_EQ(divided("softmax 6 64", {"T_softmax_maxelem", "T_softmax_expsum"}),
            (Lines{"T_softmax_maxelem rows T_softmax_norm",
                   "T_softmax_expsum rows T_softmax_norm",
                   "T_softmax_norm rows T_softmax_norm"}));
  EXPECT_EQ(divided("softmax 6 64", {}),
            (Lines{"T_softmax_maxelem elements T_softmax_maxelem",
                   "T_softmax_expsum elements T_softmax_expsum",
                   "T_softmax_norm elements T_softmax_norm"}));
}

TEST(MakeKernels, SumsAWindowInTheThreadOfItsElement) {
  EXPECT_EQ(divided("avg_pool2d 1 32 4 4 2 2 stride=2", {}),
            (Lines{"tensor elements tensor_1", "tensor_1 elements tensor_1"}));
}

TEST(CrossThreadReductions, AreLongRowsAndLongProductsOfFewElements) {
  const auto names = [](const std::string& op) {
    const Task task = gpu_task(op);
    return cross_thread_reductions(task.dag, task.target.gpu);
  };
  EXPECT_EQ(names("softmax 6 64"), (Lines{"T_softmax_maxelem", "T_softmax_expsum"}));
  EXPECT_EQ(names("softmax 6 32"), Lines{});
  EXPECT_EQ(names("matmul 8 8 1024"), Lines{"T_matmul_NN"});
  EXPECT_EQ(names("matmul 64 64 1024"), Lines{});
}

}  // namespace
}  // namespace pruner
