// `--op` takes the names of tasks that tables print.
#include "graph/group_name.h"

#include <gtest/gtest.h>

#include "golden.h"
#include "graph/partition.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

std::vector<WeightedTask> tasks_of(const char* network) {
  Result<Graph> graph = build_network(network, {});
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  const Target target = *parse_target("llvm -mcpu=sapphirerapids", 2);
  const Result<Partition> cut = partition(*std::move(graph), target);
  EXPECT_TRUE(cut.ok()) << cut.error().message();
  return extract_tasks(*cut, target);
}

/// How many of the tasks `--op` takes by their names, each as the task that it is.
int taken(const char* network) {
  int count = 0;
  for (const WeightedTask& weighted : tasks_of(network)) {
    const Task& task = weighted.task;
    const Result<ComputeDag> dag = parse_operator(task.name);
    if (!dag.ok()) {
      EXPECT_ERROR(dag, "tune it there: --network NAME or MODEL.onnx, with --tasks REGEX");
      continue;
    }
    EXPECT_EQ(workload_key(*dag), task.key) << network << ": " << task.name;
    ++count;
  }
  return count;
}

TEST(GroupName, IsWhatOpTakesWhereAnOperatorIsTheTask) {
  struct Row {
    const char* network;
    int least;
  };
  for (const Row& row : {Row{"resnet_18", 17},  // all but the global pooling
                         {"mobilenet_v3", 1},
                         {"googlenet", 30},
                         {"dcgan", 3},
                         {"bert_tiny", 1}})
    EXPECT_GE(taken(row.network), row.least) << row.network;
}

TEST(OperatorName, SaysWhatNumbersAreMultiplied) {
  const std::string name = "matmul 8x8 8x8 +relu";
  const std::string key = workload_key(*parse_operator("matmul 8 8 8 bits=16 exponent=8 +relu"));
  EXPECT_EQ(operator_name(name, key), "matmul 8x8 8x8 bits=16 exponent=8 +relu");
}

TEST(OperatorName, MarksWhatOpWouldTakeForAnotherTask) {
  const std::string name = "conv2d 1x8x8x4 3x3 s1 p1 -> 8 +bias";
  const std::string key = workload_key(*parse_operator(name));
  EXPECT_EQ(operator_name(name, key), name);
  EXPECT_EQ(operator_name(name, "another"), name + " ...");
  EXPECT_EQ(operator_name("mul+conv2d 1x8x8x4 3x3 s1 -> 8", "another"),
            "mul+conv2d 1x8x8x4 3x3 s1 -> 8");
  EXPECT_FALSE(parse_operator(name + " ...").ok());
}

}  // namespace
}  // namespace pruner
