#include "record/merge_records.h"

#include "record/line_sorter.h"
#include "record/record_files.h"
#include "support/rng.h"

namespace pruner {
namespace {

using MergeRecords = RecordFiles;

TEST_F(MergeRecords, LeavesCopiesOutAndOrdersTheRest) {
  const std::string a1 = foreign(9, 1, "[0.3], 0", 30), a2 = foreign(8, 1, "[0.2], 0", 10);
  const std::string b1 = foreign(8, 2, "[0.1], 0", 20), b2 = foreign(8, 4, "[1e10], 4", 5);
  std::string spaced = a1;  // the same trial, written otherwise
  spaced.replace(spaced.find("0.3"), 3, "3e-1");
  write("a.json", a1 + a2 + "torn\n");
  write("b.json.gz", b1 + a2 + spaced + b2);
  const auto paths = files({"a.json", "b.json.gz"});
  const auto merged = [&](RecordOrder order, const std::string& name) {
    const auto summary = merge_records(paths, order, dir + '/' + name, 2);
    EXPECT_TRUE(summary.ok()) << summary.error().message();
    EXPECT_EQ(summary->written, 4);
    EXPECT_EQ(summary->duplicates, 2);
    EXPECT_EQ(summary->summary.damage.lines, 1);
    return read(name);
  };
  EXPECT_EQ(merged(RecordOrder::kTime, "time.json"), b2 + a2 + b1 + a1);
  EXPECT_EQ(merged(RecordOrder::kTask, "task.json.gz"), b1 + a2 + b2 + a1);
  EXPECT_EQ(merged(RecordOrder::kGiven, "given.json"), a1 + a2 + b1 + b2);
}

TEST_F(MergeRecords, WritesNeitherOverAnInputNorNothing) {
  write("a.json", foreign(8, 1, "[0.3], 0"));
  write("empty.json", "no record\n");
  const auto paths = files({"a.json"});
  EXPECT_ERROR(merge_records(paths, RecordOrder::kTime, dir + "/a.json", 1),
               "is one of the inputs");
  EXPECT_ERROR(
      merge_records(
          paths, RecordOrder::kTime, dir + "/../" + dir.substr(dir.rfind('/')) + "/a.json", 1),
      "is one of the inputs");
  EXPECT_ERROR(merge_records(files({"empty.json"}), RecordOrder::kTime, dir + "/x.json", 1),
               "no record in 1 files");
  EXPECT_ERROR(merge_records(paths, RecordOrder::kTime, dir + "/none/x.json", 1), "none/x.json");
  EXPECT_EQ(read("a.json"), foreign(8, 1, "[0.3], 0"));
  EXPECT_EQ(files({"."}).size(), 2u) << "nothing is left beside them";
}

TEST_F(MergeRecords, SortsMoreThanMemoryHolds) {
  Rng rng(1);
  std::vector<std::pair<std::string, std::string>> expected;
  {
    LineSorter sorter(dir + "/sorted", 2000);
    for (int i = 0; i < 1000; ++i) {
      const std::string key = std::to_string(rng.below(50)), line = std::to_string(i);
      ASSERT_TRUE(sorter.add(key, line).ok());
      expected.emplace_back(key, line);
    }
    EXPECT_GT(files({"."}).size(), 10u) << "runs lie on disk";
    std::ranges::stable_sort(expected, {}, &std::pair<std::string, std::string>::first);
    size_t n = 0;
    const auto take = [&](std::string_view line) -> Result<Unit> {
      EXPECT_EQ(line, expected[n++].second);
      return Unit{};
    };
    ASSERT_TRUE(sorter.finish(take).ok());
    EXPECT_EQ(n, expected.size());
  }
  EXPECT_TRUE(files({"."}).empty());
}

}  // namespace
}  // namespace pruner
