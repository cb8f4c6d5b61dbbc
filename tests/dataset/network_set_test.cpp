#include "dataset/network_set.h"

#include <algorithm>

#include "ansor/workload_table.h"
#include "golden.h"
#include "graph/partition.h"
#include "own_path.h"

namespace pruner {
namespace {

Record record_of(const std::string& key) {
  Record record;
  record.workload_key = key;
  return record;
}

std::string task_line(const std::string& network,
                      const std::string& shape,
                      const std::string& key) {
  return R"({"network": ")" + network + R"(", "input_shape": )" + shape + R"(, "workload_key": )" +
         print_json(Json(key)) + R"(, "dag": []})" + "\n";
}

struct NetworkSetTest : testing::Test {
  ~NetworkSetTest() override { std::filesystem::remove(path); }
  const std::string path = own_path("tasks.jsonl");
};

TEST_F(NetworkSetTest, HasTenSetsSets) {
  EXPECT_EQ(network_set("all_five")->size(), 6u);
  EXPECT_EQ(network_set("resnet-50")->size(), 9u);
  EXPECT_EQ(network_set("batch-size-1")->size(), 40u);
  EXPECT_EQ(network_set("bert_tiny,dcgan")->size(), 2u);
  EXPECT_ERROR(network_set("all_six"), "\"all_six\" is no set of networks: all_five, resnet-50");
}

TEST_F(NetworkSetTest, HoldsTasksThatAFileSaysAreTheNetworks) {
  const std::string key = R"(["0123456789abcdef0123456789abcdef", 1, 8, 8, 1])";
  ASSERT_TRUE(write_file(path,
                         "{\"other\": 1}\n" + task_line("resnet_50", "[1, 3, 224, 224]", key) +
                             task_line("resnet_50", "[2, 3, 224, 224]", "[\"batch 2\"]") +
                             task_line("vgg_16", "[1, 3, 224, 224]", "[\"vgg\"]"))
                  .ok());
  NetworkTasks five(*network_set("all_five"));
  ASSERT_TRUE(five.add_file(path).ok());
  EXPECT_TRUE(five.holds(record_of(key)));
  EXPECT_TRUE(five.holds(record_of(R"(["0123456789abcdef0123456789abcdef", [1, 8], [8, 1]])")));
  EXPECT_FALSE(five.holds(record_of("[\"batch 2\"]")));
  EXPECT_FALSE(five.holds(record_of("[\"vgg\"]")));
  const std::vector<std::string> unnamed = five.unnamed();
  EXPECT_EQ(unnamed.size(), 5u);
  EXPECT_EQ(std::ranges::count(unnamed, "bert_base 1x128"), 1);
  NetworkTasks any(*network_set("resnet_50"));
  ASSERT_TRUE(any.add_file(path).ok());
  EXPECT_TRUE(any.holds(record_of("[\"batch 2\"]")));
  EXPECT_TRUE(any.unnamed().empty());
}

TEST_F(NetworkSetTest, SaysHowOftenANetworkCallsItsTasks) {
  const auto line = [](const char* kind, const char* shape, const char* key, int weight) {
    return R"({"network": "resnet_50", "input_shape": )" + std::string(shape) +
           R"(, "target_kind": ")" + kind + R"(", "weight": )" + std::to_string(weight) +
           R"(, "workload_key": )" + print_json(Json(key)) + "}\n";
  };
  ASSERT_TRUE(write_file(path,
                         line("cuda", "[1, 3, 224, 224]", "[\"a\"]", 3) +
                             line("cuda", "[1, 3, 224, 224]", "[\"b\"]", 2) +
                             line("cuda", "[4, 3, 224, 224]", "[\"c\"]", 1) +
                             line("llvm", "[1, 3, 224, 224]", "[\"d\"]", 9))
                  .ok());
  NetworkTasks tasks(*network_set("resnet_50"));
  ASSERT_TRUE(tasks.add_file(path).ok());
  const std::vector<CalledNetwork> networks = tasks.on("cuda -keys=cuda,gpu -arch=sm_70");
  ASSERT_EQ(networks.size(), 2u) << "one an input";
  EXPECT_EQ(networks[0].name, "resnet_50 1x3x224x224");
  ASSERT_EQ(networks[0].tasks.size(), 2u);
  EXPECT_EQ(networks[0].tasks[0].calls, 3);
  EXPECT_EQ(networks[0].tasks[1].keys[0], ansor::canonical_key("[\"b\"]"));
  EXPECT_EQ(networks[1].tasks.size(), 1u);
}

// The network is cut for the target, and each task is called as often as it has groups.
TEST_F(NetworkSetTest, KnowsTheCallsOfABuiltInNetwork) {
  const NetworkTasks tasks(*network_set("bert_tiny,dcgan"));
  const Target target = *parse_target("llvm -mcpu=haswell", 2);
  const std::vector<CalledNetwork> networks = tasks.on(print(target));
  ASSERT_GE(networks.size(), 1u);
  EXPECT_EQ(networks[0].name, "bert_tiny");
  double calls = 0;
  for (const NetworkCall& task : networks[0].tasks) calls += task.calls;
  EXPECT_GT(calls, static_cast<double>(networks[0].tasks.size()));
  const std::vector<ComputeDag> dags = tasks.built_in_dags(target);
  EXPECT_GE(dags.size(), networks[0].tasks.size());
  EXPECT_EQ(ansor::canonical_key(workload_key(dags[0])), networks[0].tasks[0].keys[0]);
}

TEST_F(NetworkSetTest, HoldsOurOwnRecordsOfBuiltInNetworks) {
  const NetworkOptions options{
      .batch_size = 1, .image_size = 224, .sequence_length = 128, .input_shapes = {}};
  const Target target = *parse_target("llvm -mcpu=haswell", 2);
  const Partition cut = *partition(*build_network("bert_tiny", options), target);
  Record record = record_of(cut.groups.front().key);
  record.target = print(target);
  record.threads = 2;
  record.sketch_name = "register-tile";
  NetworkTasks both(*network_set("bert_tiny,mobilenet_v2"));
  EXPECT_TRUE(both.holds(record));
  record.workload_key = "[\"another\"]";
  EXPECT_FALSE(both.holds(record));
  NetworkTasks none;
  EXPECT_TRUE(none.empty());
  EXPECT_FALSE(none.holds(record_of(cut.groups.front().key)));
}

TEST_F(NetworkSetTest, HoldsRecordsOfVideosOfTheirSize) {
  const Target target = *parse_target("llvm -mcpu=haswell", 2);
  NetworkOptions options;
  options.image_size = 128;
  const Partition cut = *partition(*build_network("resnet3d_18", options), target);
  Record record = record_of(cut.groups.front().key);
  record.target = print(target);
  record.threads = 2;
  record.sketch_name = "register-tile";
  const auto holds = [&](int64_t size) {
    NetworkTasks tasks({{"resnet3d_18", {1, 3, size, size, 16}}});
    return tasks.holds(record);
  };
  EXPECT_TRUE(holds(128));
  EXPECT_FALSE(holds(112));
}

// The public task file names every network of all_five.
TEST_F(NetworkSetTest, OfThePublicTasksIsComplete) {
  const std::string file = PRUNER_SHARED_DATA "/tenset-tasks/tasks.jsonl";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file;
  NetworkTasks five(*network_set("all_five"));
  ASSERT_TRUE(five.add_file(file).ok());
  EXPECT_TRUE(five.unnamed().empty());
}

}  // namespace
}  // namespace pruner
