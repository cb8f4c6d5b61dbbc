#include "dataset/network_set.h"

#include <algorithm>

#include "golden.h"
#include "graph/partition.h"
#include "own_path.h"
#include "space/ansor/workload_table.h"

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
