// pruner features, on records of the registered matmul.
#include <filesystem>

#include "cli/cpu_records.h"
#include "cli/run_program.h"
#include "golden.h"
#include "own_path.h"
#include "record/record.h"
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
  EXPECT_EQ(json["rows"][0]["statement"].size(), 202u);
  EXPECT_EQ(json["dataflow"].size(), 8u);
  EXPECT_EQ(json["dataflow"][0].size(), 23u);
  EXPECT_GT(json["draft_score"].get<double>(), 0);
  EXPECT_EQ(json["draft_form"], "ours");
  EXPECT_EQ(json["measured_s"], 0.001);
  EXPECT_TRUE(json["model_score"].is_null());
}

TEST(Features, ShowsATable) {
  const ProgramRun run = run_program({"features", "--records", records_file(kRecord)});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("draft score"), std::string::npos);
  EXPECT_NE(run.out.find("f_total"), std::string::npos);
}

TEST(Features, OfACpuShowTheDraftOfCpusBesideWhatWasMeasured) {
  const std::string path = records_file(cpu_records("matmul 64 64 64", 1));
  const ProgramRun run = run_program({"features", "--records", path, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json json = *parse_json(run.out);
  EXPECT_EQ(json["draft_form"], "cpu");
  const double measured_s = json["measured_s"].get<double>();
  EXPECT_NEAR(json["draft_score"].get<double>() * measured_s * 1e3, 1, 1e-6) << "1/ms";
  const ProgramRun text = run_program({"features", "--records", path});
  EXPECT_NE(text.out.find(" (cpu), measured "), std::string::npos) << text.out;
}

// TVM's programs for CPUs have no draft of ours; the time stands there all the same.
TEST(Features, OfTvmOnACpuHaveNoDraft) {
  std::string record = kRecord;
  record.replace(record.find("cuda"), 4, "llvm");
  const std::string path = records_file(record);
  const ProgramRun text = run_program({"features", "--records", path});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("no draft score"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find(", measured 1 ms"), std::string::npos) << text.out;
  const ProgramRun json = run_program({"features", "--records", path, "--json"});
  EXPECT_TRUE((*parse_json(json.out))["draft_score"].is_null());
}

TEST(Features, SayThatATrialFailed) {
  std::string record = kRecord;
  record.replace(record.find("[[0.001], 0"), 11, "[[1e10], 4");
  const ProgramRun text = run_program({"features", "--records", records_file(record)});
  EXPECT_NE(text.out.find("(ours), its trial failed"), std::string::npos) << text.out;
}

TEST(Features, SumUpAndShowTheFastest) {
  const std::string one = std::string(kRecord) + "\n";
  std::string slow = one, failed = one;
  slow.replace(slow.find("[[0.001]"), 8, "[[0.003]");
  failed.replace(failed.find("[[0.001], 0"), 11, "[[1e10], 4");
  const std::string path = records_file(slow + one + failed + "what?\n");
  const ProgramRun all = run_program({"features", "--records", path});
  EXPECT_NE(all.out.find("\n3 programs, 1 of them failed, 1 records are none; the fastest took "
                         "1.000 ms (" +
                         path + ":2); the one that the draft scores highest took "),
            std::string::npos)
      << all.out;
  const ProgramRun top = run_program({"features", "--records", path, "--top", "1"});
  EXPECT_TRUE(top.out.starts_with(path + ":2: ")) << top.out;
  EXPECT_EQ(top.out.find("measured 3 ms"), std::string::npos) << top.out;
  EXPECT_NE(top.out.find("\n3 programs"), std::string::npos) << top.out;
  const ProgramRun json = run_program({"features", "--records", path, "--top", "2", "--json"});
  EXPECT_EQ(record_lines(json.out).size(), 2u);
}

// The records of the golden programs, through the command, with the published weights.
TEST(Features, ScoresTheGoldenProgramsAsThePublishedModels) {
  const std::string shared = PRUNER_SHARED_DATA;
  if (!std::filesystem::exists(shared + "/pruner-golden")) GTEST_SKIP() << "no golden programs";
  constexpr std::pair<const char*, const char*> kModels[] = {
      {"k80_eval", "pam_k80_1500.pkl"}, {"a100_eval", "fine_tune_pam_a100.pth"}};
  int compared = 0;
  for (const char* workload :
       {"matmul", "matmul_bias_relu", "conv2d", "conv2d_s2", "softmax", "reduce", "add"}) {
    const std::string golden_file = shared + "/pruner-golden/" + workload;
    const Json golden = *parse_json(*read_file(golden_file + ".json"));
    std::string lines;
    std::vector<Json> expected;
    for (const Json& state : golden["states"]) {
      if (!state["valid"].get<bool>()) continue;
      lines += state["record"].dump() + "\n";
      expected.push_back(state["pacm_score"]);
    }
    for (const auto& [name, weights] : kModels) {
      const ProgramRun run = run_program({"features",
                                          "--records",
                                          records_file(lines),
                                          "--task",
                                          golden_file + ".dag.json",
                                          "--load-model",
                                          shared + "/pruner-checkpoints/" + weights,
                                          "--json"});
      ASSERT_EQ(run.exit_code, 0) << run.err;
      const std::vector<RecordLine> shown = record_lines(run.out);
      ASSERT_EQ(shown.size(), expected.size()) << workload << ": " << run.err;
      for (size_t i = 0; i < shown.size(); ++i, ++compared) {
        const Json json = *parse_json(shown[i].text);
        EXPECT_NEAR(json["model_score"].get<double>(), expected[i][name].get<double>(), 1e-4)
            << workload << " " << i << " " << name;
      }
    }
  }
  EXPECT_EQ(compared, 2 * 38);
}

TEST(Features, SaysWhatIsWrong) {
  const std::string path = records_file(kRecord);
  EXPECT_NE(run_program({"features"}).err.find("no records are named"), std::string::npos);
  EXPECT_NE(run_program({"features", "--records", path, "--psa-form", "best"})
                .err.find("is not release, paper or ours"),
            std::string::npos);
  EXPECT_NE(run_program({"features", "--records", path, "--psa", "epyc_9004"}).err.find("no GPU"),
            std::string::npos);
  const std::string no_weights = own_path("no_weights");
  ASSERT_TRUE(write_file(no_weights, "hello").ok());
  const ProgramRun unread =
      run_program({"features", "--records", path, "--load-model", no_weights, "--json"});
  EXPECT_EQ(unread.exit_code, 2);
  EXPECT_NE(unread.err.find(no_weights + ": "), std::string::npos) << unread.err;
  const ProgramRun none = run_program({"features", "--records", records_file("what?\n")});
  EXPECT_EQ(none.exit_code, 2);
}

}  // namespace
}  // namespace pruner
