// pruner eval of the draft, on records that the tests make; of learned models: train_test.cpp.
#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>

#include "cli/cpu_records.h"
#include "cli/run_program.h"
#include "dataset/matmul_records.h"
#include "golden.h"
#include "own_path.h"
#include "support/file.h"
#include "support/json.h"

namespace pruner {
namespace {

struct EvalDraft : testing::Test {
  EvalDraft() : folder(own_path("eval_test")) {
    std::filesystem::create_directories(folder + "/k80");
    EXPECT_TRUE(write_file(gpu(), record_lines_of(20)).ok());
    EXPECT_TRUE(write_file(cpu(), cpu_records("matmul 64 64 64", 12)).ok());
  }
  ~EvalDraft() override { std::filesystem::remove_all(folder); }

  std::string gpu() const { return folder + "/k80/gpu.json"; }
  std::string cpu() const { return folder + "/cpu.json"; }
  static Json judge(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"eval", "--model", "draft", "--json", "--records"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramRun run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.exit_code == 0 ? *parse_json(run.out) : Json();
  }

  std::string folder;
};

TEST_F(EvalDraft, IsJudgedAsLearnedModelsAre) {
  const Json json = judge({gpu(), "--draft-size", "5"});
  EXPECT_EQ(json["model"], "draft");
  EXPECT_EQ(json["programs"], 20);
  EXPECT_EQ(json["kept"], 5);
  EXPECT_EQ(json["best_k_tasks"], 1);
  EXPECT_LE(json["rmse"].get<double>(), 1) << "scores are shares of the best";
  EXPECT_GT(json["best_k"]["1"].get<double>(), json["best_k"]["5"].get<double>());
  const Json task = json["tasks"][0];
  EXPECT_EQ(task["target"], "cuda -keys=cuda,gpu -max_num_threads=1024 -model=k80");
  EXPECT_DOUBLE_EQ(json["best_k"]["1"].get<double>(),
                   task["best_s"].get<double>() / task["best_k_s"]["1"].get<double>());
  const ProgramRun text = run_program({"eval", "--model", "draft", "--records", gpu()});
  EXPECT_NE(text.out.find("draft, form ours, numbers of each record's device\n"), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("Best-k: 0 tasks of more than 256 programs\n"), std::string::npos);
}

TEST_F(EvalDraft, TakesAFormADeviceAndLeavesOutAPenalty) {
  const auto pairwise = [](const Json& json) { return json["pairwise_accuracy"].get<double>(); };
  for (const char* form : {"release", "paper", "ours"})
    EXPECT_GE(pairwise(judge({gpu(), "--psa", "t4", "--psa-form", form})), 0) << form;
  const ProgramRun fewer =
      run_program({"eval", "--model", "draft-without-compute-l2", "--records", cpu(), "--json"});
  ASSERT_EQ(fewer.exit_code, 0) << fewer.err;
  EXPECT_EQ((*parse_json(fewer.out))["model"], "draft-without-compute-l2");
}

TEST_F(EvalDraft, OfACpuIsItsOwn) {
  const Json json = judge({cpu(), "--draft-size", "3"});
  EXPECT_EQ(json["programs"], 12);
  EXPECT_EQ(json["kept"], 3);
  // The records' times are the draft's own.
  EXPECT_EQ(json["best_k"]["1"], 1.0);
  EXPECT_EQ(json["pairwise_accuracy"], 1.0);
}

TEST_F(EvalDraft, DrawsPredictedAgainstMeasuredSpeeds) {
  const std::string file = folder + "/scatter.svg";
  judge({cpu(), "-o", file});
  const std::string svg = *read_file(file);
  EXPECT_NE(svg.find(">12 programs of 1 tasks<"), std::string::npos) << svg;
  // The records' times are the draft's own: what is faster is further up.
  static const std::regex circle("cx=\"(\\d+)\" cy=\"(\\d+)\"");
  std::map<int, int> points;
  for (auto it = std::sregex_iterator(svg.begin(), svg.end(), circle); it != std::sregex_iterator();
       ++it)
    points[std::stoi((*it)[1])] = std::stoi((*it)[2]);
  EXPECT_GT(points.size(), 3u) << svg;
  EXPECT_TRUE(std::ranges::is_sorted(points, std::greater(), [](const auto& p) {
    return p.second;
  })) << svg;
}

TEST_F(EvalDraft, ScoresANetworkByItsCalls) {
  const std::string tasks = folder + "/tasks.jsonl";
  const auto line = [](const std::string& key) {
    const Json task = {{"network", "resnet_50"},
                       {"input_shape", {1}},
                       {"weight", 3},
                       {"workload_key", key},
                       {"dag", dag_to_json(*parse_operator("matmul 64 64 64"))}};
    return task.dump() + "\n";
  };
  ASSERT_TRUE(write_file(tasks, line(MatmulRecord().key)).ok());
  const Json whole = judge({gpu(), "--dags", tasks, "--network", "resnet_50"});
  EXPECT_TRUE(whole["weighted"].get<bool>());
  EXPECT_EQ(whole["networks"][0]["network"], "resnet_50 1");
  ASSERT_TRUE(write_file(tasks, line(MatmulRecord().key) + line("[\"other\"]")).ok());
  const Json part = judge({gpu(), "--dags", tasks, "--network", "resnet_50"});
  EXPECT_FALSE(part["weighted"].get<bool>());
  EXPECT_EQ(part["networks"][0]["missing"], 1);
}

TEST_F(EvalDraft, OfRecordsJudgesByChanceToo) {
  const ProgramRun run =
      run_program({"eval", "--model", "random", "--records", cpu(), gpu(), "--json"});
  EXPECT_EQ(run.exit_code, 2) << "of two kinds";
  const ProgramRun one = run_program({"eval", "--model", "random", "--records", gpu(), "--json"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ((*parse_json(one.out))["programs"], 20);
}

TEST_F(EvalDraft, SaysWhatIsWrongInOneLine) {
  const auto says = [](const std::vector<std::string>& arguments, const std::string& words) {
    std::vector<std::string> all = {"eval"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const ProgramRun run = run_program(all);
    EXPECT_EQ(run.exit_code, 2) << run.out;
    const size_t last = run.err.rfind("pruner: ");
    EXPECT_NE(run.err.find(words, last), std::string::npos) << run.err;
  };
  says({"--model", "draft", "--dataset", "x.ds"}, "a draft reads loop nests, which a feature file");
  says({"--model", "draft", "--records", gpu(), "--dataset", "x.ds"}, "exclude each other");
  says({"--model", "draft", "--load-model", "x.pkl", "--records", gpu()}, "exclude each other");
  says({"--model", "draft-without-l3", "--records", gpu()},
       "no such penalty; there are compute-l0, memory-l0");
  says({"--model", "random", "--records", gpu(), "--psa", "t4"}, "--psa is of --model draft");
  says({"--model", "random", "--dataset", "x.ds", "--min-sample-size", "9"},
       "--min-sample-size is of --records");
  says({"--model", "draft", "--records", gpu(), "--psa-form", "best"},
       "is not release, paper or ours");
  says({"--model", "draft", "--records", cpu(), "--psa-form", "paper"},
       "--psa-form paper is of GPUs, and the records are of a CPU");
  says({"--model", "draft", "--records", cpu(), "--psa", "t4"},
       "--psa is of GPUs, and the records are of a CPU");
  says({"--model", "draft", "--records", gpu(), "--min-sample-size", "50"},
       "no task of the records has 50 programs");
  const std::string unknown = folder + "/unknown.json";
  ASSERT_TRUE(write_file(unknown, record_lines_of(3, {.target = "rocm -keys=rocm,gpu"})).ok());
  says({"--model", "draft", "--records", unknown, "--psa", "v100", "--network", "resnet_50"},
       "--network resnet_50: its tasks are not known; give a file that has them with --dags");
  ASSERT_TRUE(write_file(unknown, record_lines_of(3)).ok());
  says({"--model", "draft", "--records", unknown}, "does not know its device; name one with --psa");
  ASSERT_TRUE(write_file(unknown, record_lines_of(3, {.target = "llvm -mcpu=haswell"})).ok());
  says({"--model", "draft", "--records", unknown}, "there is none of TVM's records of CPUs");
}

}  // namespace
}  // namespace pruner
