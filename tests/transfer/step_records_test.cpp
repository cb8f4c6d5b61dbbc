#include "transfer/step_records.h"

#include "ansor/cpu_steps.h"
#include "golden.h"
#include "search/search.h"
#include "space/operator_task.h"
#include "transfer/adapt.h"
#include "transfer/pool.h"

namespace pruner {
namespace {

Record record_of(const std::string& key,
                 const std::string& steps,
                 double cost_s,
                 const std::string& target = "llvm -keys=cpu") {
  Record record;
  record.workload_key = key;
  record.target = target;
  record.steps = Json::array({Json::array(), *parse_json(steps)});
  record.origin = "foreign";
  record.result.costs_s = {cost_s};
  return record;
}
const std::string kProduct = R"(["matmul_layer", 64, 64, 64])";

struct StepRecordsTest : testing::Test {
  std::vector<Record> read(const std::vector<Record>& records) {
    return StepRecords(workloads, test_target(32)).read(records, counts);
  }
  ansor::WorkloadTable workloads;
  SourceCounts counts;
};

std::map<std::string, int32_t> decisions_of(const Record& record) {
  return {record.decisions.begin(), record.decisions.end()};
}

TEST_F(StepRecordsTest, BecomeTheBestOfEachTaskInOurWords) {
  const std::vector<Record> found =
      read({record_of(kProduct, ansor::cpu_matmul_steps({.m = {1, 1, 1}}), 2),
            record_of(kProduct, ansor::cpu_matmul_steps({}), 1)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].task_name, "matmul 64 64 64");
  EXPECT_EQ(found[0].workload_key, operator_task("matmul 64 64 64").key);
  EXPECT_EQ(found[0].sketch_name, "cache-tile");
  const auto decisions = decisions_of(found[0]);
  EXPECT_EQ(decisions.at("T_matmul_NN.i.rows"), 4);
  EXPECT_EQ(decisions.at("T_matmul_NN.j.vectors"), 2);
  EXPECT_EQ(decisions.at("T_matmul_NN.local.chunk"), 16);
  EXPECT_EQ(counts.print(),
            "2 records; the best of 1 tasks: 1 as recorded, 0 as the nearest candidate");
}

TEST_F(StepRecordsTest, AreOfferedToTasksOfTheirClass) {
  const TransferSource source{"log", read({record_of(kProduct, ansor::cpu_matmul_steps({}), 1)})};
  const Task task = operator_task("matmul 128 96 256", test_target(32));
  const Space space = make_space(task);
  const Offers offers = offers_for(std::vector<TransferSource>{source}, task, space);
  ASSERT_EQ(offers.offers.size(), 1u);
  EXPECT_TRUE(is_legal(space, offers.offers[0].candidate));
}

TEST_F(StepRecordsTest, ThatGiveNothingAreCountedWithTheReason) {
  Record failed = record_of(kProduct, "[]", 1);
  failed.result.error = MeasureError::kRuntimeDevice;
  EXPECT_TRUE(read({record_of(kProduct, "[]", 1, "cuda -arch=sm_80"),
                    failed,
                    record_of(R"(["00112233445566778899aabbccddeeff", 8])", "[]", 1),
                    record_of(R"(["relu_layer", 8, 8])", "[]", 1),
                    record_of(kProduct, R"([["SP", 2, 0, 64, [0], 1]])", 1)})
                  .empty());
  EXPECT_EQ(counts.print(),
            "5 records, 1 of cuda, 1 failed; the best of 3 tasks: 0 as recorded, 0 as the nearest "
            "candidate, 1 of no operator of ours, 1 whose steps do not replay (SP: a factor of 0), "
            "1 without a DAG (a hash without a DAG; --dags FILE gives those of hashes)");
}

// Blocks of channels, as TVM lays them out on a CPU, are the channels of our convolution.
TEST_F(StepRecordsTest, OfChannelsInBlocksAreConvolutionsOfOurs) {
  const std::string key = R"(["c0ffee00c0ffee00c0ffee00c0ffee00", [1, 1, 14, 14, 16], )"
                          R"([4, 1, 1, 1, 16, 8], [1, 4, 14, 14, 8]])";
  const Json task = {
      {"workload_key", key},
      {"dag",
       {"p0 = PLACEHOLDER [1, 1, 14, 14, 16]",
        "p1 = PLACEHOLDER [4, 1, 1, 1, 16, 8]",
        "conv(n, oc_chunk, oh, ow, oc_block) += (p0[n, floordiv(ic, 16), (oh + kh), (ow + kw), "
        "floormod(ic, 16)]*p1[oc_chunk, floordiv(ic, 16), kh, kw, floormod(ic, 16), oc_block])"}}};
  const Result<Unit> added = workloads.add(task);
  ASSERT_TRUE(added.ok()) << added.error().message();
  const std::vector<Record> found = read({record_of(
      key,
      R"([["SP", 2, 0, 1, [1, 1, 1], 1], ["SP", 2, 4, 4, [1, 1, 2], 1], )"
      R"(["SP", 2, 8, 14, [2, 1, 1], 1], ["SP", 2, 12, 14, [1, 1, 2], 1], )"
      R"(["SP", 2, 16, 8, [1, 1, 8], 1], ["SP", 2, 20, 16, [16], 1], ["SP", 2, 22, 1, [1], 1], )"
      R"(["SP", 2, 24, 1, [1], 1], ["RE", 2, [0, 4, 8, 12, 16, 1, 5, 9, 13, 17, 20, 22, 24, 2, 6, )"
      R"(10, 14, 18, 21, 23, 25, 3, 7, 11, 15, 19]], ["FU", 2, [0, 1, 2, 3, 4]], ["AN", 2, 0, 3]])",
      1)});
  ASSERT_EQ(found.size(), 1u) << counts.print();
  EXPECT_EQ(found[0].task_name, "conv2d 1 32 14 14 16 1 1 stride=1,1 padding=0,0,0,0");
  const auto decisions = decisions_of(found[0]);
  EXPECT_EQ(decisions.at("Conv2dOutput.ff.vectors"), 2);  // 2 blocks of 8 channels
  EXPECT_EQ(decisions.at("Conv2dOutput.xx.rows"), 2);
  EXPECT_EQ(decisions.at("Conv2dOutput.yy.middle"), 2);
}

}  // namespace
}  // namespace pruner
