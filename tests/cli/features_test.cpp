// pruner features, on records of the registered matmul.
#include <filesystem>

#include "cli/run_program.h"
#include "golden.h"
#include "own_path.h"
#include "support/file.h"
#include "support/json.h"

namespace pruner {
namespace {

constexpr const char* kRecord =
    R"json({"i": [["[\"matmul_layer\", 8, 8, 8]", "cuda", [-1, 16, 64, 49152, 2147483647, 1024, 8, 32], )json"
    R"json("", 0, []], [[], []]], "r": [[0.001], 0, 1.5, 1639461739], "v": "v0.6"})json";

std::string records_file(const std::string& content) {
  const std::string path = own_path("features_test.json");
  EXPECT_TRUE(write_file(path, content).ok());
  return path;
}

TEST(Features, GivesAnObjectForEachRecordAndAReasonForEachBadOne) {
  const std::string path = records_file(std::string(kRecord) + "\nnot a record\n" + kRecord + "\n");
  const ProgramRun run = run_program({"features", "--records", path, "--psa", "t4", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.err.find(path + ":2: "), std::string::npos) << run.err;
  const size_t end = run.out.find('\n');
  EXPECT_EQ(run.out, run.out.substr(0, end + 1) + run.out.substr(0, end + 1));
  const Json json = *parse_json(run.out.substr(0, end));
  ASSERT_EQ(json["rows"].size(), 1u);
  EXPECT_EQ(json["rows"][0]["symbols"].size(), 11u);
  EXPECT_EQ(json["rows"][0]["symbols"][1].get<double>(), 2 * 8 * 8 * 8);
  EXPECT_EQ(json["rows"][0]["statement"].size(), 174u);
  EXPECT_EQ(json["dataflow"].size(), 8u);
  EXPECT_EQ(json["dataflow"][0].size(), 23u);
  EXPECT_GT(json["draft_score"].get<double>(), 0);
  EXPECT_TRUE(json["model_score"].is_null());
}

TEST(Features, ShowsATable) {
  const ProgramRun run = run_program({"features", "--records", records_file(kRecord)});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("draft score"), std::string::npos);
  EXPECT_NE(run.out.find("f_total"), std::string::npos);
}

TEST(Features, SaysWhatIsWrong) {
  const std::string path = records_file(kRecord);
  EXPECT_NE(run_program({"features"}).err.find("no records are named"), std::string::npos);
  EXPECT_NE(run_program({"features", "--records", path, "--psa-form", "best"})
                .err.find("is not release, paper or ours"),
            std::string::npos);
  EXPECT_NE(run_program({"features", "--records", path, "--psa", "epyc_9004"}).err.find("no GPU"),
            std::string::npos);
  const ProgramRun none = run_program({"features", "--records", records_file("what?\n")});
  EXPECT_EQ(none.exit_code, 2);
}

}  // namespace
}  // namespace pruner
