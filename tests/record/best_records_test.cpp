#include "record/best_records.h"

#include "record/record_files.h"

namespace pruner {
namespace {

using BestRecordsTest = RecordFiles;

std::vector<int64_t> lines(const BestRecords& best) {
  std::vector<int64_t> found;
  for (const BestRecord& record : best.records) found.push_back(record.line);
  return found;
}

TEST_F(BestRecordsTest, AreTheFastestProgramsOfEachTask) {
  write("a.json",
        "# comment\n" + foreign(8, 1, "[0.3], 0") + foreign(9, 1, "[0.9], 0") +
            foreign(8, 2, "[0.1], 0") + foreign(8, 2, "[0.2], 0") + foreign(8, 4, "[0.2], 0") +
            foreign(7, 1, "[1e10], 4"));
  const auto paths = files({"a.json"});
  const BestRecords one = *find_best(paths, 1, 2);
  EXPECT_EQ(lines(one), (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(one.tasks, 3);
  EXPECT_EQ(one.hopeless, 1);
  EXPECT_DOUBLE_EQ(one.records[0].time_s, 0.1);
  const BestRecords two = *find_best(paths, 2, 2);
  EXPECT_EQ(lines(two), (std::vector<int64_t>{4, 6, 3})) << "a program counts once";
  const auto text = lines_of(two.records, paths);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ((*text)[1] + "\n", foreign(8, 4, "[0.2], 0"));
}

TEST_F(BestRecordsTest, WhatWasMeasuredAgainCountsOverTheSearch) {
  write("a.json",
        own(1, "[0.1], 0", "search") + own(2, "[0.2], 0", "search") + own(1, "[0.4], 0", "final") +
            own(1, "[0.3], 0", "final"));
  const BestRecords best = *find_best(files({"a.json"}), 2, 1);
  EXPECT_EQ(lines(best), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(best.records[0].task.device, "cpu");
  EXPECT_EQ(best.records[0].name, "mm");
}

TEST_F(BestRecordsTest, ComeFromSeveralFiles) {
  write("a.json", foreign(8, 1, "[0.3], 0"));
  write("b.json.gz", foreign(8, 2, "[0.4], 0") + foreign(8, 3, "[0.1], 0"));
  const auto paths = files({"a.json", "b.json.gz"});
  const BestRecords best = *find_best(paths, 2, 1);
  EXPECT_EQ(best.records[0].file, 1u);
  EXPECT_EQ(best.records[1].file, 0u);
  EXPECT_EQ((*lines_of(best.records, paths))[1] + "\n", read("a.json"));
}

}  // namespace
}  // namespace pruner
