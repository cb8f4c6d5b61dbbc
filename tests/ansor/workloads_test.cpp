#include "ansor/workloads.h"

#include "golden.h"

namespace pruner::ansor {
namespace {

Result<std::vector<ComputeDag>> dags(const std::string& key) {
  return registered_workload(*parse_json(key));
}

// Stages, FLOPs and output shape of the likeliest DAG.
void expect_dag(const std::string& key, int stages, double flops, std::vector<int64_t> shape) {
  const auto made = dags(key);
  ASSERT_TRUE(made.ok()) << made.error().message();
  const ComputeDag& dag = (*made)[0];
  EXPECT_EQ(dag.size(), stages) << key;
  EXPECT_EQ(flop_count(dag), flops) << key;
  EXPECT_EQ(dag.stages.back().shape(), shape) << key;
}

TEST(RegisteredWorkload, BuildsWhatTheFunctionComputes) {
  expect_dag(R"(["matmul_layer", 8, 16, 32])", 3, 2. * 8 * 16 * 32, {8, 32});
  expect_dag(R"(["matmul", 8, 16, 32, "float32"])", 3, 2. * 8 * 16 * 32, {8, 32});
  expect_dag(R"(["matmul_add", 8, 8, 8, "float32"])", 5, 2. * 512 + 64, {8, 8});
  expect_dag(R"(["batch_matmul_layer", 2, 3, 4, 5, 6])", 3, 2. * 6 * 4 * 5 * 6, {6, 4, 6});
  expect_dag(R"(["conv2d_layer", 1, 3, 8, 8, 4, 3, 3, 2, "SAME"])", 4, 2. * 64 * 27, {1, 4, 4, 4});
  expect_dag(
      R"(["conv2d_layer", 1, 3, 8, 8, 4, 3, 3, 1, "VALID"])", 4, 2. * 144 * 27, {1, 4, 6, 6});
  expect_dag(R"(["conv2d_ansor", [1, 3, 8, 8], [4, 3, 3, 3]])", 4, 2. * 256 * 27, {1, 4, 8, 8});
  expect_dag(R"(["depthwise_conv2d_layer", 1, 6, 9, 9, 5, 5, 2, "SAME"])",
             4,
             2. * 6 * 25 * 25,
             {1, 6, 5, 5});
  expect_dag(R"(["pool_layer", "max", 1, 2, 8, 8, 3, 3, 2, "SAME"])", 3, 288, {1, 2, 4, 4});
  EXPECT_EQ((*dags(R"(["pool_layer", "avg", 1, 2, 8, 8, 1, 1, 2, "VALID"])"))[0].size(), 3);
  EXPECT_EQ((*dags(R"(["ansor_pool2d", [1, 2, 9, 9], "float32"])"))[0].size(), 3);
  expect_dag(R"(["reduction_layer", [4, 6, 5], [1, 2], false])", 2, 120, {4});
  expect_dag(R"(["reduction_layer", [4, 6], -1, true])", 2, 24, {4, 1});
  EXPECT_EQ((*dags(R"(["relu_layer", 2, 3, 4])"))[0].stages.back().shape().size(), 3u);
}

TEST(RegisteredWorkload, GivesTheEpiloguesThatShareAName) {
  std::vector<int> sizes;
  const auto made = dags(R"(["conv2d_layer", 1, 3, 8, 8, 4, 3, 3, 1, 1])");
  for (const ComputeDag& dag : *made) sizes.push_back(dag.size());
  EXPECT_EQ(sizes, (std::vector<int>{4, 5, 6, 7, 7, 7}));
}

TEST(RegisteredWorkload, NamesTheArgumentThatDoesNotFit) {
  EXPECT_ERROR(dags("[]"), "the workload key names no function");
  EXPECT_ERROR(dags("7"), "the workload key names no function");
  EXPECT_ERROR(dags(R"(["sparse_dense", 3])"), "no registered function \"sparse_dense\"");
  EXPECT_ERROR(dags(R"(["matmul_layer", 8, 16])"), "matmul_layer: argument 3 is missing");
  EXPECT_ERROR(dags(R"(["matmul_layer", 8, 16, "x"])"), "argument 3 is no whole number");
  EXPECT_ERROR(dags(R"(["matmul_layer", 8, -1, 4])"), "argument 2 is no extent");
  EXPECT_ERROR(dags(R"(["matmul_layer", 8, 1, 4, "float32", 5])"), "more arguments than it takes");
  EXPECT_ERROR(dags(R"(["matmul_layer", 8, 1, 4, "float33"])"), "argument 4 is no type");
  EXPECT_ERROR(dags(R"(["conv2d_layer", 1, 3, 2, 2, 4, 5, 5, 1, "VALID"])"), "no room");
  EXPECT_ERROR(dags(R"(["conv2d_layer", 1, 3, 2, 2, 4, 3, 3, 0, 1])"), "is no stride");
  EXPECT_ERROR(dags(R"(["conv2d_layer", 1, 3, 2, 2, 4, 3, 3, 1, -1])"), "is no padding");
  EXPECT_ERROR(dags(R"(["conv2d_layer", 1, 3, 2, 2, 4, 3, 3, [], [1, 2, 3]])"), "neither a number");
  EXPECT_ERROR(dags(R"(["conv2d_ansor", [1, 3, 8], [4, 3, 3, 3]])"), "is no weight of the data");
  EXPECT_ERROR(dags(R"(["pool_layer", "min", 1, 2, 8, 8, 3, 3, 2, 1])"), "neither max nor avg");
  EXPECT_ERROR(dags(R"(["reduction_layer", [4, 6], 2, true])"), "an axis that the data have not");
  EXPECT_ERROR(dags(R"(["reduction_layer", [4, 6], [1, 1], true])"), "no axes, or one twice");
  EXPECT_ERROR(dags(R"(["relu_layer"])"), "is missing");
  EXPECT_ERROR(dags(R"(["relu_layer", 900000000, 900000000])"), "over 1e12 elements");
}

}  // namespace
}  // namespace pruner::ansor
