#include "record/record.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "golden.h"

namespace pruner {
namespace {

// A space of two sketches, as far as records look at it.
Space small_space() {
  Space space;
  for (const char* name : {"tile", "rfactor"}) {
    Sketch sketch;
    sketch.name = name;
    sketch.hash = std::string("hash-of-") + name;
    sketch.decisions = {{DecisionKind::kTile, "i.tile0", {1, 2, 4, 8}, 0},
                        {DecisionKind::kUnroll, "unroll", {0, 16}, -1}};
    space.sketches.push_back(std::move(sketch));
  }
  space.drawn = {SketchId{0}, SketchId{1}};
  return space;
}

Record sample_record() {
  Record record;
  record.workload_key = "[\"0123\", 8, 8]";
  record.target = "llvm -mcpu=znver4";
  record.task_name = "matmul 8x8x8";
  record.sketch_name = "rfactor";
  record.sketch_hash = "hash-of-rfactor";
  record.decisions = {{"i.tile0", 4}, {"unroll", 16}};
  record.device = "AMD EPYC, 2 threads";
  record.threads = 2;
  record.result.costs_s = {1.2345678901234e-05, 1.3e-05};
  record.result.build_s = 0.0125;
  record.result.run_s = 0.25;
  record.result.timestamp = 1700000000;
  record.origin = "search";
  record.hardware = {2, 64, 64, 0, 0, 0, 0, 0};
  record.layout_rewrite = 2;
  return record;
}

TEST(PrintLine, MarksWhatWasMeasuredBesideOthers) {
  Record record = sample_record();
  record.result.busy = {2, 0.1};
  EXPECT_EQ(print_line(record).find("others_share"), std::string::npos);
  record.result.busy = {2, 0.7};
  const std::string line = print_line(record);
  EXPECT_NE(line.find("\"others_share\": 0.35"), std::string::npos) << line;
  EXPECT_EQ(parse_line(line)->result.busy.share(), 0.35);
}

TEST(PrintLine, HasAnsorsKeysAndOurOwn) {
  EXPECT_EQ(
      print_line(sample_record()),
      R"({"i": [["[\"0123\", 8, 8]", "llvm -mcpu=znver4", [2, 64, 64, 0, 0, 0, 0, 0], "", 2, []], [[], []]], )"
      R"("r": [[1.2345678901234e-05, 1.3e-05], 0, 0.2625, 1700000000], "v": "v0.6", )"
      R"("p": {"task": "matmul 8x8x8", "sketch": "rfactor", "hash": "hash-of-rfactor", )"
      R"("decisions": {"i.tile0": 4, "unroll": 16}, "device": "AMD EPYC, 2 threads", "threads": 2, )"
      R"("origin": "search", "build_s": 0.0125}})");
}

TEST(ParseLine, RefusesNumbersOutOfRange) {
  const auto with = [](const std::string& part, const std::string& other) {
    std::string line = print_line(sample_record());
    return parse_line(line.replace(line.find(part), part.size(), other));
  };
  EXPECT_ERROR(with("[2, 64, 64", "[2, 1e300, 64"),
               "the hardware has a number that is out of range");
  EXPECT_ERROR(with("1700000000", "1e300"), "the time has a number that is out of range");
}

TEST(ParseLine, GivesBackWhatWasPrinted) {
  const Record record = sample_record();
  const Result<Record> parsed = parse_line(print_line(record));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_EQ(parsed->workload_key, record.workload_key);
  EXPECT_EQ(parsed->decisions, record.decisions);
  EXPECT_EQ(parsed->result.costs_s, record.result.costs_s);
  EXPECT_DOUBLE_EQ(parsed->result.run_s, record.result.run_s);
  EXPECT_EQ(parsed->result.timestamp, record.result.timestamp);
  EXPECT_EQ(print_line(*parsed), print_line(record));
}

TEST(ParseLine, KeepsWhyATrialFailed) {
  Record record = sample_record();
  record.result.error = MeasureError::kWrongAnswer;
  record.result.error_text = "output 0 is \"nan\"";
  const std::string line = print_line(record);
  EXPECT_NE(line.find(R"("r": [[10000000000.0], 5, )"), std::string::npos) << line;
  const Result<Record> parsed = parse_line(line);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->result.error, MeasureError::kWrongAnswer);
  EXPECT_EQ(parsed->result.error_text, record.result.error_text);
  EXPECT_EQ(parsed->result.cost_s(), kFailedCost);
  EXPECT_EQ(print_line(*parsed), line);
}

TEST(ParseLine, ShortensAnEndlessErrorText) {
  Record record = sample_record();
  record.result.error = MeasureError::kCompileHost;
  record.result.error_text =
      std::string(300, 'a') + std::string(100000, 'b') + std::string(300, 'c');
  const std::string line = print_line(record);
  EXPECT_LT(line.size(), 1500u);
  EXPECT_EQ(parse_line(line)->result.error_text,
            std::string(256, 'a') + "\n...\n" + std::string(256, 'c'));
}

