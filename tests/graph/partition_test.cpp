#include "graph/partition.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "golden.h"
#include "graph/small_graph.h"
#include "support/json.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

// One whose L2 holds every layer, as 40 cores' does: the reference fuses no two convolutions.
Target large_machine() {
  Target target;
  target.l2_bytes = 40 << 20;
  return target;
}

Partition partition_of(const char* network) {
  return *partition(*build_network(network, {}), large_machine());
}

std::vector<WeightedTask> tasks_of(const char* network) {
  return extract_tasks(partition_of(network), large_machine());
}

struct Row {
  int weight;
  const char* name;
  double mflop;  // 0: the reference gives no number, or Winograd's
};

// `kResnet50` holds the tasks that Ansor extracts from resnet_50.
constexpr Row kResnet50[] = {
    {1, "dense 1x2048 -> 1000 +bias", 4.10},
    {1, "global_avg_pool 1x7x7x2048", 0},
    {3, "conv2d 1x7x7x512 1x1 s1 -> 2048 +bias +residual +relu", 103.06},
    {2, "conv2d 1x7x7x512 3x3 s1 p1 -> 512 +bias +relu", 0},
    {2, "conv2d 1x7x7x2048 1x1 s1 -> 512 +bias +relu", 102.81},
    {1, "conv2d 1x14x14x512 3x3 s2 p1 -> 512 +bias +relu", 231.26},
    {1, "conv2d 1x14x14x1024 1x1 s1 -> 512 +bias +relu", 205.72},
    {6, "conv2d 1x14x14x256 1x1 s1 -> 1024 +bias +residual +relu", 103.36},
    {5, "conv2d 1x14x14x256 3x3 s1 p1 -> 256 +bias +relu", 0},
    {5, "conv2d 1x14x14x1024 1x1 s1 -> 256 +bias +relu", 102.86},
    {1, "conv2d 1x28x28x256 3x3 s2 p1 -> 256 +bias +relu", 231.31},
    {1, "conv2d 1x28x28x512 1x1 s1 -> 256 +bias +relu", 205.92},
    {4, "conv2d 1x28x28x128 1x1 s1 -> 512 +bias +residual +relu", 103.96},
    {3, "conv2d 1x28x28x128 3x3 s1 p1 -> 128 +bias +relu", 0},
    {3, "conv2d 1x28x28x512 1x1 s1 -> 128 +bias +relu", 102.96},
    {1, "conv2d 1x56x56x128 3x3 s2 p1 -> 128 +bias +relu", 231.41},
    {1, "conv2d 1x56x56x256 1x1 s1 -> 128 +bias +relu", 206.32},
    {3, "conv2d 1x56x56x64 1x1 s1 -> 256 +bias +residual +relu", 105.17},
    {3, "conv2d 1x56x56x64 3x3 s1 p1 -> 64 +bias +relu", 0},
    {2, "conv2d 1x56x56x256 1x1 s1 -> 64 +bias +relu", 103.16},
    {1, "conv2d 1x56x56x64 1x1 s1 -> 64 +bias +relu", 26.09},
    {1, "max_pool2d 1x112x112x64 3x3 s2 p1", 1.81},
    {1, "conv2d 1x224x224x3 7x7 s2 p3 -> 64 +bias +relu", 237.63},
    {1, "conv2d 1x56x56x64 1x1 s1 -> 256 +bias", 103.56},
    {1, "conv2d 1x56x56x256 1x1 s2 -> 512 +bias", 205.92},
    {1, "conv2d 1x28x28x512 1x1 s2 -> 1024 +bias", 205.72},
    {1, "conv2d 1x14x14x1024 1x1 s2 -> 2048 +bias", 205.62},
};

TEST(ExtractTasks, Resnet50HasTheReferences27) {
  const std::vector<WeightedTask> tasks = tasks_of("resnet_50");
  ASSERT_EQ(tasks.size(), std::size(kResnet50));
  for (size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_EQ(tasks[i].weight, kResnet50[i].weight) << i;
    EXPECT_EQ(tasks[i].task.name, kResnet50[i].name) << i;
    if (kResnet50[i].mflop == 0) continue;
    EXPECT_NEAR(tasks[i].task.flops / 1e6, kResnet50[i].mflop, 0.006) << i;
  }
}

