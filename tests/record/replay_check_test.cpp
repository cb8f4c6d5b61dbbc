#include "record/replay_check.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "golden.h"

namespace pruner {
namespace {

std::string record(const std::string& key, const std::string& steps) {
  return R"({"i": [["[\")" + key + R"(]", "cuda"], [[], [)" + steps +
         R"(]]], "r": [[0.1], 0, 1, 1], "v": "v0.6"})";
}
const std::string kMatmul = R"(matmul_layer\", 8, 8, 8)";

struct ReplayCheck : testing::Test {
  ReplayCheck()
      : path(std::filesystem::temp_directory_path() /
             ("pruner_replay_check_" + std::to_string(getpid()))) {}
  ~ReplayCheck() override { std::filesystem::remove(path); }

  ReplayCount check(const std::string& content, bool named = true) {
    std::ofstream(path) << content;
    const auto count = check_replay({path, named}, workloads, points, 2);
    EXPECT_TRUE(count.ok()) << count.error().message();
    return *count;
  }

  std::string path;
  ansor::WorkloadTable workloads;
  ansor::OwnPoints points;
};

TEST_F(ReplayCheck, CountsEveryLineOnce) {
  const ReplayCount count =
      check("# a comment\n\n" + record(kMatmul, "") + "\n" +
            record(kMatmul, R"(["SP", 2, 0, 8, [2], 1])") + "\n" +
            record(kMatmul, R"(["SP", 2, 0, 8, [0], 1])") + "\n" + record(kMatmul, R"(["XY", 2])") +
            "\n" + record(R"(00112233445566778899aabbccddeeff\")", "") + "\n" +
            record(R"(sparse_dense\", 3)", "") + "\n" + "{\"x\": 1}\n" +
            record(kMatmul, "").substr(0, 40));
  EXPECT_EQ(count.records, 8);
  EXPECT_EQ(count.replayed, 2);
  EXPECT_EQ(count.no_dag, 2);
  EXPECT_EQ(count.failures(), 4);
  EXPECT_DOUBLE_EQ(count.share(), 2.0 / 6);
  EXPECT_EQ(count.failed.size(), 4u);
  EXPECT_EQ(count.failed.at("SP: a factor of 0").first, path + ":5");
  EXPECT_EQ(count.failed.at("step 0: unknown code \"XY\"").count, 1);
  EXPECT_EQ(count.failed.at("not a record: no \"i\"").count, 1);
  EXPECT_EQ(count.own + count.nearest, 2);
  EXPECT_DOUBLE_EQ(count.candidate_share(), 1);
  EXPECT_EQ(count.unknown.at("a hash without a DAG").count, 1);
}

TEST_F(ReplayCheck, CountsLikeReasonsTogether) {
  std::string content;
  for (int i = 0; i < 300; ++i) {
    content += record(kMatmul, R"(["PR", 2, 0, "x"], ["SP", 2, 0, 8, [0], 1])") + "\n";
    content += record(kMatmul, R"(["SP", 2, 0, 8, [0], 1])") + "\n";
  }
  const ReplayCount count = check(content);
  EXPECT_EQ(count.failed.size(), 1u);
  EXPECT_EQ(count.failed.begin()->second.count, 600);
  EXPECT_EQ(count.failed.begin()->second.first, path + ":1");
}

TEST_F(ReplayCheck, PassesOverOtherFilesOfAFolder) {
  EXPECT_TRUE(check("{\"networks\": [\n1,\n2]}\n", false).other);
  EXPECT_FALSE(check("{\"networks\": [\n1,\n2]}\n").other);
  EXPECT_FALSE(check(record(kMatmul, "") + "\ntorn", false).other);
}

// A share of the public logs' records that replay: all whose task is known.
TEST_F(ReplayCheck, ReplaysPublicLogs) {
  const std::string folder = PRUNER_SHARED_DATA "/ansor-logs/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no records under " << folder;
  const std::string shared = PRUNER_SHARED_DATA;
  ASSERT_TRUE(workloads.add_file(shared + "/tenset-tasks/tasks.jsonl").ok());
  const auto files = find_record_files({folder + "apache-tvm-ci-logs/*/*.json",
                                        folder + "microsoft-nnfusion-roller/k80/*/*_3_3_*.gz"});
  ASSERT_TRUE(files.ok()) << files.error().message();
  ReplayCount total;
  for (size_t i = 0; i < files->size() && total.records < 20000; ++i) {
    const auto count = check_replay((*files)[i], workloads, points, 2);
    ASSERT_TRUE(count.ok());
    total.add(*count);
  }
  EXPECT_GT(total.replayed, 1000);
  int64_t foreign = 0;
  for (const auto& [reason, entry] : total.foreign) foreign += entry.count;
  EXPECT_EQ(total.own + foreign, total.replayed);  // each that is no point says why
  EXPECT_GT(total.own, total.replayed / 10);
  EXPECT_EQ(total.failures(), 0) << total.failed.begin()->first;
  EXPECT_EQ(total.own + total.nearest, total.replayed);
}

// Public logs of CPUs: nine in ten of the records that replay have a legal candidate.
TEST_F(ReplayCheck, FindsCandidatesForPublicLogsOfCpus) {
  const std::string folder = PRUNER_SHARED_DATA "/ansor-logs/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no records under " << folder;
  const std::string runs = folder + "Jaspann-transfer-tuning/data_5000/";
  ASSERT_TRUE(workloads.add_file(runs + "task-dags.jsonl").ok());
  const auto files = find_record_files(
      {runs + "raw", folder + "lac-dcc-bennu/results/x86_*", folder + "lac-dcc-bennu/cpu_*"});
  ASSERT_TRUE(files.ok()) << files.error().message();
  ReplayCount total;
  for (const RecordPath& file : *files) {
    const auto count = check_replay({file.path, false}, workloads, points, 2);
    ASSERT_TRUE(count.ok());
    total.add(*count);
  }
  EXPECT_GT(total.replayed, 15000);
  EXPECT_EQ(total.failures(), 0) << total.failed.begin()->first;
  EXPECT_GE(total.candidate_share(), 0.9);
}

}  // namespace
}  // namespace pruner
