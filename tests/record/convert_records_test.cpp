#include "record/convert_records.h"

#include "record/record_files.h"
#include "record/record_id.h"

namespace pruner {
namespace {

using ConvertRecords = RecordFiles;

constexpr const char* kV02 =
    R"({"i": [["[\"matmul_add\", 8, 8, 8, \"float32\"]", "llvm -keys=cpu"], )"
    R"([[], [["SP", 2, 0, 8, [4], 1]]]], "r": [[0.25], 0, 1.5, 9], "v": "v0.2"})"
    "\n";

TEST_F(ConvertRecords, FillsWhatOldVersionsLack) {
  write("a.json", std::string(kV02) + foreign(8, 1, "[0.3], 0"));
  const auto made = convert_records(files({"a.json"}), {}, dir + "/b.json.gz", 2);
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ(made->written, 2);
  EXPECT_EQ(made->versions.at("v0.2"), 1);
  EXPECT_EQ(made->assumed_hardware, 2);
  const std::string text = read("b.json.gz");
  const Record old = *parse_line(text.substr(0, text.find('\n')));
  EXPECT_EQ(old.version, "v0.6");
  EXPECT_EQ(old.hardware.size(), 8u);
  EXPECT_EQ(old.hardware[1], 64);
  EXPECT_EQ(ids_of(old).trial, ids_of(*parse_line(kV02)).trial);
  const Record gpu = *parse_line(text.substr(text.find('\n') + 1));
  EXPECT_EQ(gpu.hardware, (std::vector<int64_t>{-1, 16, 64, 49152, 2147483647, 1024, 8, 32}));
  EXPECT_TRUE(print_line(gpu) == text.substr(text.find('\n') + 1, print_line(gpu).size()));
}

TEST_F(ConvertRecords, LeavesOutWhatHasNoSuchForm) {
  std::string steps = foreign(8, 1, "[0.3], 0");
  steps.replace(steps.find("\"SP\""), 4, "\"XY\"");
  std::string with_steps = own(3, "[0.2], 0", "final");
  with_steps.replace(with_steps.find("[[], []]"), 8, R"([[], [["SP", 2, 0, 8, [4], 1]]])");
  write("a.json", own(1, "[0.1], 0", "search") + with_steps + steps);
  const auto all = convert_records(files({"a.json"}), {}, dir + "/all.json", 1);
  ASSERT_TRUE(all.ok()) << all.error().message();
  EXPECT_EQ(all->written, 2);
  EXPECT_EQ(all->left_out.at("step 0: unknown code \"XY\"").first, dir + "/a.json:3");
  EXPECT_NE(read("all.json").find("\"p\""), std::string::npos);

  const auto strict = convert_records(files({"a.json"}), {.strict = true}, dir + "/tvm.json", 1);
  ASSERT_TRUE(strict.ok()) << strict.error().message();
  EXPECT_EQ(strict->written, 1);
  EXPECT_EQ(strict->left_out.at("a candidate of ours without transform steps").records, 1);
  const Json line = *parse_json(read("tvm.json"));
  EXPECT_FALSE(line.contains("p"));
  EXPECT_EQ(line["r"][2], 1.5) << "all of the time that was spent";

  write("own.json", own(1, "[0.1], 0", "search"));
  EXPECT_ERROR(convert_records(files({"own.json"}), {.strict = true}, dir + "/none.json", 1),
               "none of 1 records has the form");
  EXPECT_FALSE(std::filesystem::exists(dir + "/none.json"));
}

// Every public record of an old version becomes one of v0.6 with the same steps and times.
TEST_F(ConvertRecords, TakesPublicRecordsOfOldVersions) {
  const std::string folder = PRUNER_SHARED_DATA "/ansor-logs/apache-tvm-ci-logs";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no records under " << folder;
  const auto made = convert_records(*find_record_files({folder}), {}, dir + "/all.json", 2);
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_TRUE(made->left_out.empty());
  EXPECT_EQ(made->written, made->summary.records);
  EXPECT_EQ(made->versions.at("v0.2"), 4);
  EXPECT_EQ(made->versions.at("v0.3"), 101);
  EXPECT_EQ(made->versions.at("v0.5"), 76);
}

}  // namespace
}  // namespace pruner