struct TensetTask {
  int weight;
  bool winograd;
  Ints extents;  // extents of inputs and output in the key's order, but sorted: an Add may be
                 // turned round
};

Ints sorted_extents(const Json& key) {
  Ints extents(key.begin() + 1, key.end());
  std::sort(extents.begin(), extents.end());
  return extents;
}

std::vector<TensetTask> tenset_tasks(const std::string& network) {
  std::vector<TensetTask> tasks;
  std::ifstream file(PRUNER_SHARED_DATA "/tenset-tasks/tasks.jsonl");
  for (std::string line; std::getline(file, line);) {
    const Json row = *parse_json(line);
    if (row["network"] != network || row["target_kind"] != "llvm") continue;
    const Json key = *parse_json(row["workload_key"].get<std::string>());
    const bool winograd = line.find("bgemm") != std::string::npos;
    tasks.push_back({row["weight"].get<int>(), winograd, sorted_extents(key)});
  }
  return tasks;
}

TEST(ExtractTasks, AgreesWithTenset) {
  if (tenset_tasks("resnet_50").empty()) GTEST_SKIP() << "no TenSet tasks beside the repository";
  for (const char* network :
       {"mobilenet_v2", "resnet_18", "resnet_50", "resnext_50", "wide_resnet_50"}) {
    const std::vector<TensetTask> expected = tenset_tasks(network);
    const std::vector<WeightedTask> tasks = tasks_of(network);
    ASSERT_EQ(tasks.size(), expected.size()) << network;
    for (size_t i = 0; i < tasks.size(); ++i) {
      EXPECT_EQ(tasks[i].weight, expected[i].weight) << network << " " << i;
      if (expected[i].winograd) continue;  // its weight is stored transformed
      EXPECT_EQ(sorted_extents(*parse_json(tasks[i].task.key)), expected[i].extents)
          << network << " " << i;
    }
  }
}

// Branches that meet in a Concat are walked in another order.
TEST(ExtractTasks, AgreesWithTensetInInceptionButForTheOrder) {
  std::vector<std::pair<int, Ints>> expected, found;
  for (TensetTask t : tenset_tasks("inception_v3")) {
    if (t.winograd)
      std::replace(
          t.extents.begin(), t.extents.end(), int64_t{6}, int64_t{3});  // a 3x3 transformed
    std::sort(t.extents.begin(), t.extents.end());
    expected.emplace_back(t.weight, std::move(t.extents));
  }
  if (expected.empty()) GTEST_SKIP() << "no TenSet tasks beside the repository";
  for (const WeightedTask& t : tasks_of("inception_v3")) {
    found.emplace_back(t.weight, sorted_extents(*parse_json(t.task.key)));
  }
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
}

// TenSet has 10 tasks, weights 69. A layer norm is one task of 13 here; TenSet has a mean and a
// variance of 13 each. Attention is one task of 6; TenSet has two products and a softmax.
TEST(ExtractTasks, BertTinyDiffersFromTensetInItsLayerNormsAndAttention) {
  std::vector<std::pair<int, std::string>> found;
  for (const WeightedTask& t : tasks_of("bert_tiny")) found.emplace_back(t.weight, t.task.name);
  const std::vector<std::pair<int, std::string>> expected = {
      {13, "layernorm 1x128x512 ..."},
      {6, "matmul 1x128x2048 2048x512 +bias +residual"},
      {6, "matmul 1x128x512 512x2048 +bias +mul +erf +add +mul +mul"},
      {6, "matmul 1x128x512 512x512 +bias +residual"},
      {6, "attention 1x128x8x64 of 128 keys"},
      {6, "matmul 1x128x512 512x1536 +bias"},
      {1, "dense 1x512 -> 512 +bias +tanh"}};
  EXPECT_EQ(found, expected);
}

