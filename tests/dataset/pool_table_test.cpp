#include "dataset/pool_table.h"

#include <filesystem>

#include "dataset/make.h"
#include "dataset/matmul_records.h"
#include "golden.h"
#include "own_path.h"

namespace pruner {
namespace {

struct PoolTableTest : testing::Test {
  PoolTableTest() : path(own_path("pool_table.json")), dataset(own_path("pool_table.ds")) {
    MatmulRecord failed{.factor = 64, .costs = "[1e10]", .error = 4};
    MatmulRecord small{.key = R"(["matmul_layer", 64, 32, 64])"};
    EXPECT_TRUE(
        write_file(path, record_lines_of(5) + record_line(failed) + record_line(small)).ok());
  }
  ~PoolTableTest() override {
    std::filesystem::remove(path);
    std::filesystem::remove(dataset);
  }
  PoolTable read(int64_t least) {
    PoolOptions options{.gpu = Gpu(), .jobs = 1};
    return table_of(*read_program_pool(*find_record_files({path}), programs, options), least);
  }

  std::string path, dataset;
  ansor::WorkloadTable workloads;
  RecordedPrograms programs{workloads};
};

TEST_F(PoolTableTest, HasTheIdsOfAFeatureFileOfTheSameRecords) {
  const PoolTable made = read(0);
  NetworkTasks held_out, only;
  MakeOptions options{.records = {path}, .out_file = dataset, .min_sample_size = 1, .targets = {}};
  ASSERT_TRUE(make_dataset(options, {programs, held_out, only, {}}).ok());
  const ProgramTable file = *ProgramTable::open(std::vector{dataset});
  ASSERT_EQ(made.table.size(), 6u) << "what failed is left out";
  EXPECT_EQ(made.table.left_out().failed, 1);
  ASSERT_EQ(file.size(), made.table.size());
  for (size_t p = 0; p < file.size(); ++p) {
    EXPECT_EQ(file.id()[p], made.table.id()[p]);
    EXPECT_EQ(file.samples()[p].features, made.table.samples()[p].features);
    EXPECT_EQ(file.label(p), made.table.label(p));
    EXPECT_GT(made.draft_scores[p], 0);
  }
  EXPECT_EQ(made.draft_scores.size(), made.table.size());
}

TEST_F(PoolTableTest, LeavesOutTasksOfFewPrograms) {
  EXPECT_EQ(read(2).table.tasks().size(), 1u);
  EXPECT_EQ(read(2).draft_scores.size(), 5u);
}

}  // namespace
}  // namespace pruner