TEST(ParseLine, SaysWhatARecordHas) {
  EXPECT_ERROR(parse_line("{\"i\""), "not JSON at byte");
  EXPECT_ERROR(parse_line("[1, 2]"), "not a record: a JSON object was expected");
  EXPECT_ERROR(parse_line(R"({"i": [["k", "llvm"], [[], []]], "r": [[1], 0, 1, 1]})"),
               "not a record: no \"v\"");
  EXPECT_ERROR(parse_line(R"({"i": [], "r": [[1], 0, 1, 1], "v": "v0.6"})"),
               "\"i\" has not two entries");
  EXPECT_ERROR(parse_line(R"({"i": [["k"], []], "r": [[1], 0, 1, 1], "v": "v0.6"})"),
               "\"i\" has no task");
  EXPECT_ERROR(parse_line(R"({"i": [["k", "llvm"], []], "r": [[1], 9, 1, 1], "v": "v0.6"})"),
               "error number 9 is not one of 0 to 8");
  EXPECT_ERROR(parse_line(R"({"i": [["k", "llvm"], []], "r": [[], 0, 1, 1], "v": "v0.6"})"),
               "\"r\" has no costs");
  EXPECT_ERROR(parse_line(R"({"i": [["k", 3], []], "r": [[1], 0, 1, 1], "v": "v0.6"})"),
               "wrong type");
  EXPECT_ERROR(
      parse_line(R"({"i": [["k", "llvm"], []], "r": [[1], 0, 1, 1], "v": "v0.6", "p": {}})"),
      "missing key \"task\"");
}

// A line of ours with `from` replaced.
Result<Record> with(const std::string& from, const std::string& to) {
  std::string line = print_line(sample_record());
  const size_t at = line.find(from);
  EXPECT_NE(at, std::string::npos) << line;
  return parse_line(line.replace(at, from.size(), to));
}

TEST(ParseLine, RefusesTimesThatCannotBe) {
  const std::string costs = print_json(Json(sample_record().result.costs_s));
  EXPECT_TRUE(with(costs, "[0.5]").ok());
  EXPECT_ERROR(with(costs, "[0.5, 0]"), "a cost of 0 s, expected more than 0");
  EXPECT_ERROR(with(costs, "[-1e-3]"), "a cost of -0.001 s");
  EXPECT_ERROR(with(costs, "[1e10]"), "a cost of 1e+10 s");
  EXPECT_ERROR(with(costs, "[NaN]"), "not JSON");
}

TEST(ParseLine, RefusesNumbersThatWouldWrapAround) {
  const Record record = sample_record();
  const auto& [name, value] = record.decisions[0];
  const std::string decision = "\"" + name + "\": ";
  EXPECT_ERROR(with(decision + std::to_string(value), decision + "4294967300"),
               "decision \"" + name + "\" is 4294967300, expected a whole number of 32 bits");
  EXPECT_ERROR(with(decision + std::to_string(value), decision + "4.5"), "is 4.5, expected");
  const std::string threads = "\"threads\": ";
  EXPECT_ERROR(with(threads + std::to_string(record.threads), threads + "4294967298"),
               "\"threads\" is 4294967298");
  EXPECT_ERROR(
      parse_line(R"({"i": [["k", "llvm"], []], "r": [[1], 4294967296, 1, 1], "v": "v0.6"})"),
      "the error's number is 4294967296");
}

TEST(Resolve, FindsTheCandidateByNames) {
  const Space space = small_space();
  const Candidate candidate{SketchId{1}, {4, 16}};
  EXPECT_EQ(resolve(space, sample_record()), candidate);
}

TEST(Resolve, KnowsNothingOfOtherSketchesAndDecisions) {
  const Space space = small_space();
  Record record = sample_record();
  record.sketch_hash = "older";
  EXPECT_EQ(resolve(space, record), std::nullopt);
  EXPECT_ERROR(find_candidate(space, record), "is not known in this version");
  record = sample_record();
  record.decisions[0].second = 3;
  EXPECT_EQ(resolve(space, record), std::nullopt);
  EXPECT_ERROR(find_candidate(space, record), "is 3, none of its choices");
  record = sample_record();
  record.decisions[1].first = "unrolled";
  EXPECT_EQ(resolve(space, record), std::nullopt);
  record = sample_record();
  record.decisions.pop_back();
  EXPECT_EQ(resolve(space, record), std::nullopt);
}

TEST(Resolve, LeavesOutFormsThatAreNotDrawn) {
  Space space = small_space();
  space.drawn = {SketchId{0}};
  EXPECT_EQ(resolve(space, sample_record()), std::nullopt);
}

Record trial(const std::string& key, double cost_s, const char* origin, const char* device) {
  Record record = sample_record();
  record.workload_key = key;
  record.result.costs_s = {cost_s};
  record.origin = origin;
  record.device = device;
  return record;
}

TEST(BestRecords, AreTheFastestOfEachTaskOnTheDevice) {
  std::vector<Record> records = {trial("a", 3, "search", "here"),
                                 trial("a", 1, "search", "there"),
                                 trial("a", 2, "search", "here"),
                                 trial("b", 5, "search", "here"),
                                 trial("a", 0.5, "search", "here")};
  records.back().result.error = MeasureError::kRuntimeDevice;
  const auto best = best_records(records, "here");
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best.at("a").result.cost_s(), 2);
  EXPECT_EQ(best.at("b").result.cost_s(), 5);
}

TEST(BestRecords, AFinalMeasurementReplacesWhatWasSeenBefore) {
  std::vector<Record> records = {trial("a", 1.0, "search", "here"),
                                 trial("a", 1.3, "final", "here"),
                                 trial("a", 1.2, "final", "here")};
  EXPECT_EQ(best_records(records, "here").at("a").result.cost_s(), 1.2);
  records.push_back(trial("a", 0.9, "search", "here"));
  EXPECT_EQ(best_records(records, "here").at("a").result.cost_s(), 0.9);
}

}  // namespace
}  // namespace pruner