TEST(Partition, GroupsRunInOrderAndHaveOneOutput) {
  for (const char* network : {"bert_tiny",
                              "dcgan",
                              "densenet_121",
                              "efficientnet_b0",
                              "googlenet",
                              "mobilebert",
                              "mobilenet_v3",
                              "resnet_18",
                              "swin_t",
                              "unet"}) {
    const Partition p = partition_of(network);
    std::set<ValueId> ready(p.inputs.begin(), p.inputs.end());
    const std::function<bool(ValueId)> is_ready = [&](ValueId id) {
      if (p[id].alias_of.valid()) id = p[id].alias_of;
      const std::vector<ValueId>& joined = p[id].joined;
      return joined.empty() ? ready.contains(id) : std::ranges::all_of(joined, is_ready);
    };
    for (const Group& group : p.groups) {
      const std::vector<StageId> placeholders = group.dag.inputs();
      ASSERT_EQ(placeholders.size(), group.inputs.size()) << group.name;
      for (size_t i = 0; i < group.inputs.size(); ++i) {
        const ValueId id = group.inputs[i];
        const Stage& stage = group.dag[placeholders[i]];
        EXPECT_EQ(stage.shape(), p[id].shape) << group.name;
        EXPECT_EQ(stage.constant, p[id].constant.has_value()) << group.name;
        EXPECT_TRUE(stage.constant || is_ready(id)) << group.name;
      }
      ASSERT_EQ(group.dag.outputs().size(), 1u) << group.name;
      EXPECT_EQ(group.dag[group.dag.outputs()[0]].shape(), p[group.output].shape) << group.name;
      ready.insert(group.output);
    }
    for (const ValueId id : p.outputs) EXPECT_TRUE(ready.contains(id)) << p[id].name;
  }
}

TEST(Partition, ConstantWeightsMayBeRepacked) {
  const Partition p = partition_of("resnet_18");
  for (const Group& group : p.groups) {
    if (!group.name.starts_with("conv2d") && !group.name.starts_with("dense")) continue;
    std::vector<StageId> repacked;
    for (const Stage& stage : group.dag.stages) {
      repacked.insert(repacked.end(), stage.layout_free.begin(), stage.layout_free.end());
    }
    EXPECT_EQ(repacked, std::vector{group.dag.inputs()[1]}) << group.name;
  }
}

TEST(Partition, ReshapesAreViewsOfOtherBytes) {
  const Partition p = partition_of("resnet_18");
  const Group& dense = p.groups.back();
  const PlannedValue& flat = p[dense.inputs[0]];
  EXPECT_EQ(flat.shape, (Ints{1, 512}));
  ASSERT_TRUE(flat.alias_of.valid());
  EXPECT_EQ(p[flat.alias_of].shape, (Ints{1, 1, 1, 512}));
  EXPECT_EQ(p[p.inputs[0]].shape, (Ints{1, 3, 224, 224}));
}

TEST(Partition, APaddedConvolutionHasItsPadInside) {
  const std::vector<WeightedTask> tasks = tasks_of("resnet_18");
  const ComputeDag& padded = tasks[2].task.dag;
  EXPECT_EQ(padded[StageId{2}].name, "PaddedInput");
  EXPECT_EQ(padded.inputs().size(), 4u);         // data, weight, bias, residual
  const ComputeDag& plain = tasks[15].task.dag;  // 1x1: nothing to pad
  for (const Stage& stage : plain.stages) EXPECT_NE(stage.name, "PaddedInput");
}

// Records of `--op` serve a network's task of the same key.
TEST(Partition, KeysAreThoseOfTheSameOperatorText) {
  const std::vector<WeightedTask> tasks = tasks_of("resnet_18");
  const std::pair<size_t, const char*> same[] = {
      {0, "dense 1 1000 512 +bias"},
      {11, "conv2d 1 64 56 56 64 3 3 padding=1 +bias +residual +relu"},
      {12, "conv2d 1 64 56 56 64 3 3 padding=1 +bias +relu"}};
  for (const auto& [i, text] : same) {
    const Result<ComputeDag> dag = parse_operator(text);
    ASSERT_TRUE(dag.ok()) << dag.error().message();
    EXPECT_EQ(print(tasks[i].task.dag), print(*dag)) << text;
    EXPECT_EQ(tasks[i].task.key, workload_key(*dag)) << text;
  }
}

TEST(Partition, AnIndexKnowsItsBound) {
  const Partition p = partition_of("bert_tiny");
  const Group& embedding = p.groups.front();
  for (const StageId id : embedding.dag.inputs()) {
    const Stage& stage = embedding.dag[id];
    EXPECT_EQ(stage.index_bound, is_float(stage.dtype) ? 0 : 30522) << stage.name;
  }
}

}  // namespace
}  // namespace pruner
