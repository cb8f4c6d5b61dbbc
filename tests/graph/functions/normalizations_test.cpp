#include "graph/small_graph.h"

namespace pruner {
namespace {

using V = std::vector<double>;

TEST(GroupNormalization, NormalizesEachGroupAndScalesEachChannel) {
  const Tensor x = floats({1, 4, 2}, {1, 3, 5, 7, 0, 0, 0, 4});
  const Tensor scale = floats({4}, {1, 2, 3, 4}), bias = floats({4}, {0, 0, 1, 0});
  const double a = std::sqrt(5 + 1e-5), b = std::sqrt(3 + 1e-5);  // deviations of the groups
  expect_near(
      run_op("GroupNormalization", {x, scale, bias}, {{"num_groups", int64_t{2}}}),
      floats({1, 4, 2}, {-3 / a, -1 / a, 2 / a, 6 / a, 1 - 3 / b, 1 - 3 / b, -4 / b, 12 / b}));
}

TEST(RmsNormalization, DividesByTheRootOfTheMeanSquare) {
  const double rms = std::sqrt(12.5 + 1e-5);
  expect_near(run_op("RMSNormalization", {floats({1, 2}, {3, 4}), floats({2}, {1, 10})}),
              floats({1, 2}, {3 / rms, 40 / rms}));
}

TEST(LpNormalization, LeavesZerosAsTheyAre) {
  const Tensor x = floats({2, 2}, {3, -4, 0, 0});
  expect_near(run_op("LpNormalization", {x}), floats({2, 2}, {0.6, -0.8, 0, 0}));
  expect_near(run_op("LpNormalization", {x}, {{"p", int64_t{1}}}),
              floats({2, 2}, {3.0 / 7, -4.0 / 7, 0, 0}));
}

TEST(BatchNormalization, TrainsWithTheStatisticsOfItsData) {
  NetworkBuilder b("train");
  const Tensor data = floats({2, 2, 1}, {1, 10, 3, 30});
  const ValueId x = b.input("x", {2, 2, 1}, DType::kFloat32);
  Graph graph = b.finish({{x, "y"}});
  graph.nodes.clear();
  Node node{kTrainingBatchNormalization, "it", {x}, {}, {{"epsilon", 0.0}, {"momentum", 0.75}}};
  for (const V& values : {V{2, 1}, V{0, 5}, V{4, 0}, V{1, 2}}) {
    const Tensor t = floats({2}, values);
    graph.values.push_back({"w", t.dtype(), t.shape(), t});
    node.inputs.push_back(ValueId{static_cast<int32_t>(graph.values.size()) - 1});
  }
  for (const char* name : {"y", "mean", "variance"}) {
    graph.values.push_back({name, {}, {}, std::nullopt});
    node.outputs.push_back(ValueId{static_cast<int32_t>(graph.values.size()) - 1});
  }
  graph.outputs = node.outputs;
  ASSERT_TRUE(append_call(graph, node).ok());
  const std::vector<Tensor> found = run_graph(graph, {data});
  expect_near(found[0], floats({2, 2, 1}, {-2, 4, 2, 6}));
  expect_near(found[1], floats({2}, {3.5, 5}));   // means are 2 and 20
  expect_near(found[2], floats({2}, {1, 26.5}));  // variances are 1 and 100
}

TEST(MeanVarianceNormalization, IsOverBatchAndSpaceUnlessTold) {
  const Tensor x = floats({2, 1, 1, 1}, {1, 3});
  expect_near(run_op("MeanVarianceNormalization", {x}), floats({2, 1, 1, 1}, {-1, 1}));
}

TEST(ReduceLogSumExp, KeepsItsDigitsWhereExponentialsOverflow) {
  const Tensor x = floats({2, 2}, {1000, 1000, -1000, 0});
  expect_near(run_op("ReduceLogSumExp", {x, Ints{1}}, {{"keepdims", int64_t{0}}}),
              floats({2}, {1000 + std::log(2), 0}));
}

TEST(SimplifiedLayerNormalization, IsRmsNormalizationOfOnnxRuntime) {
  const Tensor x = floats({1, 2}, {3, 4}), scale = floats({2}, {1, 10});
  expect_near(run_op("SimplifiedLayerNormalization", {x, scale}),
              run_op("RMSNormalization", {x, scale}));
}

TEST(SkipLayerNormalization, NormalizesTheSumThatItHandsOn) {
  const Tensor x = floats({1, 1, 2}, {1, 2}), skip = floats({1, 2}, {10, 20});
  const Tensor scale = floats({2}, {1, 2}), shift = floats({2}, {0, 3}), bias = floats({2}, {0, 1});
  const Tensor sum = floats({1, 1, 2}, {11, 23});
  // Two numbers are -1 and 1 about their mean.
  expect_near(run_op("com.microsoft::SkipLayerNormalization", {x, skip, scale, shift, bias}),
              floats({1, 1, 2}, {-1, 5}));
  const double rms = std::sqrt((121 + 529) / 2.0);
  expect_near(run_op("com.microsoft::SkipSimplifiedLayerNormalization", {x, skip, scale, bias}),
              floats({1, 1, 2}, {11 / rms, 2 * 23 / rms}));
}

TEST(EmbedLayerNormalization, SumsEmbeddingsAndCountsWords) {
  const Tensor ids = integers({1, 2}, {1, 0}, DType::kInt32),
               kinds = integers({1, 2}, {0, 1}, DType::kInt32);
  const Tensor words = floats({2, 2}, {1, 2, 3, 4}),
               places = floats({3, 2}, {10, 20, 30, 40, 50, 60});
  const Tensor segments = floats({2, 2}, {100, 200, 300, 400}), one = floats({2}, {1, 1}),
               zero = floats({2}, {0, 0});
  const Tensor mask = integers({1, 2}, {1, 0}, DType::kInt32);
  const std::vector<Tensor> found =
      run_outputs("com.microsoft::EmbedLayerNormalization",
                  {ids, kinds, words, places, segments, one, zero, mask},
                  3);
  expect_near(found[0], floats({1, 2, 2}, {-1, 1, -1, 1}));
  EXPECT_EQ(values_of(found[1]), V{1});
  EXPECT_EQ(values_of(found[2]), (V{113, 224, 331, 442}));
}

}  // namespace
}  // namespace pruner
