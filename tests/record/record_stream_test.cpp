#include "record/record_stream.h"

#include "record/record_files.h"

namespace pruner {
namespace {

using RecordStream = RecordFiles;

std::vector<int64_t> numbers(std::span<const RecordPath> files, StreamSummary& summary) {
  std::vector<int64_t> found;
  const auto take = [&](StreamedRecord&& streamed) -> Result<Unit> {
    EXPECT_EQ(parse_line(streamed.line)->workload_key, streamed.record.workload_key);
    found.push_back(streamed.number);
    return Unit{};
  };
  summary = *stream_records(files, 2, take);
  return found;
}

TEST_F(RecordStream, LosesNoLine) {
  const std::string record = foreign(8, 2, "[0.1], 0");
  write("a.json", "# a comment\n" + record + "\n{\"x\": 1}\n" + record + record.substr(0, 60));
  std::string many;
  for (int i = 0; i < 20000; ++i) many += record;
  write("b.json.gz", many);
  StreamSummary summary;
  const std::vector<int64_t> found = numbers(files({"a.json", "b.json.gz"}), summary);
  ASSERT_EQ(found.size(), 20002u);
  EXPECT_EQ(found[0], 2);
  EXPECT_EQ(found[1], 5);
  for (int64_t i = 0; i < 20000; ++i) ASSERT_EQ(found[static_cast<size_t>(i) + 2], i + 1);
  EXPECT_EQ(summary.records, 20002);
  EXPECT_EQ(summary.damage.lines, 2);
  ASSERT_EQ(summary.damage.named.size(), 2u);
  EXPECT_EQ(summary.damage.named[0], dir + "/a.json:4: not a record: no \"i\"");
  EXPECT_TRUE(summary.damage.named[1].starts_with(dir + "/a.json:6: not JSON at byte "));
}

TEST_F(RecordStream, NamesATornFile) {
  const std::string record = foreign(8, 2, "[0.1], 0");
  std::string many;
  for (int i = 0; i < 3000; ++i)
    many += foreign(i, i % 7 + 1, "[0." + std::to_string(i + 1) + "], 0", i);
  const std::string packed = *read_file(write("whole.json.gz", many));
  write("torn.json", packed.substr(0, packed.size() / 2));
  StreamSummary summary;
  const std::vector<int64_t> found = numbers(files({"torn.json"}), summary);
  EXPECT_GT(found.size(), 100u);
  EXPECT_LT(found.size(), 3000u);
  EXPECT_EQ(summary.damage.files, 1);
  EXPECT_EQ(summary.damage.named.back(), dir + "/torn.json: ends early: damaged or cut off");
}

TEST_F(RecordStream, PassesOverOtherFilesOfAFolder) {
  write("logs/readme.md", "hello\n");
  write("logs/a.json", foreign(8, 2, "[0.1], 0") + "torn");
  StreamSummary summary;
  numbers(files({"logs"}), summary);
  EXPECT_EQ(summary.other, 1);
  EXPECT_EQ(summary.files, 1);
  EXPECT_EQ(summary.damage.lines, 1);
  numbers(files({"logs/readme.md"}), summary);
  EXPECT_EQ(summary.other, 0);
  EXPECT_EQ(summary.damage.lines, 1);
}

TEST_F(RecordStream, NamesOnlySomeOfMuchDamage) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "[]\n";
  write("a.json", text);
  StreamSummary summary;
  EXPECT_TRUE(numbers(files({"a.json"}), summary).empty());
  EXPECT_EQ(summary.damage.lines, 100);
  EXPECT_EQ(summary.damage.named.size(), Damage::kNamed);
}

TEST_F(RecordStream, EndsAtAnErrorOfItsUser) {
  write("a.json", foreign(8, 2, "[0.1], 0"));
  EXPECT_ERROR(
      stream_records(
          files({"a.json"}), 1, [](StreamedRecord&&) -> Result<Unit> { return Error("full"); }),
      "full");
}

}  // namespace
}  // namespace pruner
