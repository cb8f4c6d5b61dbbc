#include "record/record_stat.h"

#include <fstream>
#include <sstream>

#include "record/record_files.h"
#include "record/record_id.h"

namespace pruner {
namespace {

using RecordStatTest = RecordFiles;

TEST_F(RecordStatTest, CountsWhatThereIsOfATask) {
  write("a.json",
        foreign(8, 2, "[0.1, 0.3], 0", 100) + foreign(8, 4, "[0.1], 0", 50) +
            foreign(8, 4, "[0.1], 0", 50) + foreign(8, 1, "[10000000000.0], 6", 70) +
            foreign(8, 1, "[0.0], 0", 70) + foreign(8, 8, "[1e10], 0", 70) +
            foreign(9, 1, "[0.5], 0", 0));
  const RecordStat stat = *count_records(files({"a.json"}), StatGroup::kTask, 2);
  ASSERT_EQ(stat.rows.size(), 2u);
  const RecordCount& count = stat.rows[0].count;
  EXPECT_EQ(stat.rows[0].name, "[\"matmul_layer\", 8, 8, 8]");
  EXPECT_EQ(stat.rows[0].target, "cuda");
  EXPECT_EQ(count.records, 6);
  EXPECT_EQ(count.valid, 3);
  EXPECT_EQ(count.duplicates, 1);
  EXPECT_EQ(count.failed.at("build timeout"), 1);
  EXPECT_EQ(count.failed.at("no time"), 2) << "0 and 1e10 seconds are none";
  EXPECT_DOUBLE_EQ(*count.best_s, 0.1);
  EXPECT_DOUBLE_EQ(*count.median_s(), 0.1);
  EXPECT_EQ(count.first_time, 50);
  EXPECT_EQ(count.last_time, 100);
  EXPECT_EQ(count.versions, std::set<std::string>{"v0.6"});
  EXPECT_EQ(stat.total.records, 7);
  EXPECT_EQ(stat.rows[1].count.first_time, 0);
}

TEST_F(RecordStatTest, CountsFilesApart) {
  write("a.json", foreign(8, 2, "[0.1], 0"));
  write("b.json", foreign(8, 2, "[0.1], 0") + foreign(9, 2, "[0.1], 0"));
  const RecordStat stat = *count_records(files({"a.json", "b.json"}), StatGroup::kFile, 2);
  ASSERT_EQ(stat.rows.size(), 2u);
  EXPECT_EQ(stat.rows[1].name, dir + "/b.json");
  EXPECT_EQ(stat.rows[1].count.records, 2);
  EXPECT_EQ(stat.rows[1].workload_key, "several");
  EXPECT_EQ(stat.rows[1].count.duplicates, 0);
  EXPECT_EQ(stat.total.duplicates, 1);
}

TEST(MeasuredSeconds, IsTheMeanOfForeignRepeatsAndOurOwnQuartile) {
  const Record theirs = *parse_line(RecordFiles::foreign(8, 2, "[1.0, 2.0, 6.0, 3.0], 0"));
  EXPECT_DOUBLE_EQ(*measured_s(theirs), 3);
  const Record ours = *parse_line(RecordFiles::own(1, "[1.0, 2.0, 6.0, 3.0], 0", "search"));
  EXPECT_DOUBLE_EQ(*measured_s(ours), ours.result.cost_s());
  EXPECT_LT(*measured_s(ours), 3);
}

// One row of the public logs' own statistics.
struct Expected {
  int64_t records = 0, ok = 0;
  double best_s = 0, median_s = 0;
};

std::map<std::pair<std::string, std::string>, Expected> read_expected(const std::string& path) {
  std::map<std::pair<std::string, std::string>, Expected> expected;
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::vector<std::string> cells;
    std::istringstream cut(line);
    for (std::string cell; std::getline(cut, cell, '\t');) cells.push_back(cell);
    cells.resize(9);
    const auto number = [&](size_t i) { return std::atof(cells[i].c_str()); };
    expected[{cells[0], cells[1]}] = {
        std::atoll(cells[3].c_str()), std::atoll(cells[4].c_str()), number(7), number(8)};
  }
  return expected;
}

TEST(PublicLogs, AreCountedAsTheirStatisticsSay) {
  const std::string folder = PRUNER_SHARED_DATA "/ansor-logs/";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no records under " << folder;
  const auto expected = read_expected(folder + "tasks.tsv");
  const auto files = *find_record_files({folder + "apache-tvm-ci-logs/*/*.json*",
                                         folder + "lac-dcc-bennu/results/*",
                                         folder + "microsoft-nnfusion-roller/k80/matmul/*.gz"});
  int64_t compared = 0;
  for (const RecordPath& file : files) {
    const RecordStat stat = *count_records({&file, 1}, StatGroup::kTask, 2);
    const std::string name = file.path.substr(folder.size());
    for (const StatRow& row : stat.rows) {
      const auto found = expected.find({name, row.workload_key});
      ASSERT_NE(found, expected.end()) << name << ' ' << row.workload_key;
      const Expected& e = found->second;
      SCOPED_TRACE(name + ' ' + row.workload_key);
      EXPECT_EQ(row.count.records, e.records);
      EXPECT_EQ(row.count.valid, e.ok);
      if (e.ok == 0) continue;
      EXPECT_NEAR(*row.count.best_s, e.best_s, 1e-6 * e.best_s);
      EXPECT_NEAR(*row.count.median_s(), e.median_s, 1e-6 * e.median_s);
      ++compared;
    }
  }
  EXPECT_GT(compared, 500);
}

}  // namespace
}  // namespace pruner
