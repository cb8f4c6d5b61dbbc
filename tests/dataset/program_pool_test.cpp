#include "dataset/program_pool.h"

#include <filesystem>

#include "golden.h"
#include "own_path.h"
#include "search/search.h"
#include "support/file.h"
#include "target/device_file.h"
#include "tensor/operators.h"

namespace pruner {
namespace {

struct ProgramPoolTest : testing::Test {
  ProgramPoolTest() : path(own_path("pool.json")) {}
  ~ProgramPoolTest() override { std::filesystem::remove(path); }

  Result<ProgramPool> read(const std::string& content) {
    EXPECT_TRUE(write_file(path, content).ok());
    return read_program_pool(
        *find_record_files({path}), programs, {.gpu = read_device("a100_40")->gpu, .jobs = 2});
  }
  static std::string matmul(int size, int factor, const std::string& result) {
    return R"({"i": [["[\"matmul_layer\", )" + std::to_string(size) +
           R"(, 64, 64]", "cuda"], [[], )" + R"([["SP", 2, 0, )" + std::to_string(size) + R"(, [)" +
           std::to_string(factor) + R"(], 1], ["AN", 2, 0, 5], ["AN", 2, 1, 6]]]], "r": [)" +
           result + R"(, 2.5, 1], "v": "v0.6"})" + "\n";
  }

  std::string path;
  ansor::WorkloadTable workloads;
  RecordedPrograms programs{workloads};
};

TEST_F(ProgramPoolTest, HoldsEachProgramOnce) {
  const auto pool = read(matmul(64, 2, "[0.4], 0") + matmul(64, 4, "[0.2], 0") +
                         matmul(64, 2, "[0.3], 0") + "torn\n" + matmul(64, 8, "[1e10], 4") +
                         matmul(32, 2, "[1e10], 4") + matmul(16, 0, "[0.1], 0"));
  ASSERT_TRUE(pool.ok()) << pool.error().message();
  ASSERT_EQ(pool->tasks.size(), 1u);
  const PooledTask& task = pool->tasks[0];
  EXPECT_EQ(task.name, "[\"matmul_layer\", 64, 64, 64]");
  ASSERT_EQ(task.size(), 3u);
  EXPECT_DOUBLE_EQ(task.trials[0].cost_s, 0.3) << "the least of its times";
  EXPECT_DOUBLE_EQ(task.best_s(), 0.2);
  EXPECT_EQ(task.trials[2].cost_s, kFailedCost);
  EXPECT_DOUBLE_EQ(task.trials[0].spent_s, 2.5);
  EXPECT_GT(task.draft_scores[0], 0);
  EXPECT_NE(task.features[0], task.features[1]);
  EXPECT_EQ(pool->repeats, 1);
  EXPECT_EQ(pool->hopeless, 1);
  ASSERT_EQ(pool->left_out.size(), 1u);
  EXPECT_EQ(pool->left_out.begin()->second.first, path + ":7");
  EXPECT_EQ(pool->summary.damage.lines, 1);
}

TEST_F(ProgramPoolTest, SaysWhyThereIsNoProgram) {
  EXPECT_ERROR(read("nothing\n"), "no program to choose from in 0 records");
  EXPECT_ERROR(read(matmul(64, 2, "[1e10], 4")), "in 1 records; none of them ran");
  std::string unknown = matmul(64, 2, "[0.1], 0");
  unknown.replace(unknown.find("matmul_layer"), 12, "matmul_liar");
  EXPECT_ERROR(read(unknown), "1 of them: ");
}

TEST_F(ProgramPoolTest, TakesCandidatesOfOurs) {
  const Target target = *parse_target("llvm -mcpu=haswell", 2);
  const ComputeDag dag = *parse_operator("matmul 32 32 32");
  const Task task = make_task(dag, target, "mm");
  const Space space = make_space(task);
  const auto line = [&](const Candidate& candidate, double cost_s, const char* origin) {
    MeasureResult result;
    result.costs_s = {cost_s};
    Record record = make_record(task, space, candidate, result);
    record.origin = origin;
    return print_line(record) + "\n";
  };
  const Candidate first = default_schedule(task, space);
  EXPECT_ERROR(read(line(first, 0.1, "search")), "whose DAG is not given");
  programs.add_task(dag);
  const auto pool =
      read(line(first, 0.1, "search") + line(first, 0.3, "final") + line(first, 0.2, "final"));
  ASSERT_TRUE(pool.ok()) << pool.error().message();
  ASSERT_EQ(pool->size(), 1);
  EXPECT_DOUBLE_EQ(pool->tasks[0].best_s(), 0.2) << "measured again at the end of the run";
  EXPECT_GT(pool->tasks[0].draft_scores[0], 0);
}

// The draft takes the numbers of the device that the folder names, and programs of two devices stay
// apart; a record of no known device has no draft.
TEST_F(ProgramPoolTest, DraftsForTheRecordsOwnDevice) {
  const std::filesystem::path folder = own_path("pool_devices");
  std::vector<double> scores;
  for (const char* device : {"k80", "v100", "unknown"}) {
    std::filesystem::create_directories(folder / device);
    EXPECT_TRUE(write_file((folder / device / "r.json").string(), matmul(64, 2, "[0.4], 0")).ok());
  }
  const auto pool = read_program_pool(*find_record_files({folder.string()}), programs, {.jobs = 2});
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(pool.ok()) << pool.error().message();
  ASSERT_EQ(pool->tasks.size(), 2u);
  EXPECT_EQ(pool->repeats, 0);
  EXPECT_EQ(pool->tasks[0].target, "cuda -model=k80");
  EXPECT_LT(pool->tasks[0].draft_scores[0], pool->tasks[1].draft_scores[0]) << "a K80 is slower";
  ASSERT_EQ(pool->left_out.size(), 1u);
  EXPECT_EQ(pool->left_out.begin()->first,
            "the draft does not know its device; name one with --psa");
}

}  // namespace
}  // namespace pruner
