#include "record/split_records.h"

#include <algorithm>

#include "record/record_files.h"

namespace pruner {
namespace {

using SplitRecords = RecordFiles;

TEST_F(SplitRecords, GivesEachTaskAFile) {
  write("a.json",
        foreign(8, 1, "[0.3], 0") + own(1, "[0.1], 0", "search") + "torn\n" +
            foreign(9, 1, "[0.4], 0") + foreign(8, 2, "[1e10], 4"));
  const auto parts = split_records(files({"a.json"}), {}, dir + "/parts/", 2);
  ASSERT_TRUE(parts.ok()) << parts.error().message();
  ASSERT_EQ(parts->files.size(), 3u);
  EXPECT_EQ(parts->summary.damage.lines, 1);
  const auto first = parts->files.begin();
  EXPECT_TRUE(first->first.starts_with("matmul_layer_8_8_8-")) << first->first;
  EXPECT_EQ(first->second, 2);
  EXPECT_EQ(read("parts/" + first->first), foreign(8, 1, "[0.3], 0") + foreign(8, 2, "[1e10], 4"));
  EXPECT_TRUE(std::prev(parts->files.end())->first.starts_with("mm-"));
  EXPECT_ERROR(split_records(files({"a.json"}), {}, dir + "/parts", 2), "is there already");
}

TEST_F(SplitRecords, GivesEachTargetAFile) {
  write("a.json",
        foreign(8, 1, "[0.3], 0") + own(1, "[0.1], 0", "search") + foreign(9, 1, "[0.4], 0"));
  const auto parts = split_records(files({"a.json"}), {.by = SplitBy::kTarget}, dir + "/parts", 2);
  ASSERT_TRUE(parts.ok()) << parts.error().message();
  ASSERT_EQ(parts->files.size(), 2u);
  EXPECT_TRUE(parts->files.begin()->first.starts_with("cuda-"));
  EXPECT_EQ(parts->files.begin()->second, 2);
}

TEST_F(SplitRecords, KeepsTrialsOfAProgramTogether) {
  std::string text;
  for (int i = 0; i < 2000; ++i)
    text += foreign(8, i % 1000 + 1, "[0." + std::to_string(i + 1) + "], 0", i);
  write("a.json", text);
  const RecordSplitOptions options{.by = SplitBy::kShare, .train_share = 0.8, .seed = 3};
  const auto parts = split_records(files({"a.json"}), options, dir + "/parts", 2);
  ASSERT_TRUE(parts.ok()) << parts.error().message();
  EXPECT_NEAR(static_cast<double>(parts->files.at("train.json")), 1600, 80);
  EXPECT_EQ(parts->files.at("train.json") % 2, 0);
  EXPECT_EQ(parts->files.at("train.json") + parts->files.at("test.json"), 2000);
  // Another seed draws others; the same one the same.
  ASSERT_TRUE(split_records(files({"a.json"}), options, dir + "/again", 1).ok());
  EXPECT_EQ(read("again/test.json"), read("parts/test.json"));
  RecordSplitOptions other = options;
  other.seed = 4;
  ASSERT_TRUE(split_records(files({"a.json"}), other, dir + "/other", 1).ok());
  EXPECT_NE(read("other/test.json"), read("parts/test.json"));
}

TEST_F(SplitRecords, MakesNoFolderOfNothing) {
  write("a.json", "nothing\n");
  EXPECT_ERROR(split_records(files({"a.json"}), {}, dir + "/parts", 1), "no record in 1 files");
  EXPECT_EQ(files({"."}).size(), 1u);
}

}  // namespace
}  // namespace pruner
