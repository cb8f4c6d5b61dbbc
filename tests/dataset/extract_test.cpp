#include "dataset/extract.h"

#include "dataset/matmul_records.h"
#include "golden.h"

namespace pruner {
namespace {

Result<double> label(const std::string& costs, int error = 0) {
  return label_of(*parse_line(record_line({.costs = costs, .error = error})));
}

TEST(LabelOf, IsTheMeanOfTheRepeats) {
  EXPECT_DOUBLE_EQ(*label("[0.001, 0.003]"), 0.002);
  EXPECT_EQ(*label("[1e10]", 6), 1e10);
  EXPECT_EQ(*label("[0.001]", 4), 1e10);
}

TEST(LabelOf, RefusesWhatNoProgramTakes) {
  EXPECT_ERROR(label("[0]"), "a latency of 0");
  EXPECT_ERROR(label("[-0.1]"), "a negative latency");
  EXPECT_ERROR(label("[1e-12]"), "a latency below 1 ns");
  EXPECT_ERROR(label("[1e10]"), "a latency above 1000 s without an error number");
  EXPECT_ERROR(label("[0.1, 1e10, 0.1]"), "a latency above 1000 s");
  EXPECT_ERROR(label("[0.1, 0]"), "a latency of 0");
}

/// `ExtractPart` extracts the records of a file with a given text.
struct ExtractPart : testing::Test {
  const std::vector<Extracted>& extract(const std::string& text) {
    file.path = "k80/a.json";
    file.content = text;
    file.lines = record_lines(file.content);
    part.file = &file;
    part.end = file.lines.size();
    extract_part(options, {programs, held_out, only, {}}, part);
    return part.records;
  }

  MakeOptions options;
  ansor::WorkloadTable workloads;
  RecordedPrograms programs{workloads};
  NetworkTasks held_out, only;
  ReadFile file;
  FilePart part;
};

TEST_F(ExtractPart, GivesEveryLineAFate) {
  const auto& records = extract(record_line({.factor = 4}) + "# comment\nnot a record\n" +
                                record_line({.costs = "[NaN]"}) + record_line({.costs = "[0]"}) +
                                record_line({.key = "[\"0123\", 4]"}) +
                                record_line({.key = R"(["matmul_layer", "no"])"}) +
                                record_line({.factor = 0}) + record_line({.factor = 8}));
  ASSERT_EQ(records.size(), 8u);
  EXPECT_EQ(records[0].fate, Fate::kProgram);
  EXPECT_EQ(records[0].line, 1);
  EXPECT_EQ(records[0].latency_s, 0.001);
  EXPECT_EQ(records[1].fate, Fate::kUnreadable);
  EXPECT_EQ(records[1].reason, "not JSON");
  EXPECT_EQ(records[1].line, 3);
  EXPECT_EQ(records[2].fate, Fate::kUnreadable);
  EXPECT_EQ(records[2].reason, "not JSON: NaN stands for a number");
  EXPECT_EQ(records[3].fate, Fate::kBadLabel);
  EXPECT_EQ(records[4].fate, Fate::kNoDag);
  EXPECT_EQ(records[4].reason, "unknown function \"0123\"");
  EXPECT_EQ(records[5].fate, Fate::kNoDag);
  EXPECT_EQ(records[6].fate, Fate::kNotRebuilt);
  EXPECT_EQ(records[7].fate, Fate::kProgram);
  EXPECT_NE(records[0].program, records[7].program);
  EXPECT_EQ(part.labels.size(), 1u);
  EXPECT_EQ(part.labels[0].attributes.at("model"), "k80");
  EXPECT_EQ(part.keys.size(), 1u);
}

TEST_F(ExtractPart, LeavesOutWhatIsNotAskedFor) {
  options.targets = {parse_device_label("cuda -model=v100")};
  options.keep_failed = false;
  const auto& records =
      extract(record_line({.costs = "[1e10]", .error = 6}) +
              record_line({.costs = "[1e10]", .error = 6, .target = "cuda -model=v100"}));
  EXPECT_EQ(records[0].fate, Fate::kOtherTarget);
  EXPECT_EQ(records[1].fate, Fate::kFailedDropped);
}

// The hash does not see how the JSON was written.
TEST_F(ExtractPart, AProgramIsItsSteps) {
  std::string spaced = record_line({.factor = 4});
  spaced.replace(spaced.find("[\"SP\""), 0, "  ");
  const auto& records = extract(record_line({.factor = 4}) + spaced);
  ASSERT_EQ(records[1].fate, Fate::kProgram);
  EXPECT_EQ(records[0].program, records[1].program);
}

}  // namespace
}  // namespace pruner
